// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// node is one process of a test: a stand-in for an engine that checks every
// event against the contract. Only one goroutine at a time uses it.
type node struct {
	w    *world
	proc wire.ProcID
	tr   transport.Transport
	caps transport.Caps

	wakes  <-chan struct{}
	sleepy bool // sleep by Arm when there is nothing to do
	sleeps int  // how often that happened
	gone   bool // killed or closed

	ev    []transport.Event
	peers map[wire.ProcID]*peer
	slots map[transport.Slot]*peer
	ops   map[transport.Token]*op
	tok   transport.Token

	// scratch holds the payload of the send under way.
	scratch []byte
	// raw, if set, takes received messages instead of the suite's checks.
	raw func(p *peer, h wire.Header, payload []byte) error
	// onOffer, if set, is called for an offer instead of keeping it.
	onOffer func(p *peer, o offer) error
}

// peer is a node's record of another node.
type peer struct {
	proc      wire.ProcID
	slot      transport.Slot
	connected bool // by this node
	up        bool // EvUp came
	full      bool // Send said Full and no EvWritable came since
	down      bool
	err       error // of EvDown

	sent, got uint64 // messages accepted, messages received
	data      uint64 // of got: data messages
	offers    []offer
}

// offer is a bulk offer received and not yet accepted.
type offer struct {
	desc  []byte
	tok   uint64 // the sender's
	bytes int
}

type opKind uint8

const (
	opQueued opKind = iota
	opOffer
	opAccept
)

// op is an operation that ends with an event.
type op struct {
	kind  opKind
	peer  *peer
	buf   []byte // queued payload
	done  bool
	bytes int64
	err   error
}

func (n *node) String() string { return fmt.Sprintf("process %d", n.proc.Serial) }

// peer returns the other node, connected.
func (n *node) peer(of *node) (*peer, error) {
	p := n.peers[of.proc]
	if p != nil && p.connected {
		return p, nil
	}
	s, err := n.tr.Connect(n.w.contact(of.proc, n.proc))
	if err != nil {
		return nil, fmt.Errorf("%v: Connect to %v: %w", n, of, err)
	}
	if p != nil {
		if s != p.slot {
			return nil, fmt.Errorf("%v: Connect to %v gives slot %d, EvUp gave %d", n, of, s, p.slot)
		}
		p.connected = true
		return p, nil
	}
	if q := n.slots[s]; q != nil {
		return nil, fmt.Errorf("%v: Connect to %v gives slot %d, which belongs to %v", n, of, s, q.proc)
	}
	p = &peer{proc: of.proc, slot: s, connected: true}
	n.peers[of.proc], n.slots[s] = p, p
	return p, nil
}

// token makes a token for a new operation.
func (n *node) token(o *op) transport.Token {
	n.tok++
	n.ops[n.tok] = o
	return n.tok
}

// trySend passes one message to the transport. payload nil means data by fill.
// Every second of these is written into memory of Reserve, if there is a Reserver.
func (n *node) trySend(p *peer, kind uint8, arg uint64, bytes int, payload []byte) (transport.Status, error) {
	if r, ok := n.tr.(transport.Reserver); ok && payload == nil && bytes > 0 && p.sent%2 == 1 {
		return n.tryReserve(r, p, kind, arg, bytes)
	}
	m := message{seq: p.sent, kind: kind, bytes: bytes, arg: arg, from: n.proc, to: p.proc}
	size := bytes
	if payload != nil {
		size = len(payload)
	}
	if cap(n.scratch) < size {
		n.scratch = make([]byte, n.caps.EagerMax)
	}
	buf := n.scratch[:size]
	if payload != nil {
		copy(buf, payload)
	} else {
		fill(buf, m.seed())
	}
	st, err := n.rawSend(p, m.header(), buf)
	if st == transport.Sent || st == transport.Queued {
		p.sent++
	}
	return st, err
}

// tryReserve is trySend of data by fill through reserved memory.
func (n *node) tryReserve(r transport.Reserver, p *peer, kind uint8, arg uint64, bytes int) (transport.Status, error) {
	mem, st := r.Reserve(p.slot, bytes)
	switch st {
	case transport.Sent:
		if len(mem) != bytes {
			return st, fmt.Errorf("%v: Reserve gives %d bytes, want %d", n, len(mem), bytes)
		}
		m := message{seq: p.sent, kind: kind, bytes: bytes, arg: arg, from: n.proc, to: p.proc}
		fill(mem, m.seed())
		h := m.header()
		r.Commit(p.slot, &h, mem)
		p.sent++
	case transport.Full:
		p.full = true
	case transport.Broken:
	default:
		return st, fmt.Errorf("%v: Reserve gives status %d", n, st)
	}
	return st, nil
}

// rawSend sends buf, which must be n.scratch or the caller's for good.
func (n *node) rawSend(p *peer, h wire.Header, buf []byte) (transport.Status, error) {
	o := &op{kind: opQueued, peer: p, buf: buf}
	tok := n.token(o)
	st := n.tr.Send(p.slot, &h, buf, tok)
	h = wire.Header{^h[0], ^h[1], ^h[2], ^h[3]}
	switch st {
	case transport.Sent:
		scribble(buf)
		delete(n.ops, tok)
	case transport.Queued:
		n.scratch = nil // the transport's until EvSent
	case transport.Full:
		p.full = true
		delete(n.ops, tok)
	case transport.Broken:
		delete(n.ops, tok)
	default:
		return st, fmt.Errorf("%v: Send gives status %d", n, st)
	}
	return st, nil
}

// scribble makes a payload that is read too late look damaged.
func scribble(p []byte) {
	if len(p) == 0 {
		return
	}
	p[0] = scribbled
	for k := 1; k < len(p); k *= 2 { // copy is quick also under the race detector
		copy(p[k:], p[:k])
	}
}

const scribbled = 0xdb

// errBroken: a send was refused for good.
var errBroken = errors.New("Send says Broken")

// sendMsg is trySend that waits while the peer is full.
func (n *node) sendMsg(p *peer, kind uint8, arg uint64, bytes int, payload []byte) error {
	for {
		st, err := n.trySend(p, kind, arg, bytes, payload)
		switch {
		case err != nil:
			return err
		case st == transport.Broken:
			return fmt.Errorf("%v: to %v: %w", n, p.proc, errBroken)
		case st != transport.Full:
			return nil
		}
		what := fmt.Sprintf("%v waits for EvWritable of process %d", n, p.proc.Serial)
		if err := n.until(what, func() bool { return !p.full || p.down }); err != nil {
			return err
		}
	}
}

// send sends one data message.
func (n *node) send(p *peer, bytes int) error { return n.sendMsg(p, kindData, 0, bytes, nil) }

// offer offers buf and tells the peer. The op ends with EvBulk.
func (n *node) offer(p *peer, buf []byte) (*op, transport.Token, error) {
	o := &op{kind: opOffer, peer: p}
	tok := n.token(o)
	desc := make([]byte, transport.MaxDesc)
	k, err := n.tr.Offer(p.slot, buf, tok, desc)
	if err != nil {
		delete(n.ops, tok)
		return nil, 0, fmt.Errorf("%v: Offer of %d bytes: %w", n, len(buf), err)
	}
	if k < 0 || k > len(desc) {
		return nil, 0, fmt.Errorf("%v: Offer says a descriptor of %d bytes", n, k)
	}
	return o, tok, n.sendMsg(p, kindOffer, uint64(tok), len(buf), desc[:k:k])
}

// accept starts to receive an offer.
func (n *node) accept(p *peer, desc, buf []byte) (*op, error) {
	o := &op{kind: opAccept, peer: p}
	tok := n.token(o)
	d := bytes.Clone(desc)
	err := n.tr.Accept(p.slot, d, buf, tok)
	scribble(d)
	if err != nil {
		delete(n.ops, tok)
		return nil, fmt.Errorf("%v: Accept: %w", n, err)
	}
	return o, nil
}

// withdraw ends an offer that is known to be unaccepted.
func (n *node) withdraw(p *peer, tok transport.Token) {
	delete(n.ops, tok)
	n.tr.Withdraw(p.slot, tok)
}

// release forgets a peer.
func (n *node) release(p *peer) {
	n.tr.Release(p.slot)
	delete(n.slots, p.slot)
	delete(n.peers, p.proc)
}

// poll polls once and checks what came.
func (n *node) poll() (int, error) {
	k := n.tr.Poll(n.ev)
	if k < 0 || k > len(n.ev) {
		return 0, fmt.Errorf("%v: Poll of %d events returns %d", n, len(n.ev), k)
	}
	for i := range n.ev[:k] {
		if err := n.take(&n.ev[i]); err != nil {
			return k, fmt.Errorf("%v: event %d of %d: %w", n, i, k, err)
		}
		n.ev[i] = transport.Event{}
	}
	return k, nil
}

// take checks one event and records it.
func (n *node) take(e *transport.Event) error {
	p := n.slots[e.Slot]
	if e.Kind == transport.EvUp {
		return n.takeUp(e, p)
	}
	if p == nil {
		return fmt.Errorf("kind %d of slot %d, which is not known", e.Kind, e.Slot)
	}
	if p.down {
		return fmt.Errorf("kind %d of %v after its EvDown", e.Kind, p.proc)
	}
	switch e.Kind {
	case transport.EvRecv:
		return n.takeRecv(p, e)
	case transport.EvSent, transport.EvBulk:
		return n.takeDone(p, e)
	case transport.EvWritable:
		if !p.full {
			return fmt.Errorf("EvWritable of %v, which was not full", p.proc)
		}
		p.full = false
	case transport.EvDown:
		if e.Err == nil {
			return fmt.Errorf("EvDown of %v without Err", p.proc)
		}
		for tok, o := range n.ops {
			if o.peer == p && !o.done {
				return fmt.Errorf("EvDown of %v leaves operation %d (kind %d) unanswered", p.proc, tok, o.kind)
			}
		}
		p.down, p.err, p.full = true, e.Err, false
	default:
		return fmt.Errorf("unknown kind %d", e.Kind)
	}
	return nil
}

func (n *node) takeUp(e *transport.Event, p *peer) error {
	if p != nil {
		return fmt.Errorf("EvUp of %v in slot %d, which is %v's", e.Proc, e.Slot, p.proc)
	}
	if q := n.peers[e.Proc]; q != nil {
		return fmt.Errorf("EvUp of %v in slot %d: it has slot %d (connected by us: %v)", e.Proc, e.Slot, q.slot, q.connected)
	}
	if n.w.byProc(e.Proc) == nil {
		return fmt.Errorf("EvUp of %v, which is no process of this test", e.Proc)
	}
	p = &peer{proc: e.Proc, slot: e.Slot, up: true}
	n.peers[e.Proc], n.slots[e.Slot] = p, p
	return nil
}

func (n *node) takeRecv(p *peer, e *transport.Event) error {
	if len(e.Payload) > n.caps.EagerMax {
		return fmt.Errorf("payload of %d bytes, EagerMax is %d", len(e.Payload), n.caps.EagerMax)
	}
	if n.raw != nil {
		p.got++
		return n.raw(p, e.Header, e.Payload)
	}
	m, err := readMessage(e.Header, p.got, p.proc, n.proc)
	if err != nil {
		return fmt.Errorf("from %v: %w", p.proc, err)
	}
	p.got++
	if m.kind == kindOffer {
		o := offer{desc: bytes.Clone(e.Payload), tok: m.arg, bytes: m.bytes}
		if n.onOffer != nil {
			return n.onOffer(p, o)
		}
		p.offers = append(p.offers, o)
		return nil
	}
	p.data++
	if len(e.Payload) != m.bytes {
		return fmt.Errorf("from %v: message %d has %d bytes, want %d", p.proc, m.seq, len(e.Payload), m.bytes)
	}
	if err := checkFill(e.Payload, m.seed()); err != nil {
		return fmt.Errorf("from %v: message %d: %w", p.proc, m.seq, err)
	}
	return nil
}

func (n *node) takeDone(p *peer, e *transport.Event) error {
	o := n.ops[e.Token]
	if o == nil {
		return fmt.Errorf("kind %d of %v with token %d, which is not open", e.Kind, p.proc, e.Token)
	}
	if o.peer != p {
		return fmt.Errorf("token %d ended by slot %d, but it belongs to slot %d", e.Token, e.Slot, o.peer.slot)
	}
	if (e.Kind == transport.EvSent) != (o.kind == opQueued) {
		return fmt.Errorf("token %d ended by kind %d, but it is an operation of kind %d", e.Token, e.Kind, o.kind)
	}
	delete(n.ops, e.Token)
	o.done, o.bytes, o.err = true, e.Bytes, e.Err
	scribble(o.buf)
	return nil
}

// dump describes the node for a failed wait.
func (n *node) dump(b *strings.Builder) {
	fmt.Fprintf(b, "  %v: gone=%v sleeps=%d", n, n.gone, n.sleeps)
	if n.gone {
		b.WriteByte('\n')
		return
	}
	fmt.Fprintf(b, " flushed=%v\n", n.tr.Flushed())
	for tok, o := range n.ops {
		fmt.Fprintf(b, "    open: token %d kind %d with process %d\n", tok, o.kind, o.peer.proc.Serial)
	}
	serials := make([]*peer, 0, len(n.peers))
	for _, p := range n.peers {
		serials = append(serials, p)
	}
	sort.Slice(serials, func(i, j int) bool { return serials[i].proc.Serial < serials[j].proc.Serial })
	for _, p := range serials {
		fmt.Fprintf(b, "    peer %d slot %d: connected=%v up=%v full=%v down=%v sent=%d got=%d offers=%d\n",
			p.proc.Serial, p.slot, p.connected, p.up, p.full, p.down, p.sent, p.got, len(p.offers))
	}
}
