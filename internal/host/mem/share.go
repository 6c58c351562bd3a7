// SPDX-License-Identifier: Apache-2.0

package mem

const (
	// From putMin bytes on, prefetching the lines pays. From takeMin bytes on, one string
	// instruction pays. docs/results/shared-memory-collectives.md has the figures.
	putMin  = 512
	takeMin = 2 << 10
	// From streamMin bytes on, non-temporal stores pay wherever the processors are.
	// docs/results/shm.md has the figures.
	streamMin = 8 << 10
)

// Put is Copy to memory that another processor has read last and will read next.
func Put(dst, src []byte) int {
	if min(len(dst), len(src)) >= streamMin {
		return Stream(dst, src)
	}
	return PutNear(dst, src)
}

// PutNear is Put between processors that share a cache and pass the same memory to and fro.
// It prefetches all lines before it writes the first.
func PutNear(dst, src []byte) int {
	if n := min(len(dst), len(src)); n >= putMin && n <= chunkBytes {
		prefetchWrite(dst[:n])
	}
	return Copy(dst, src)
}

// Prefetch fetches the lines of p for writing and does not wait for them. Use it for
// memory that another processor has read last.
func Prefetch(p []byte) { prefetchWrite(p) }

// Take is Copy from memory that another processor has written last.
func Take(dst, src []byte) int {
	if n := min(len(dst), len(src)); n >= takeMin && n <= chunkBytes && stringsFast() {
		moveString(dst[:n], src[:n])
		return n
	}
	return Copy(dst, src)
}
