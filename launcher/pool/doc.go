// SPDX-License-Identifier: Apache-2.0

// Package pool shares the slots of one head (gompirun --head) among jobs (gompirun --to).
// Pool is the table of who has how many, with a manager of resources that decides; it has
// no lock, clock or socket. Server puts it behind a socket, Lease is the end that a job
// has of the connection, and Ask what a person sees. Lines of JSON travel:
// docs/design/029-resource-managers.md has them all.
//
// The connection is the lease: slots are free again when the kernel has closed it, which
// is when the last process that has its descriptor is gone.
//
// Limitations: a head knows how many slots there are, not where; it cannot start
// processes, and ends them only with itself.
package pool
