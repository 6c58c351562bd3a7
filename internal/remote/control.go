// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync/atomic"

	"gompi/internal/shmem"
)

// control is a control block of this or another process, in use here. What
// stands in it was written by others and is not believed.
type control struct {
	head  *controlHead
	words []atomic.Uint64

	// Of a block of this process.
	block      block
	generation uint32
	// Of a block of another process.
	from *shmem.Mapping
}
