// SPDX-License-Identifier: Apache-2.0

// Package change is the state machine of operations that change process sets. A Book holds the
// operations of a job: it decides which of them wait, grants them, and follows each one until its
// change is decided and done. It also handles deaths, deadlines and cancellations. The package
// has no lock, goroutine, clock or socket. Its owner, the head of a job, reports events one at a
// time and carries out the effects. See docs/design/026-process-sets.md.
package change
