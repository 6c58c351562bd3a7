// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/bytepool"
	"gompi/internal/base/wire"
	"gompi/internal/host/mem"
	"gompi/transport"
)

// loop is the transport of a process to itself. Messages to self take the same path as all
// others. The credit bounds how many lie here.
type loop struct {
	wake  func()
	armed bool

	queue     []loopMessage
	head      int
	shown     int // queue entries whose payload the last Poll has returned
	blocks    bytepool.Pool
	offers    map[transport.Token][]byte
	transfers []loopTransfer // accepted, oldest first; the transfers from index moving on go on
	moving    int
}

type loopMessage struct {
	h    wire.Header
	data []byte
}

// loopTransfer is a bulk transfer under way. Both ends get an event; told counts them.
type loopTransfer struct {
	dst, src []byte
	from, to transport.Token
	done     int
	told     int
}

const (
	// loopEager is the largest payload that is copied.
	loopEager = copiedMax
	// loopPiece is how much one Poll copies while it holds the engine's lock.
	loopPiece = 256 << 10
)

func newLoop(wake func()) *loop { return &loop{wake: wake, offers: map[transport.Token][]byte{}} }

func (l *loop) idle() bool { return len(l.queue) == 0 && len(l.transfers) == 0 }

// ring wakes a process that sleeps: Poll has something to do.
func (l *loop) ring() {
	if l.armed {
		l.armed = false
		l.wake()
	}
}

func (l *loop) Caps() transport.Caps {
	return transport.Caps{Name: "self", EagerMax: loopEager, EagerBest: loopEager, Local: true}
}

func (l *loop) Connect(wire.Contact) (transport.Slot, error) { return 0, nil }

func (l *loop) Send(_ transport.Slot, h *wire.Header, p []byte, _ transport.Token) transport.Status {
	data := l.blocks.Get(len(p))
	copy(data, p)
	l.queue = append(l.queue, loopMessage{*h, data})
	l.ring()
	return transport.Sent
}

func (l *loop) Poll(ev []transport.Event) int {
	for i := l.head - l.shown; i < l.head; i++ {
		l.blocks.Put(l.queue[i].data)
		l.queue[i] = loopMessage{}
	}
	l.shown = 0
	switch {
	case l.head == len(l.queue):
		l.queue, l.head = l.queue[:0], 0
	case l.head >= 256 && l.head >= len(l.queue)/2:
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	n := 0
	if len(l.transfers) > 0 {
		n = l.move(ev)
	}
	for n < len(ev) && l.head < len(l.queue) {
		m := &l.queue[l.head]
		ev[n].Kind, ev[n].Slot, ev[n].Header, ev[n].Payload = transport.EvRecv, 0, m.h, m.data
		l.head++
		l.shown++
		n++
	}
	return n
}

// move copies a piece of the oldest transfer and reports its end.
func (l *loop) move(ev []transport.Event) (n int) {
	for room := loopPiece; room > 0 && l.moving < len(l.transfers); {
		x := &l.transfers[l.moving]
		if k := min(room, len(x.dst)-x.done); k > 0 {
			mem.Copy(x.dst[x.done:x.done+k], x.src[x.done:])
			x.done += k
			room -= k
		}
		if x.done < len(x.dst) {
			return n
		}
		for ; x.told < 2; x.told++ {
			if n == len(ev) {
				return n
			}
			ev[n] = transport.Event{Kind: transport.EvBulk, Token: [2]transport.Token{x.from, x.to}[x.told], Bytes: int64(x.done)}
			n++
		}
		*x = loopTransfer{}
		l.moving++
	}
	if l.moving == len(l.transfers) {
		l.transfers, l.moving = l.transfers[:0], 0
	}
	return n
}

func (l *loop) Arm() bool {
	l.armed = l.head == len(l.queue) && len(l.transfers) == 0
	return l.armed
}

func (l *loop) Disarm()                { l.armed = false }
func (l *loop) FD() int                { return -1 }
func (l *loop) Fail(transport.Slot)    {}
func (l *loop) Release(transport.Slot) {}
func (l *loop) Flushed() bool          { return len(l.transfers) == 0 }
func (l *loop) Close() error           { return nil }

// Cut implements transport.Transport. A process does not cut itself off.
func (l *loop) Cut(transport.Slot, error) {}

func (l *loop) Offer(_ transport.Slot, buf []byte, tok transport.Token, desc []byte) (int, error) {
	l.offers[tok] = buf
	binary.LittleEndian.PutUint64(desc, uint64(tok))
	return 8, nil
}

func (l *loop) Accept(_ transport.Slot, desc []byte, buf []byte, tok transport.Token) error {
	if len(desc) != 8 {
		return fmt.Errorf("%w: descriptor of %d bytes", transport.ErrProtocol, len(desc))
	}
	from := transport.Token(binary.LittleEndian.Uint64(desc))
	src, ok := l.offers[from]
	if !ok {
		return fmt.Errorf("%w: unknown offer %d", transport.ErrProtocol, from)
	}
	delete(l.offers, from)
	l.transfers = append(l.transfers, loopTransfer{dst: buf[:min(len(buf), len(src))], src: src, from: from, to: tok})
	l.ring()
	return nil
}

func (l *loop) Withdraw(_ transport.Slot, tok transport.Token) { delete(l.offers, tok) }
