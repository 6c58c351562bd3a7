// SPDX-License-Identifier: Apache-2.0

// Package bytepool recycles memory of a few bytes to a few megabytes.
package bytepool

// Pool recycles memory for payloads in powers of two, so that a burst of them costs
// no allocation the second time. What a flood leaves goes. The zero value is ready.
type Pool struct {
	free [maxBlock + 1][][]byte
	kept int // bytes
}

const (
	minBlock = 4  // 16 bytes
	maxBlock = 24 // 16 MiB: above every eager limit

	// MaxKept is how many bytes a pool keeps, or one block more.
	MaxKept = 4 << 20
)

func blockClass(n int) uint8 {
	c := uint8(minBlock)
	for 1<<c < n {
		c++
	}
	return c
}

// Get returns n bytes with anything in them, nil for none.
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

// Put takes back memory of Get, or nil.
func (p *Pool) Put(b []byte) {
	if b != nil && p.kept < MaxKept {
		free := &p.free[blockClass(cap(b))]
		*free = append(*free, b)
		p.kept += cap(b)
	}
}

// Kept is how many bytes lie unused.
func (p *Pool) Kept() int { return p.kept }
