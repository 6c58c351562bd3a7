// SPDX-License-Identifier: Apache-2.0

// Package change is the state machine of operations that change process sets: who
// waits for whom, what is granted, when a change is ready, decided and done, and
// what a death, a deadline or a cancellation makes of it. It has no lock, goroutine,
// clock or socket: its owner, the head of a job, tells it events one at a time and
// carries out the effects. See docs/design/026-process-sets.md.
package change
