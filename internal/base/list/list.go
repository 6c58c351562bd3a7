// SPDX-License-Identifier: Apache-2.0

// Package list is an intrusive list. A Link inside the element ties the element
// into a List, so membership takes no memory and removal takes no search. An
// element needs one Link for each list that it can be in.
package list

// List is a doubly linked list of elements, the oldest first. The zero value is
// empty. A List must not be copied.
type List[T any] struct{ head Link[T] }

// Link is an element's place in a list. The zero value is in no list.
type Link[T any] struct {
	prev, next *Link[T]
	owner      *T // the element; nil in the head and in the end marks of Each
}

// Add appends owner, whose link is h.
func (l *List[T]) Add(h *Link[T], owner *T) {
	if l.head.next == nil {
		l.head.prev, l.head.next = &l.head, &l.head
	}
	last := l.head.prev
	h.prev, h.next, h.owner = last, &l.head, owner
	last.next, l.head.prev = h, h
}

// Linked reports whether h is in a list.
func (h *Link[T]) Linked() bool { return h.next != nil }

// Remove takes h out of its list, if it is in one.
func (h *Link[T]) Remove() {
	if h.next != nil {
		h.prev.next, h.next.prev = h.next, h.prev
		h.next = nil
	}
}

// All iterates over the list. The loop body must not change the list.
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

// Each iterates over the elements that are in the list when it starts. The loop body
// may remove any element and may add elements. An early exit from the loop changes
// the order of the list.
func (l *List[T]) Each(yield func(*T) bool) {
	if l.head.next == nil || l.head.next == &l.head {
		return
	}
	end := new(Link[T])
	l.Add(end, nil)
	defer end.Remove()
	for h := l.head.next; h != end; h = l.head.next {
		h.prev.next, h.next.prev = h.next, h.prev
		owner := h.owner
		l.Add(h, owner)
		if owner != nil && !yield(owner) {
			return
		}
	}
}

// Poison makes every walk along the list panic until cure is called. Tests use it to
// prove that a path does not look at the list.
func (l *List[T]) Poison() (cure func()) {
	next := l.head.next
	l.head.next = &Link[T]{}
	return func() { l.head.next = next }
}
