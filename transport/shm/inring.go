// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// inRing is the receiver's end of a fast box. The first cache line has what an
// empty Poll touches, and what most messages need.
type inRing struct {
	next    *atomic.Uint64 // word of the next slot
	seq     uint32         // the sequence that it will show
	dataPos uint32
	freed   uint32 // dataPos without the payloads that are still in use
	slots   []slot
	data    []byte

	// Immutable, but for index and dirty.
	t     *Transport
	conn  *conn
	box   *box
	edge  edge
	eager int
	index int  // in Transport.rings; -1: removed
	dirty bool // in Transport.delivered

	// The duplex line.
	duplex       bool        // the next message may come there
	took, echo   uint64      // messages taken there by this side, and by the peer: as taken
	half         *half       // of the peer; nil: not known
	duplexHeader wire.Header // the header that the next message there takes for granted
	duplexWords  [3]uint64   // a copy of the last message

	published, publishedData uint32 // progress, as the sender can see it
	lazy, lazyData           uint32 // publish when more than this is consumed
	mem                      []byte
	entry, gen               uint32 // of the directory
}

func newInRing(t *Transport, c *conn, m []byte, entry uint32, u use, g shape) *inRing {
	r := &inRing{t: t, conn: c, mem: m, entry: entry, gen: u.generation(), eager: int(g.eager),
		seq: u.start(), published: u.start(), lazy: g.slots / 4, lazyData: g.lazyData()}
	r.box, r.slots, r.data = viewBox(m, g)
	r.advance()
	return r
}

// advance steps past the slot that was read.
func (r *inRing) advance() {
	r.next = &r.slots[r.seq&uint32(len(r.slots)-1)].word
	r.seq++
}

// release returns consumed space to the sender. It is lazy, because the sender's next read
// of the progress moves a cache line.
func (r *inRing) release() {
	pos := r.seq - 1
	r.freed = r.dataPos
	if pos-r.published >= r.lazy || r.dataPos-r.publishedData > r.lazyData || r.box.want.Load() != 0 {
		r.publish(pos)
	}
}

// publish stores the progress and wakes the sender if that is blocked.
func (r *inRing) publish(pos uint32) {
	r.published, r.publishedData = pos, r.dataPos
	r.edge.release()
	r.box.progress.Store(uint64(pos)<<32 | uint64(r.dataPos))
	if r.box.want.Load() != 0 {
		r.box.want.Store(0)
		if o := &r.conn.out; o.box != nil {
			wake(o.head, o.bell)
		}
	}
}

// read takes the message whose word is w. It returns false if the length is impossible.
func (r *inRing) read(w uint64) (k kind, s *slot, p []byte, ok bool) {
	r.edge.acquire()
	k, size := splitWord(w)
	s = &r.slots[(r.seq-1)&uint32(len(r.slots)-1)]
	if o, ack := &r.conn.out, s.ack; ack != o.dataDone {
		o.freed(ack)
	}
	r.echo = w & taken
	if r.duplex = w&follows != 0 && r.half != nil; r.duplex {
		r.duplexHeader = s.head
	}
	if size <= inlineMax {
		p = s.inline[:size:size]
	} else {
		if size > r.eager {
			return k, s, nil, false
		}
		p = r.inData(w, size)
	}
	r.advance()
	return k, s, p, true
}

// inData returns the n bytes of the next payload in the data ring; w is its word.
func (r *inRing) inData(w uint64, n int) []byte {
	if w&earlyLap != 0 {
		r.dataPos = lap(r.dataPos, uint32(len(r.data)))
	}
	start, end := place(r.dataPos, n, uint32(len(r.data)))
	off := int(start & uint32(len(r.data)-1))
	r.dataPos = end
	return r.data[off : off+n : off+n]
}

// Take implements transport.FastBox. It leaves control messages and impossible ones to
// Poll.
func (r *inRing) Take(h *wire.Header, turns int) ([]byte, bool) {
	if r.dirty {
		r.release()
	}
	next, seq := r.next, r.seq
	w := next.Load()
	for ; uint32(w>>32) != seq; w = next.Load() {
		if w, yes := r.duplexNext(); yes {
			if r.conn.readClosed {
				return nil, false
			}
			head, p, ok := r.readDuplex(w)
			if !ok {
				return nil, false
			}
			*h = *head
			r.deliver()
			return p, true
		}
		if turns--; turns <= 0 {
			return nil, false
		}
		// Without the pause the line is requested so often that the sender gets it later:
		// 0.11-0.15 us a message instead of 0.10.
		wait.Pause()
	}
	if k, size := splitWord(w); k != kindData || size > r.eager || r.conn.readClosed {
		return nil, false
	}
	_, s, p, _ := r.read(w)
	*h = s.head
	r.deliver()
	return p, true
}

// deliver makes the next Poll release what was handed out.
func (r *inRing) deliver() {
	if !r.dirty {
		r.dirty = true
		r.t.delivered = append(r.t.delivered, r)
	}
}

// FastBox implements transport.FastBoxes.
func (t *Transport) FastBox(s transport.Slot) transport.FastBox {
	if c := t.conn(s); c != nil && c.state == connUp && c.in != nil {
		return c.in
	}
	return nil
}

// drain moves messages of r to ev[n:] and handles control messages. It returns the new n.
func (t *Transport) drain(r *inRing, ev []transport.Event, n int) int {
	if r.conn.readClosed {
		return n
	}
	before, first, moved := r.seq, n, 0
	for budget := len(r.slots); budget > 0 && n < len(ev); budget-- {
		w := r.next.Load()
		if uint32(w>>32) != r.seq {
			w, yes := r.duplexNext()
			if !yes {
				break
			}
			h, p, ok := r.readDuplex(w)
			if !ok {
				t.offend(r.conn)
				break
			}
			e := &ev[n]
			e.Kind, e.Slot, e.Header, e.Payload = transport.EvRecv, r.conn.slot, *h, p
			n++
			// The next message might overwrite it, so it waits for the next Poll.
			break
		}
		if n > first && r.unasked(w) {
			break
		}
		k, s, p, ok := r.read(w)
		if !ok {
			t.offend(r.conn)
			break
		}
		if k == kindData {
			e := &ev[n]
			e.Kind, e.Slot, e.Header, e.Payload = transport.EvRecv, r.conn.slot, s.head, p
			n++
		} else if !t.control(r.conn, k, s.head, p) {
			break
		} else if moved += len(p); moved+r.eager > maxChunk {
			break // pieces of transfers were copied, and other goroutines wait for the engine's lock
		}
	}
	if r.seq != before {
		r.deliver()
	}
	return n
}

// control handles a control message of a peer. It returns false if no more may be read from
// the peer.
func (t *Transport) control(c *conn, k kind, h wire.Header, p []byte) bool {
	ok := true
	switch k {
	case kindBye:
		t.parted(c, transport.ErrPeerGone)
		return false
	case kindCut:
		t.parted(c, transport.ErrCut)
		return false
	case kindCheck:
	case kindAccept:
		ok = t.onAccept(c, h)
	case kindDone:
		ok = t.onDone(c, h)
	case kindFallback:
		ok = t.onFallback(c, h)
	case kindPiece:
		ok = t.onPiece(c, h, p)
	case kindPush:
		ok = t.onPush(c, h, p)
	case kindRefuse:
		ok = t.onRefuse(c, h)
	default:
		ok = false
	}
	if !ok {
		t.offend(c)
	}
	return ok
}

// parted handles the last message of a peer. The peer makes no copies any more.
func (t *Transport) parted(c *conn, err error) {
	c.bye, c.readClosed = true, true
	t.fail(c, err)
}

// offend ends a connection whose peer broke the protocol of this transport.
func (t *Transport) offend(c *conn) { t.cut(c, transport.ErrProtocol) }

// ready reports whether a message waits.
func (r *inRing) ready() bool { return r.comes() && !r.conn.readClosed }

// comes reports whether there is a message, even if it may not be read.
func (r *inRing) comes() bool {
	if uint32(r.next.Load()>>32) == r.seq {
		return true
	}
	_, yes := r.duplexNext()
	return yes
}
