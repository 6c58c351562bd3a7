// SPDX-License-Identifier: Apache-2.0

package wire

// Extent is a range of the memory of a host that its agent gives out.
type ArenaRange struct {
	// Arena is the number of the file that it is in, Total the bytes of that.
	Arena uint32
	Total int64
	// Off and Bytes are where in the arena it is.
	Off, Bytes int64
	// File is a descriptor of the arena, or -1.
	File int
}

// MaxArenas bounds the arenas of a host: each has a bit in a word.
const MaxArenas = 64
