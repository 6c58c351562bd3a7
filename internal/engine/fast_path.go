// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"gompi/internal/base/credit"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// Fast paths for small messages between two ranks that have one goroutine each in the
// library. They use no request, no event and no matching table. Their result is that of the
// general path. Whenever something else is under way they decline, and the caller takes the
// general path.

// SendNow sends a small standard-mode message if the transport takes it at once. False
// means that nothing happened. It is sends.sendNow for plane P2P, written out: one function
// with the plane and the flags as arguments takes 2 ns of 100 more.
func (e *Engine) SendNow(c *Context, b buffer.Buf, dest, tag int32) bool {
	n := b.Bytes()
	e.mu.Lock()
	p := c.peers[dest]
	if p == nil || !p.ready() || n > p.link.short || b.Strided() || c.faults != nil || e.closed {
		e.mu.Unlock()
		return false
	}
	cost := credit.Units(int(n))
	if !p.credit.Affords(cost) {
		e.mu.Unlock()
		return false
	}
	key := &c.mine
	e.head = wire.Header{key.W0, key.W1, key.W2 | uint64(uint32(tag)), word3(kindEager, 0, p.credit.Owed()) | elements(b.Type.Kind).word()}
	if p.link.Send(p.slot, &e.head, b.Flat(), 0) != transport.Sent {
		e.mu.Unlock()
		return false
	}
	p.credit.ClearOwed()
	p.credit.Spend(cost)
	e.counters.Sent++
	e.counters.SentBytes += uint64(n)
	e.mu.Unlock()
	return true
}

const (
	// boxTurns is how often a receive looks at its peer's fast box before the process polls
	// everything. boxRounds is how often it does that.
	boxTurns  = 64
	boxRounds = 64
)

// RecvNow receives a plain message of one source and tag if it comes while nothing else is
// under way in the process. It spins as long as the policy allows. It returns the message's
// length. If got is false, the caller must take the general path; nothing is lost.
func (e *Engine) RecvNow(c *Context, b buffer.Buf, source, tag int32) (n int64, got bool) {
	e.mu.Lock()
	p := c.peers[source]
	if p == nil || p.box == nil || e.prog.Led() || c.faults != nil || e.closed ||
		e.table.PostedLen() != 0 || e.table.ArrivedLen() != 0 {
		if p == nil { // it may have sent, though nothing was sent to it yet
			c.peers[source] = e.peers[c.Targets().At(int(source))]
		}
		e.mu.Unlock()
		return 0, false
	}
	k := &c.keys[wire.TrafficP2P]
	key := match.Key{W0: k.W0, W1: k.W1, W2: k.W2 | uint64(source)<<32 | uint64(tag)}
	low := uint32(word3(kindEager, 0, 0) | elements(b.Type.Kind).word())
	rounds, turns := min(boxRounds, e.prog.Policy.Spin/32), boxTurns
	if rounds == 0 { // no time to spin, but it may be here
		rounds, turns = 1, 1
	}
	e.prog.Busy()
	e.prog.Lead()
	for range rounds {
		if payload, ok := p.box.Take(&e.in, turns); ok {
			if e.in[0] != key.W0 || e.in[1] != key.W1 || e.in[2] != key.W2 || uint32(e.in[3]) != low || int64(len(payload)) > b.Bytes() {
				e.takeOther(p, payload)
				break
			}
			n = int64(len(payload))
			if n == 8 && !b.Strided() {
				binary.NativeEndian.PutUint64(b.Flat(), binary.NativeEndian.Uint64(payload))
			} else {
				e.fill(b, payload)
			}
			if aux := uint32(e.in[3] >> 32); aux != 0 && !e.credit.Take(&p.credit, aux, 0) {
				e.overCredit(p)
			}
			if e.credit.GiveBackEager(&p.credit, credit.Units(int(n))) { // a fast box is never the loop's
				e.returnCredit(p)
			}
			e.counters.Received++
			e.counters.ReceivedBytes += uint64(n)
			got = true
			break
		}
		e.progress()
		if e.mu.Contended() || p.box == nil || c.faults != nil || e.table.ArrivedLen() != 0 {
			break
		}
	}
	e.prog.Attend()
	e.prog.Leave()
	e.mu.Unlock()
	return n, got
}

// takeOther handles a message from a fast box that the receive did not wait for.
func (e *Engine) takeOther(p *Peer, payload []byte) {
	ev := &e.events[0]
	ev.Kind, ev.Slot, ev.Header, ev.Payload = transport.EvRecv, p.slot, e.in, payload
	e.arrive(p.link, ev)
}
