// SPDX-License-Identifier: Apache-2.0

package shm

import "gompi/transport"

// manyBulks is the length above which a list uses maps.
const manyBulks = 32

// bulkList holds the transfers with a peer in one direction, in the order in which they
// began, linked by bulk.prev and next. Tokens come from the engine; those that are not 0
// differ.
type bulkList struct {
	first, last *bulk
	n           int
	byID        map[uint64]*bulk // nil while the list is short
	byToken     map[transport.Token]*bulk
}

func (l *bulkList) add(b *bulk) {
	b.prev, b.next = l.last, nil
	if l.last != nil {
		l.last.next = b
	} else {
		l.first = b
	}
	l.last = b
	l.n++
	switch {
	case l.byID != nil:
		l.byID[b.id], l.byToken[b.tok] = b, b
	case l.n > manyBulks:
		l.byID, l.byToken = make(map[uint64]*bulk, 2*l.n), make(map[transport.Token]*bulk, 2*l.n)
		for b := l.first; b != nil; b = b.next {
			l.byID[b.id], l.byToken[b.tok] = b, b
		}
	}
}

func (l *bulkList) remove(b *bulk) {
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		l.first = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		l.last = b.prev
	}
	b.prev, b.next = nil, nil
	if l.n--; l.byID == nil {
		return
	}
	delete(l.byID, b.id)
	delete(l.byToken, b.tok)
	if l.n == 0 {
		l.byID, l.byToken = nil, nil
	}
}

// find returns transfer id, or nil.
func (l *bulkList) find(id uint64) *bulk {
	if l.byID != nil {
		return l.byID[id]
	}
	b := l.first
	for b != nil && b.id != id {
		b = b.next
	}
	return b
}

// findToken returns the transfer with a token, which is not 0.
func (l *bulkList) findToken(tok transport.Token) *bulk {
	if l.byToken != nil {
		return l.byToken[tok]
	}
	b := l.first
	for b != nil && b.tok != tok {
		b = b.next
	}
	return b
}

// bulkQueue is a queue of transfers, linked by bulk.behind. The first is being moved.
type bulkQueue struct{ first, last *bulk }

func (q *bulkQueue) push(b *bulk) {
	if q.first == nil {
		q.first = b
	} else {
		q.last.behind = b
	}
	q.last = b
}

func (q *bulkQueue) pop() (b *bulk) {
	b = q.first
	q.first, b.behind = b.behind, nil
	return b
}
