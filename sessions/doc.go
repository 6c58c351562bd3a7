// SPDX-License-Identifier: Apache-2.0

// Package sessions is MPI's Sessions with process sets that change: sessions and the
// sets that they see, operations that make processes come and go, and Watch, by which
// the members of a set learn of a change at the same point of their loops without
// waiting for each other. MPI 4.1 chapter 11; docs/design/026-process-sets.md.
package sessions
