// SPDX-License-Identifier: Apache-2.0

// Package test is the folder of what only tests use. Package mpitest is the
// part of it that programs outside of this module see. The package itself is
// empty.
//
// In reading order:
//
//	archtest  the rules that hold for the whole tree: imports, names, comments, docs
//	house     draws the tree: packages and imports, as docs/house.svg
//	testlab   random programs and their oracle, leak checks, the pace of a machine
//	testjob   jobs whose processes are values in a test process
//	scenes    small programs of several ranks, run as goroutines and as processes
//
// Where to change what: a new rule for the tree goes to archtest/rules.go, with
// a source in rules_test.go that breaks it; a test that needs several ranks is a
// scene, so that it runs on one host, on several, and as processes.
package test
