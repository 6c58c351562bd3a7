// SPDX-License-Identifier: Apache-2.0

package sim

// pairs matches messages with receives, in order for each pair of ranks. It holds only
// unmatched ends: messages without a receive, and receives without a message.
//
// It is a hash table with linear probing from pairs to queues of ends.
type pairs struct {
	table []queue // a power of two; a queue without ends is a free entry
	used  int
	ends  []end // ends[0] is unused
	free  int32 // a chain of free ends
}

// queue is what waits of one pair: messages, or receives.
type queue struct {
	pair        pair
	first, last int32 // in ends; 0: none
}

// pair is a sender and a receiver.
type pair struct{ from, to int32 }

// end is one end of a message. A matched one belongs to the receiver.
type end struct {
	bytes int64
	start float64 // the sender begins
	head  float64 // the first byte is at the receiver
	from  int32
	next  int32
	recv  bool // a receive; it has no times
}

func newPairs() *pairs {
	return &pairs{table: make([]queue, 64), ends: make([]end, 1, 64)}
}

// meet takes the oldest waiting end of the other kind of a pair; if there is
// none, e waits. It returns the place of what it took, or 0.
func (p *pairs) meet(to int32, e end) int32 {
	at := pair{e.from, to}
	i := p.find(at)
	q := &p.table[i]
	if q.first != 0 && p.ends[q.first].recv != e.recv {
		k := q.first
		if q.first = p.ends[k].next; q.first == 0 {
			p.remove(i)
		}
		return k
	}
	k := p.alloc(e)
	if q.first != 0 {
		p.ends[q.last].next = k
		q.last = k
		return 0
	}
	*q = queue{at, k, k}
	if p.used++; p.used > len(p.table)/2 {
		p.grow()
	}
	return 0
}

func (p *pairs) alloc(e end) int32 {
	e.next = 0
	if k := p.free; k != 0 {
		p.free = p.ends[k].next
		p.ends[k] = e
		return k
	}
	p.ends = append(p.ends, e)
	return int32(len(p.ends) - 1)
}

func (p *pairs) release(k int32) {
	p.ends[k].next = p.free
	p.free = k
}

// home is where the search for a pair begins.
func (p *pairs) home(at pair) int {
	x := uint64(uint32(at.from))<<32 | uint64(uint32(at.to))
	x *= 0x9e3779b97f4a7c15
	return int((x ^ x>>32) & uint64(len(p.table)-1))
}

// find is the place of a pair, or the free one where it belongs.
func (p *pairs) find(at pair) int {
	i := p.home(at)
	for p.table[i].first != 0 && p.table[i].pair != at {
		i = (i + 1) & (len(p.table) - 1)
	}
	return i
}

// remove frees place i and closes the gap that it leaves in others' searches.
func (p *pairs) remove(i int) {
	mask := len(p.table) - 1
	p.used--
	for j := (i + 1) & mask; p.table[j].first != 0; j = (j + 1) & mask {
		// The one at j may move to i unless its search begins behind i.
		if (j-p.home(p.table[j].pair))&mask >= (j-i)&mask {
			p.table[i] = p.table[j]
			i = j
		}
	}
	p.table[i] = queue{}
}

func (p *pairs) grow() {
	old := p.table
	p.table = make([]queue, 2*len(old))
	for _, q := range old {
		if q.first != 0 {
			p.table[p.find(q.pair)] = q
		}
	}
}
