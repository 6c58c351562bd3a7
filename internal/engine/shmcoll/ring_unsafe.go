// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: like cells, slots are used through atomics at fixed places.

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/control/collmem"
)

// slot is the head of a slot.
type slot struct {
	number atomic.Uint64 // written last
	call   uint64        // see slotCall
}

const (
	_ = uint(unsafe.Sizeof(slot{}) - slotHead)
	_ = -uint(collmem.WideSlot%lineBytes + collmem.NarrowSlot%lineBytes)
)

func viewSlot(m []byte) *slot { return (*slot)(unsafe.Pointer(&m[0])) }

func viewWord(m []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[0])) }
