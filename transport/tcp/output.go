// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"

	"gompi/transport"
)

const (
	blockBytes = 16 << 10
	freeBlocks = 64 // free blocks that a transport keeps

	// copyMax is the size up to which a payload is copied when the socket is full. A larger one
	// is queued in place.
	copyMax = 8 << 10
	// An output beyond these limits answers Full; EvWritable follows at half of them.
	queueBytes = 1 << 20
	queueRefs  = 64
)

// segment is a part of the output that the kernel has not taken.
type segment struct {
	b     []byte // remaining bytes
	block []byte // the block under b; nil if b is the user's memory
	tok   transport.Token
	bulk  *bulkOut // transfer of which b is a chunk
}

// output is the queue of what waits to be sent to one peer.
type output struct {
	segments []segment
	first    int // index of the first segment that is not sent
	copied   int // bytes in blocks
	refs     int // messages that are queued in place
}

func (o *output) empty() bool { return o.first == len(o.segments) }

func (o *output) full() bool { return o.copied >= queueBytes || o.refs >= queueRefs }

// drained reports whether enough has been sent to tell a refused caller.
func (o *output) drained() bool { return o.copied <= queueBytes/2 && o.refs <= queueRefs/2 }

func (o *output) push(p segment) {
	if o.first == len(o.segments) {
		o.segments, o.first = o.segments[:0], 0
	} else if o.first > 64 && o.first > len(o.segments)/2 {
		n := copy(o.segments, o.segments[o.first:])
		clear(o.segments[n:])
		o.segments, o.first = o.segments[:n], 0
	}
	o.segments = append(o.segments, p)
}

// copyIn appends a copy of b.
func (t *Transport) copyIn(o *output, b []byte) {
	o.copied += len(b)
	for len(b) > 0 {
		var last *segment
		if !o.empty() {
			last = &o.segments[len(o.segments)-1]
		}
		if last == nil || last.block == nil || len(last.b) == cap(last.b) {
			block := t.newBlock()
			o.push(segment{b: block[:0], block: block})
			last = &o.segments[len(o.segments)-1]
		}
		n := min(len(b), cap(last.b)-len(last.b))
		last.b = append(last.b, b[:n]...)
		b = b[n:]
	}
}

func (t *Transport) newBlock() []byte {
	if k := len(t.blocks); k > 0 {
		b := t.blocks[k-1]
		t.blocks = t.blocks[:k-1]
		return b
	}
	return make([]byte, blockBytes)
}

// gather adds the front of o to t.vec: a chunk, or some messages. It reports whether a part to be
// spliced follows.
func (t *Transport) gather(l *link, o *output) (more bool) {
	for i := o.first; i < len(o.segments); i++ {
		q := &o.segments[i]
		n := t.copiedBytes(l, q)
		if !t.vec.add(q.b[:n]) {
			return false
		}
		if n < len(q.b) {
			return true
		}
	}
	return false
}

// consume removes n bytes that the kernel has taken, and reports completed payloads. The chunk of
// a transfer without bytes is sent when everything before it is sent.
func (t *Transport) consume(p *peer, n int) {
	o := &p.out
	for !o.empty() {
		q := &o.segments[o.first]
		if n == 0 && (q.bulk == nil || len(q.b) > 0) {
			break
		}
		k := min(n, len(q.b))
		n -= k
		q.b = q.b[k:]
		if q.block != nil {
			o.copied -= k
		}
		if len(q.b) == 0 {
			t.retire(p)
		}
	}
}

// takeOver returns the output of p with whole frames. It copies the data that is in the user's
// memory and gives that memory back.
func (t *Transport) takeOver(p *peer) output {
	o := p.out
	p.out = output{}
	for i := o.first; i < len(o.segments); i++ {
		q := &o.segments[i]
		if q.block != nil {
			continue
		}
		if q.bulk == nil {
			t.emit(p, transport.Event{Kind: transport.EvSent, Token: q.tok})
		}
		*q = segment{b: bytes.Clone(q.b)}
	}
	return o
}

// retire ends the first segment of p's output, sent or not.
func (t *Transport) retire(p *peer) {
	o := &p.out
	q := o.segments[o.first]
	o.segments[o.first] = segment{}
	o.first++
	switch {
	case q.block != nil:
		o.copied -= len(q.b)
		if len(t.blocks) < freeBlocks {
			t.blocks = append(t.blocks, q.block)
		}
	case q.bulk != nil:
		if len(q.b) == 0 {
			t.bulkSent(p, q.bulk)
		}
	default:
		o.refs--
		t.emit(p, transport.Event{Kind: transport.EvSent, Token: q.tok})
	}
}
