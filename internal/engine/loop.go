// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/mem"
	"gompi/internal/wire"
	"gompi/transport"
)

// loop is the transport of a process to itself. Messages to self take the same
// way as all others; the credit bounds what lies here.
type loop struct {
	queue   []loopMessage
	head    int
	shown   int      // queue entries whose payload the last Poll gave out
	blocks  [][]byte // recycled payload memory of loopBlock bytes
	offers  map[transport.Token][]byte
	pending []transport.Event // ends of bulk transfers
}

type loopMessage struct {
	h    wire.Header
	data []byte
}

// loopEager is the largest payload that is copied.
const loopEager = copiedMax

func newLoop(wire.ProcID) *loop { return &loop{offers: map[transport.Token][]byte{}} }

func (l *loop) idle() bool { return len(l.queue) == 0 && len(l.pending) == 0 }

func (l *loop) Caps() transport.Caps {
	return transport.Caps{Name: "self", EagerMax: loopEager, EagerBest: loopEager, Local: true}
}

func (l *loop) Connect(wire.Contact) (transport.Slot, error) { return 0, nil }

func (l *loop) Send(_ transport.Slot, h *wire.Header, p []byte, _ transport.Token) transport.Status {
	var data []byte
	if len(p) > 0 {
		if n := len(l.blocks); n > 0 {
			data, l.blocks = l.blocks[n-1][:len(p)], l.blocks[:n-1]
		} else {
			data = make([]byte, len(p), loopEager)
		}
		copy(data, p)
	}
	l.queue = append(l.queue, loopMessage{*h, data})
	return transport.Sent
}

func (l *loop) Poll(ev []transport.Event) int {
	for i := l.head - l.shown; i < l.head; i++ {
		if d := l.queue[i].data; d != nil {
			l.blocks = append(l.blocks, d)
		}
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
	for n < len(ev) && len(l.pending) > 0 {
		ev[n] = l.pending[0]
		l.pending = l.pending[1:]
		n++
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

func (l *loop) Arm() bool              { return l.head == len(l.queue) && len(l.pending) == 0 }
func (l *loop) Disarm()                {}
func (l *loop) FD() int                { return -1 }
func (l *loop) Fail(transport.Slot)    {}
func (l *loop) Release(transport.Slot) {}
func (l *loop) Flushed() bool          { return true }
func (l *loop) Close() error           { return nil }

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
	n := int64(mem.Copy(buf, src))
	l.pending = append(l.pending,
		transport.Event{Kind: transport.EvBulk, Token: from, Bytes: n},
		transport.Event{Kind: transport.EvBulk, Token: tok, Bytes: n})
	return nil
}

func (l *loop) Withdraw(_ transport.Slot, tok transport.Token) { delete(l.offers, tok) }
