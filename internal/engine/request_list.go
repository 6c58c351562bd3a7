// SPDX-License-Identifier: Apache-2.0

package engine

// sendQueue holds the sends to one peer in program order, linked by next and prev.
type sendQueue struct {
	first, last *Request
	n           int
}

func (q *sendQueue) push(r *Request) {
	r.prev, r.next = q.last, nil
	if q.last == nil {
		q.first = r
	} else {
		q.last.next = r
	}
	q.last = r
	q.n++
}

func (q *sendQueue) pushFront(r *Request) {
	r.prev, r.next = nil, q.first
	if q.first == nil {
		q.last = r
	} else {
		q.first.prev = r
	}
	q.first = r
	q.n++
}

func (q *sendQueue) remove(r *Request) {
	if r.prev == nil {
		q.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
	q.n--
}

// prepend puts the sends of o in front.
func (q *sendQueue) prepend(o *sendQueue) {
	if o.first == nil {
		return
	}
	for r := o.first; r != nil; r = r.next {
		r.stalled = false
	}
	if o.last.next = q.first; q.first == nil {
		q.last = o.last
	} else {
		q.first.prev = o.last
	}
	q.first = o.first
	q.n += o.n
	*o = sendQueue{}
}

// streamList holds the streams with a peer in one direction, oldest first, linked by
// Request.next.
type streamList struct{ first, last *Request }

func (l *streamList) push(r *Request) {
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
}

// find returns the receive of stream id and its predecessor in the list.
func (l *streamList) find(id uint32) (prev, r *Request) {
	for r = l.first; r != nil && r.from != id; r = r.next {
		prev = r
	}
	return prev, r
}

// remove takes r out. prev is its predecessor, or nil.
func (l *streamList) remove(prev, r *Request) {
	if prev == nil {
		l.first = r.next
	} else {
		prev.next = r.next
	}
	if l.last == r {
		l.last = prev
	}
	r.next = nil
}
