// SPDX-License-Identifier: Apache-2.0

package engine

// ring is a list of what hangs on something by ties of its own, oldest first. The
// zero value is empty. It must not be copied.
type ring[T any] struct{ head tie[T] }

// tie ties its owner into a ring. The zero value hangs nowhere.
type tie[T any] struct {
	prev, next *tie[T]
	of         *T // nil: the head, or where each ends
}

// add hangs of, by its tie h, behind all others.
func (l *ring[T]) add(h *tie[T], of *T) {
	if l.head.next == nil {
		l.head.prev, l.head.next = &l.head, &l.head
	}
	last := l.head.prev
	h.prev, h.next, h.of = last, &l.head, of
	last.next, l.head.prev = h, h
}

// hangs reports whether h is in a ring.
func (h *tie[T]) hangs() bool { return h.next != nil }

// drop takes h out of its ring, if it is in one.
func (h *tie[T]) drop() {
	if h.next != nil {
		h.prev.next, h.next.prev = h.next, h.prev
		h.next = nil
	}
}

// all iterates over the ring. The body leaves it alone.
func (l *ring[T]) all(yield func(*T) bool) {
	if l.head.next == nil {
		return
	}
	for h := l.head.next; h != &l.head; h = h.next {
		if h.of != nil && !yield(h.of) {
			return
		}
	}
}

// each is all whose body may take out whatever it likes, and add more, which it
// does not come to. It goes to the end: a body that leaves it early changes the
// order.
func (l *ring[T]) each(yield func(*T) bool) {
	if l.head.next == nil || l.head.next == &l.head {
		return
	}
	end := new(tie[T])
	l.add(end, nil)
	defer end.drop()
	for h := l.head.next; h != end; h = l.head.next {
		h.prev.next, h.next.prev = h.next, h.prev
		of := h.of
		l.add(h, of)
		if of != nil && !yield(of) {
			return
		}
	}
}
