// SPDX-License-Identifier: Apache-2.0

// Package examples holds programs on package mpi, one a directory; its tests
// run each of them on several numbers of ranks. README.md lists them.
package examples
