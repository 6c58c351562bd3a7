// SPDX-License-Identifier: Apache-2.0

// Package rm decides how many processes each job of a head has. A ResourceManager is a
// value: events in, decisions out, with no goroutine, clock or socket, so the same one
// runs in a simulator, in a test and in gompirun. Policies are pure functions from a table
// of jobs to decisions. See docs/design/029-resource-managers.md.
//
// Limitations: a manager knows slots, but not their hosts, except whole hosts that a COL's mapping takes.
// It never ends or suspends a job.
package rm
