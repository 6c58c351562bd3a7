// SPDX-License-Identifier: Apache-2.0

// Package bytepool recycles memory of 16 bytes to 16 MiB for payloads. A Pool hands
// out blocks by Get and takes them back by Put. It keeps at most MaxKept bytes and
// one block more, so a burst of messages does not hold its memory for ever.
package bytepool

// Pool recycles blocks of memory, which are powers of two in size. The zero value is
// ready. A Pool does no locking.
type Pool struct {
	free [maxBlock + 1][][]byte // by the logarithm of the size
	kept int                    // bytes in free
}

const (
	minBlock = 4  // log2 of 16 bytes
	maxBlock = 24 // log2 of 16 MiB, above every eager limit

	// MaxKept bounds the bytes that a pool keeps; the last block may exceed it.
	MaxKept = 4 << 20
)

// blockClass returns the logarithm of the size of a block for n bytes.
func blockClass(n int) uint8 {
	c := uint8(minBlock)
	for 1<<c < n {
		c++
	}
	return c
}

// Get returns n bytes with undefined contents, or nil if n is 0.
func (p *Pool) Get(n int) []byte {
	if n == 0 {
		return nil
	}
	free := &p.free[blockClass(n)]
	if k := len(*free); k > 0 {
		b := (*free)[k-1][:n]
		*free = (*free)[:k-1]
		p.kept -= cap(b)
		return b
	}
	return make([]byte, n, 1<<blockClass(n))
}

// Put takes back memory that Get returned; b may be nil.
func (p *Pool) Put(b []byte) {
	if b != nil && p.kept < MaxKept {
		free := &p.free[blockClass(cap(b))]
		*free = append(*free, b)
		p.kept += cap(b)
	}
}

// Kept returns the number of unused bytes that the pool holds.
func (p *Pool) Kept() int { return p.kept }
