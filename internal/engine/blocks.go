// SPDX-License-Identifier: Apache-2.0

package engine

// blockPool recycles memory for payloads in powers of two, so that a burst of
// them costs no allocation the second time. What a flood leaves goes.
type blockPool struct {
	free [maxBlock + 1][][]byte
	kept int // bytes
}

const (
	minBlock = 4  // 16 bytes
	maxBlock = 24 // 16 MiB: above every eager limit

	maxKept = 4 << 20
)

func blockClass(n int) uint8 {
	c := uint8(minBlock)
	for 1<<c < n {
		c++
	}
	return c
}

// get returns n bytes with anything in them, nil for none.
func (p *blockPool) get(n int) []byte {
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

// put takes back memory of get, or nil.
func (p *blockPool) put(b []byte) {
	if b != nil && p.kept < maxKept {
		free := &p.free[blockClass(cap(b))]
		*free = append(*free, b)
		p.kept += cap(b)
	}
}
