// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"unsafe"

	"gompi/internal/host/segment"
)

// The views give mapped bytes their types. They are unsafe because only this file says that
// a mapping is aligned (mmap returns whole pages) and long enough (checked here). They live
// as long as the mapping. These array lengths prove the layout: they must not be negative.
var (
	_ [segment.CallRegistry - segment.HeadShm - unsafe.Sizeof(headWords{})]struct{}
	_ [boxSlots - unsafe.Sizeof(box{})]struct{}
	_ [0]struct{} = [unsafe.Sizeof(entry{}) - entryBytes]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(slot{}) - slotBytes]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof([2]half{}) - lineBytes]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(box{}.duplex) % lineBytes]struct{}{}
)

func viewHead(m []byte) *headWords {
	_ = m[pageBytes-1]
	return (*headWords)(unsafe.Pointer(&m[segment.HeadShm]))
}

func viewDirectory(m []byte) []entry {
	_ = m[dirBytes-1]
	return unsafe.Slice((*entry)(unsafe.Pointer(&m[0])), dirCap)
}

func viewBox(m []byte, g shape) (*box, []slot, []byte) {
	_ = m[g.bytes()-1]
	off := g.dataOff()
	return (*box)(unsafe.Pointer(&m[0])),
		unsafe.Slice((*slot)(unsafe.Pointer(&m[boxSlots])), g.slots),
		m[off : off+int64(g.data) : off+int64(g.data)]
}

func viewBoxWords(m []byte) *box {
	_ = m[boxSlots-1]
	return (*box)(unsafe.Pointer(&m[0]))
}

// addrOf returns the address that a peer passes to process_vm_*. The transfer keeps b alive
// and on the heap.
func addrOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// addrOfWord is addrOf for a word inside a heap object.
func addrOfWord(w *uint64) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }

// bytesOf returns the memory of words.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
