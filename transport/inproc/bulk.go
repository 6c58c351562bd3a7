// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"gompi/transport"
)

// chunkBytes bounds what one Poll copies, and so the time that it holds the lock of a
// transfer: some 15 us.
const chunkBytes = 128 << 10

// Layout of the descriptor of an offer, little-endian:
//
//	0  uint32  descMagic
//	4  uint64  id of the offer to this peer
//	12 uint64  bytes
const (
	descBytes = 20
	descMagic = 0x31706e69 // "inp1" little endian
)

// The states of an offer. They change under its lock; reading needs no lock.
const (
	stateOffered int32 = iota
	stateTaken         // a receiver copies
	stateEnded         // the receiver has finished: bytes and err are final
	stateDropped       // the sender has given up: nobody may copy any more
)

// offer is one bulk transfer, from Offer until both sides know its end.
type offer struct {
	id  uint64 // immutable while in an offerTable
	tok transport.Token
	at  int // index in end.open

	state atomic.Int32
	mu    sync.Mutex // guards the fields below, and the bytes of buf
	buf   []byte
	bytes int64
	err   error
}

// offerTable holds the offers of one end to its peer, by id.
type offerTable struct {
	mu     sync.Mutex
	offers map[uint64]*offer
	nextID uint64
}

// transfer is an accepted offer at its receiver.
type transfer struct {
	o    *offer
	end  *end // the receiver's
	dst  []byte
	tok  transport.Token
	done int
	err  error
}

// Offer implements transport.Bulk.
func (t *Transport) Offer(s transport.Slot, buf []byte, tok transport.Token, desc []byte) (int, error) {
	e := t.end(s)
	if e.over.Load() {
		return 0, fmt.Errorf("inproc: offer to %v: %w", e.proc(), transport.ErrPeerGone)
	}
	if len(desc) < descBytes {
		return 0, fmt.Errorf("inproc: offer: room of %d bytes for a descriptor of %d", len(desc), descBytes)
	}
	o := t.newOffer()
	o.buf, o.tok = buf, tok
	b := &e.offers
	b.mu.Lock()
	if b.offers == nil {
		b.offers = make(map[uint64]*offer)
	}
	b.nextID++
	o.id = b.nextID
	b.offers[o.id] = o
	b.mu.Unlock()
	o.at = len(e.open)
	e.open = append(e.open, o)
	if e.named == nil {
		e.named = make(map[transport.Token]*offer)
	}
	e.named[tok] = o
	binary.LittleEndian.PutUint32(desc, descMagic)
	binary.LittleEndian.PutUint64(desc[4:], o.id)
	binary.LittleEndian.PutUint64(desc[12:], uint64(len(buf)))
	return descBytes, nil
}

// newOffer returns an offer from the free list, or a new one.
func (t *Transport) newOffer() *offer {
	if k := len(t.freeOffers); k > 0 {
		o := t.freeOffers[k-1]
		t.freeOffers = t.freeOffers[:k-1]
		return o
	}
	return &offer{}
}

// take finds the offer of a descriptor and marks it as taken.
func (b *offerTable) take(desc []byte) (*offer, error) {
	if len(desc) != descBytes || binary.LittleEndian.Uint32(desc) != descMagic {
		return nil, transport.ErrProtocol
	}
	id, size := binary.LittleEndian.Uint64(desc[4:]), binary.LittleEndian.Uint64(desc[12:])
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.offers[id]
	if o == nil {
		return nil, transport.ErrProtocol
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state.Load() != stateOffered || uint64(len(o.buf)) != size {
		return nil, transport.ErrProtocol
	}
	o.state.Store(stateTaken)
	return o, nil
}

// Accept implements transport.Bulk.
func (t *Transport) Accept(s transport.Slot, desc []byte, buf []byte, tok transport.Token) error {
	e := t.end(s)
	if e.over.Load() {
		return fmt.Errorf("inproc: accept from %v: %w", e.proc(), transport.ErrPeerGone)
	}
	o, err := e.peer.offers.take(desc)
	if err != nil {
		return fmt.Errorf("inproc: accept from %v: descriptor %x: %w", e.proc(), desc, err)
	}
	t.transfers = append(t.transfers, transfer{o: o, end: e, dst: buf, tok: tok})
	return nil
}

// Withdraw implements transport.Bulk.
func (t *Transport) Withdraw(s transport.Slot, tok transport.Token) {
	e := t.end(s)
	o := e.named[tok]
	if o == nil {
		return
	}
	o.mu.Lock()
	unused := o.state.Load() == stateOffered
	if unused {
		o.state.Store(stateDropped)
	}
	o.mu.Unlock()
	if unused { // otherwise the peer has misled the engine, and EvBulk follows
		t.closeOffer(e, o.at, true)
	}
}

// closeOffer removes e.open[i]. reuse says that the receiver no longer uses the offer, so it
// may go to the free list.
func (t *Transport) closeOffer(e *end, i int, reuse bool) {
	o := e.open[i]
	e.offers.mu.Lock()
	delete(e.offers.offers, o.id)
	e.offers.mu.Unlock()
	if e.named[o.tok] == o {
		delete(e.named, o.tok)
	}
	last := len(e.open) - 1
	e.open[i], e.open[last] = e.open[last], nil
	if i < last {
		e.open[i].at = i
	}
	e.open = e.open[:last]
	if reuse {
		o.buf, o.bytes, o.err = nil, 0, nil
		o.state.Store(stateOffered)
		t.freeOffers = append(t.freeOffers, o)
	}
}

// pollOffers reports the offers that the peer has finished, or all offers if the pair has
// ended. It returns the number of events.
func (t *Transport) pollOffers(e *end, all bool, ev []transport.Event) int {
	n := 0
	for !all && n < len(ev) {
		o := e.done.pop()
		if o == nil {
			return n
		}
		e.ended.Add(-1)
		ev[n] = transport.Event{Kind: transport.EvBulk, Slot: e.slot, Token: o.tok, Bytes: o.bytes, Err: o.err}
		n++
		t.closeOffer(e, o.at, true)
	}
	for i := len(e.open) - 1; i >= 0 && n < len(ev); i-- {
		o := e.open[i]
		ended := o.state.Load() == stateEnded
		if !ended {
			// This waits for at most one chunk that is being copied.
			o.mu.Lock()
			if ended = o.state.Load() == stateEnded; !ended {
				o.state.Store(stateDropped)
				o.err = e.why
			}
			o.mu.Unlock()
		} else {
			e.ended.Add(-1)
		}
		ev[n] = transport.Event{Kind: transport.EvBulk, Slot: e.slot, Token: o.tok, Bytes: o.bytes, Err: o.err}
		n++
		t.closeOffer(e, i, ended)
	}
	return n
}

// copyChunk copies the next chunk and reports whether the transfer has ended.
func (x *transfer) copyChunk() (ended bool) {
	o := x.o
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state.Load() != stateTaken {
		x.err = x.end.why
		return true
	}
	total := min(len(x.dst), len(o.buf))
	k := min(chunkBytes, total-x.done)
	copy(x.dst[x.done:x.done+k], o.buf[x.done:])
	if x.done += k; x.done < total {
		return false
	}
	x.complete()
	return true
}

// giveUp ends a transfer early.
func (x *transfer) giveUp() {
	x.err = x.end.why
	x.o.mu.Lock()
	defer x.o.mu.Unlock()
	if x.o.state.Load() == stateTaken {
		x.complete()
	}
}

// complete tells the sender the result. The caller holds the offer's lock and must not touch
// the offer afterwards.
func (x *transfer) complete() {
	x.o.bytes, x.o.err = int64(x.done), x.err
	x.o.state.Store(stateEnded)
	x.end.peer.done.push(x.o)
	x.end.peer.ended.Add(1)
	x.end.peer.ring()
}

// doneList holds the offers of one end that its peer has finished, so that the end need not
// search all open ones. It is not used once the pair has ended.
type doneList struct {
	mu   sync.Mutex
	list []*offer
}

func (l *doneList) push(o *offer) {
	l.mu.Lock()
	l.list = append(l.list, o)
	l.mu.Unlock()
}

func (l *doneList) pop() *offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := len(l.list) - 1
	if k < 0 {
		return nil
	}
	o := l.list[k]
	l.list = l.list[:k]
	return o
}

// pollTransfers copies one chunk of one transfer. ev has room for one event.
func (t *Transport) pollTransfers(ev []transport.Event) int {
	t.nextTransfer++
	i := t.nextTransfer % len(t.transfers)
	if !t.transfers[i].copyChunk() {
		return 0
	}
	t.closeTransfer(i, &ev[0])
	return 1
}

// cutTransfers ends the transfers from a peer that is gone. It returns the number of events.
func (t *Transport) cutTransfers(e *end, ev []transport.Event) int {
	n := 0
	for i := len(t.transfers) - 1; i >= 0 && n < len(ev); i-- {
		if t.transfers[i].end == e {
			t.transfers[i].giveUp()
			t.closeTransfer(i, &ev[n])
			n++
		}
	}
	return n
}

// closeTransfer removes transfers[i], which has ended, and reports that in ev.
func (t *Transport) closeTransfer(i int, ev *transport.Event) {
	x := &t.transfers[i]
	*ev = transport.Event{Kind: transport.EvBulk, Slot: x.end.slot, Token: x.tok, Bytes: int64(x.done), Err: x.err}
	last := len(t.transfers) - 1
	*x = t.transfers[last]
	t.transfers[last] = transfer{}
	t.transfers = t.transfers[:last]
}
