// SPDX-License-Identifier: Apache-2.0

// Package redist is the laboratory of redistribution: a job of so many ranks iterates,
// changes by package mam to another number of ranks, and back, by each method and strategy
// in turn, and what that has taken is told. docs/redistribution.md says what is measured.
package redist
