// SPDX-License-Identifier: Apache-2.0

package match

// link puts its owner into an index under a key. The links of one key form a ring, oldest
// first. The oldest represents the ring in its bucket, so an index needs no memory except
// its buckets.
type link[O any] struct {
	next, prev *link[O] // ring; nil while not in an index
	chain      *link[O] // next key of the bucket; used by the oldest of a ring
	owner      *O
	key        Key
	oldest     bool
}

func (l *link[O]) queued() bool { return l.next != nil }

// index finds the oldest link of a key. The zero value is empty.
type index[O any] struct {
	buckets []*link[O] // a power of two, at least as many as keys; nil at first
	keys    int        // rings
	peak    int        // most keys since the last review
	fresh   int        // keys added since the last review
}

const (
	minBuckets = 64
	// reviewKeys is the number of keys added between two checks whether the table is too
	// large. Shrinking at once would allocate in every round of a program that fills and
	// drains its queues in turn.
	reviewKeys = 4096
)

// slot returns the place of the oldest link of k, or where it belongs. The buckets must
// exist; they do once a key was added.
func (x *index[O]) slot(k Key) **link[O] {
	s := &x.buckets[k.hash()&uint64(len(x.buckets)-1)]
	for *s != nil && (*s).key != k {
		s = &(*s).chain
	}
	return s
}

// oldest returns the oldest link of k, or nil.
func (x *index[O]) oldest(k Key) *link[O] {
	if x.keys == 0 {
		return nil
	}
	return *x.slot(k)
}

// push adds l as the youngest of its key.
func (x *index[O]) push(l *link[O]) {
	if x.keys == len(x.buckets) || x.fresh > reviewKeys && x.fresh > len(x.buckets) {
		x.resize()
	}
	s := x.slot(l.key)
	if first := *s; first != nil {
		last := first.prev
		l.next, l.prev = first, last
		last.next, first.prev = l, l
		return
	}
	l.next, l.prev, l.oldest = l, l, true
	*s = l
	x.fresh++
	x.keys++
	x.peak = max(x.peak, x.keys)
}

// pop removes the link in slot s.
func (x *index[O]) pop(s **link[O]) {
	l := *s
	if l.next == l {
		*s = l.chain
		x.keys--
	} else {
		n := l.next
		n.prev, l.prev.next = l.prev, n
		n.chain, n.oldest = l.chain, true
		*s = n
	}
	l.next, l.prev, l.chain, l.oldest = nil, nil, nil, false
}

// remove removes any link of the index.
func (x *index[O]) remove(l *link[O]) {
	if l.oldest {
		x.pop(x.slot(l.key))
		return
	}
	l.prev.next, l.next.prev = l.next, l.prev
	l.next, l.prev = nil, nil
}

// resize doubles a full table, and shrinks one that was mostly empty since the last check.
func (x *index[O]) resize() {
	n := max(len(x.buckets), minBuckets)
	if x.keys == len(x.buckets) {
		n = max(2*len(x.buckets), minBuckets)
	} else {
		for n > minBuckets && x.peak < n/8 {
			n /= 2
		}
	}
	x.peak, x.fresh = x.keys, 0
	if n == len(x.buckets) {
		return
	}
	old := x.buckets
	x.buckets = make([]*link[O], n)
	for _, l := range old {
		for l != nil {
			rest := l.chain
			s := &x.buckets[l.key.hash()&uint64(n-1)]
			l.chain = *s
			*s = l
			l = rest
		}
	}
}
