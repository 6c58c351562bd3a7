// SPDX-License-Identifier: Apache-2.0

// Package top turns samples of a job, as gompirun gives them, into the output of
// gompictl top: rows of processes or of hosts with their rates (Row), a table, lines of
// JSON, and the page of a live view (View). It has no clock, terminal or connection.
//
// In reading order:
//
//	screen  the page on a terminal, and its keys
//
// Where to change what: a new counter is a field of Rates and its arithmetic in
// sample.go, a column in columns.go and a field in json.go; docs/running.md describes them.
package top
