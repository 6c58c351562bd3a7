// SPDX-License-Identifier: Apache-2.0

// Package shmem is the memory that processes of a host share, but for their
// rings: blocks that each gives out of a heap of its own, names by which others
// find them, and one cache of what is mapped of others.
// docs/design/023-shared-memory.md.
package shmem
