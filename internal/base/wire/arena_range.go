// SPDX-License-Identifier: Apache-2.0

package wire

// ArenaRange is a range of an arena. An arena is a file of host memory; the agent of
// the host gives out ranges of it.
type ArenaRange struct {
	// Arena is the number of the arena, and Total its size in bytes.
	Arena uint32
	Total int64
	// Off and Bytes are the position and the size of the range in the arena.
	Off, Bytes int64
	// File is a file descriptor of the arena, or -1.
	File int
}

// MaxArenas bounds the arenas of a host: each has a bit in a word of 64.
const MaxArenas = 64
