// SPDX-License-Identifier: Apache-2.0

// Package pool shares the slots of one head (gompirun --head) among jobs (gompirun --to).
// Pool is the table of jobs and their slots, with a resource manager that decides; it has
// no lock, clock or socket. Server puts it behind a socket, Lease is a job's end of the
// connection, and Ask prints the table for people. Both sides exchange lines of JSON:
// docs/design/041-leases.md lists them.
//
// The connection is the lease: slots are free again when the kernel has closed it: when
// the last process with its descriptor is gone.
//
// Limitations: a head knows how many slots there are, not where; it cannot start
// processes, and ends them only with itself.
package pool
