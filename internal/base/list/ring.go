// SPDX-License-Identifier: Apache-2.0

// Package ring has lists of what hangs on something by ties of its own: whoever
// is in one leaves it without being looked for, and being in one takes no memory.
package list

// List is a list of what hangs on it, oldest first. The zero value is empty. It must
// not be copied.
type List[T any] struct{ head Link[T] }

// Tie ties its owner into a list. The zero value hangs nowhere.
type Link[T any] struct {
	prev, next *Link[T]
	owner      *T // nil: the head, or where each ends
}

// Add hangs of, by its tie h, behind all others.
func (l *List[T]) Add(h *Link[T], of *T) {
	if l.head.next == nil {
		l.head.prev, l.head.next = &l.head, &l.head
	}
	last := l.head.prev
	h.prev, h.next, h.owner = last, &l.head, of
	last.next, l.head.prev = h, h
}

// Hangs reports whether h is in a list.
func (h *Link[T]) Linked() bool { return h.next != nil }

// Drop takes h out of its list, if it is in one.
func (h *Link[T]) Remove() {
	if h.next != nil {
		h.prev.next, h.next.prev = h.next, h.prev
		h.next = nil
	}
}

// All iterates over the list. The body leaves it alone.
func (l *List[T]) All(yield func(*T) bool) {
	if l.head.next == nil {
		return
	}
	for h := l.head.next; h != &l.head; h = h.next {
		if h.owner != nil && !yield(h.owner) {
			return
		}
	}
}

// Each is All whose body may take out whatever it likes, and add more, which it
// does not come to. It goes to the end: a body that leaves it early changes the
// order.
func (l *List[T]) Each(yield func(*T) bool) {
	if l.head.next == nil || l.head.next == &l.head {
		return
	}
	end := new(Link[T])
	l.Add(end, nil)
	defer end.Remove()
	for h := l.head.next; h != end; h = l.head.next {
		h.prev.next, h.next.prev = h.next, h.prev
		of := h.owner
		l.Add(h, of)
		if of != nil && !yield(of) {
			return
		}
	}
}

// Poison makes whoever walks along the list panic, until cure is called: for tests
// of what must not look at it.
func (l *List[T]) Poison() (cure func()) {
	next := l.head.next
	l.head.next = &Link[T]{}
	return func() { l.head.next = next }
}
