// SPDX-License-Identifier: Apache-2.0

// Package rma is one-sided access to the memory of other processes: windows,
// MPI 4.1 chapter 12, and memory that a process exposes by itself. A target
// does nothing for it: on one host not even its process has to run.
package rma
