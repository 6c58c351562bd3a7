// SPDX-License-Identifier: Apache-2.0

// Package shmem is the memory that processes of a host share, except their rings. Each
// process has a Heap, from which it allocates blocks. A Name lets other processes find a
// block. A Cache maps the memory of other processes, each arena once for all its users.
//
// docs/design/023-shared-memory.md has the reasons.
package shmem
