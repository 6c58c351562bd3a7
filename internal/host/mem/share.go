// SPDX-License-Identifier: Apache-2.0

package mem

const (
	// putMin is from where on asking for the lines ahead pays, takeMin from where
	// on one string instruction does. docs/results/shared-memory-collectives.md has the figures.
	putMin  = 512
	takeMin = 2 << 10
	// pastMin is from where on writing past the cache pays wherever the processors are. docs/results/shm.md has the figures.
	streamMin = 8 << 10
)

// Put is Copy to memory that another processor has read last, and is to read next.
func Put(dst, src []byte) int {
	if min(len(dst), len(src)) >= streamMin {
		return Stream(dst, src)
	}
	return PutNear(dst, src)
}

// PutNear is Put between processors that share a cache, where the same memory goes to and
// fro: its lines are asked for together, before the first is written.
func PutNear(dst, src []byte) int {
	if n := min(len(dst), len(src)); n >= putMin && n <= chunkBytes {
		prefetchWrite(dst[:n])
	}
	return Copy(dst, src)
}

// Ask asks for the lines of p, which are to be written soon and which another
// processor has read last. It does not wait for them.
func Prefetch(p []byte) { prefetchWrite(p) }

// Take is Copy from memory that another processor has written last.
func Take(dst, src []byte) int {
	if n := min(len(dst), len(src)); n >= takeMin && n <= chunkBytes && stringsFast() {
		moveString(dst[:n], src[:n])
		return n
	}
	return Copy(dst, src)
}
