// SPDX-License-Identifier: Apache-2.0

// Package pool shares the slots of one head (gompirun --head) among jobs (gompirun --to).
// Pool is the table of jobs and their slots, with a resource manager that decides; it has
// no lock, clock or socket. Server puts it behind a socket, Lease is a job's end of the
// connection, and Ask gets the table for people. Both sides exchange lines of JSON:
// docs/design/041-leases.md lists them.
//
// The connection is the lease: the slots are free again when the kernel has closed it,
// after the last process with its descriptor has ended.
//
// Limitations: a head knows how many slots there are, not where; it cannot start
// processes, and ends them only when it ends itself.
package pool
