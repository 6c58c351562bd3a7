// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: the inner loops of packing move words of memory that has no Go type here. All
// platforms of gompi read and write words at any address.

import (
	"unsafe"

	"gompi/internal/host/mem"
)

// word is a block that one load and one store move.
type word interface {
	uint8 | uint16 | uint32 | uint64 | word128 | word96 | word192
}

// The larger words are structs because the compiler keeps structs in registers, but not arrays.
type (
	word128 struct{ a, b uint64 }
	word96  struct{ a, b, c uint32 }
	word192 struct{ a, b, c uint64 }
	word512 struct{ a, b, c, d, e, f, g, h uint64 }
)

// shortMax is the size up to which blocks are moved without a call. The calls of memmove take
// as long as the cache misses of rows that are far apart (64 bytes each 32 KiB: 25 ns a row
// there and back, against 15).
const shortMax = 192

const (
	// Assembly moves rows of rowsMin to rowsMax bytes. It prefetches sources, which a Go
	// program cannot do: 1 KiB each 32 KiB takes 15 % less. Shorter rows from another
	// processor's cache get slower by it, and longer rows get no faster.
	rowsMin, rowsMax = 512, 4<<10 - 1
	// streamMin is the least size of a block for non-temporal stores. The ends of a block,
	// which are no whole lines, go through the caches.
	streamMin = 512
	// chunkBytes is the work of one call of assembly. Its goroutine cannot be preempted
	// during the call, which takes some microseconds.
	chunkBytes int64 = 64 << 10
)

// copyStrided copies count blocks of size bytes. The blocks are dstStep and srcStep bytes
// apart.
func copyStrided(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	switch size {
	case 1:
		moveStrided[uint8](dst, src, dstStep, srcStep, count)
	case 2:
		moveStrided[uint16](dst, src, dstStep, srcStep, count)
	case 4:
		moveStrided[uint32](dst, src, dstStep, srcStep, count)
	case 8:
		moveStrided[uint64](dst, src, dstStep, srcStep, count)
	case 16:
		moveStrided[word128](dst, src, dstStep, srcStep, count)
	case 12:
		moveStrided[word96](dst, src, dstStep, srcStep, count)
	case 24:
		moveStrided[word192](dst, src, dstStep, srcStep, count)
	default:
		switch {
		case size < 16:
			for i := range count {
				copyBlock(unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep), size)
			}
		case size <= shortMax:
			moveShort(dst, src, dstStep, srcStep, count, size)
		case size >= rowsMin && size <= rowsMax:
			for i, k := int64(0), chunkBytes/size; i < count; i += k {
				moveRows(unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep), dstStep, srcStep, min(k, count-i), size)
			}
		default:
			moveLong(dst, src, dstStep, srcStep, count, size)
		}
	}
}

// moveShort moves blocks of at least 16 bytes. The last 16 bytes of a block are moved as one
// word that may overlap bytes that were already moved.
func moveShort(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	last := size - 16
	for i := range count {
		to, from, k := unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep), int64(0)
		for ; k+64 <= size; k += 64 {
			*(*word512)(unsafe.Add(to, k)) = *(*word512)(unsafe.Add(from, k))
		}
		for ; k < last; k += 16 {
			*(*word128)(unsafe.Add(to, k)) = *(*word128)(unsafe.Add(from, k))
		}
		if k < size {
			*(*word128)(unsafe.Add(to, last)) = *(*word128)(unsafe.Add(from, last))
		}
	}
}

// moveLong moves blocks by memmove. It reads a byte of later sources, so that the processor
// looks up their pages while it copies others. (Not of targets: a line of another processor
// would then travel twice, to be read and to be written.) It returns what it has read, because
// the compiler drops a load without a use.
//
//go:noinline
func moveLong(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) (seen uint8) {
	const ahead = 2
	for i := range count {
		to, from := unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep)
		if i < count-ahead {
			seen |= *(*uint8)(unsafe.Add(from, ahead*srcStep))
		}
		copyBlock(to, from, size)
	}
	return seen
}

// copyStream copies count blocks of at least streamMin bytes with non-temporal stores. The
// blocks are dstStep and srcStep bytes apart.
func copyStream(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64) {
	for i := range count {
		to, from := unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep)
		for off := int64(0); off < size; {
			n := min(size-off, chunkBytes)
			if rest := size - off - n; rest > 0 && rest < streamMin {
				n -= streamMin
			}
			streamRows(unsafe.Add(to, off), unsafe.Add(from, off), n, n, 1, n)
			off += n
		}
	}
}

func moveStrided[W word](dst, src unsafe.Pointer, dstStep, srcStep, count int64) {
	var d, s int64
	for ; count >= 2; count -= 2 {
		a, b := *(*W)(unsafe.Add(src, s)), *(*W)(unsafe.Add(src, s+srcStep))
		*(*W)(unsafe.Add(dst, d)), *(*W)(unsafe.Add(dst, d+dstStep)) = a, b
		d, s = d+2*dstStep, s+2*srcStep
	}
	if count > 0 {
		*(*W)(unsafe.Add(dst, d)) = *(*W)(unsafe.Add(src, s))
	}
}

// copyBlock copies n bytes.
func copyBlock(dst, src unsafe.Pointer, n int64) {
	switch n {
	case 4:
		*(*uint32)(dst) = *(*uint32)(src)
	case 8:
		*(*uint64)(dst) = *(*uint64)(src)
	case 16:
		*(*word128)(dst) = *(*word128)(src)
	default:
		mem.Copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}

// gather packs a list of blocks. at and to are added to the positions of the blocks.
func gather(packed, base unsafe.Pointer, to, at int64, blocks []block, each int64) {
	switch each {
	case 4:
		gatherWords[uint32](packed, base, to, at, blocks)
	case 8:
		gatherWords[uint64](packed, base, to, at, blocks)
	case 12:
		gatherWords[word96](packed, base, to, at, blocks)
	case 16:
		gatherWords[word128](packed, base, to, at, blocks)
	case 24:
		gatherWords[word192](packed, base, to, at, blocks)
	default:
		for i := range len(blocks) - 1 {
			b := &blocks[i]
			copyBlock(unsafe.Add(packed, to+b.off), unsafe.Add(base, at+b.at), blocks[i+1].off-b.off)
		}
	}
}

func gatherWords[W word](packed, base unsafe.Pointer, to, at int64, blocks []block) {
	for i := range len(blocks) - 1 {
		b := &blocks[i]
		*(*W)(unsafe.Add(packed, to+b.off)) = *(*W)(unsafe.Add(base, at+b.at))
	}
}

// scatter unpacks a list of blocks.
func scatter(base, packed unsafe.Pointer, at, to int64, blocks []block, each int64) {
	switch each {
	case 4:
		scatterWords[uint32](base, packed, at, to, blocks)
	case 8:
		scatterWords[uint64](base, packed, at, to, blocks)
	case 12:
		scatterWords[word96](base, packed, at, to, blocks)
	case 16:
		scatterWords[word128](base, packed, at, to, blocks)
	case 24:
		scatterWords[word192](base, packed, at, to, blocks)
	default:
		for i := range len(blocks) - 1 {
			b := &blocks[i]
			copyBlock(unsafe.Add(base, at+b.at), unsafe.Add(packed, to+b.off), blocks[i+1].off-b.off)
		}
	}
}

func scatterWords[W word](base, packed unsafe.Pointer, at, to int64, blocks []block) {
	for i := range len(blocks) - 1 {
		b := &blocks[i]
		*(*W)(unsafe.Add(base, at+b.at)) = *(*W)(unsafe.Add(packed, to+b.off))
	}
}
