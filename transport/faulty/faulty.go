// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Plan says what goes wrong and how often. The zero value changes nothing. Probabilities are 0
// (never) to 1 (always).
type Plan struct {
	// Seed seeds the random decisions. The wrappers of one job need different seeds.
	Seed uint64
	// Delay is the probability that an event is held back, with all later ones of its slot.
	Delay float64
	// DelayPolls is the longest time that an event is held back, in Polls of this transport; 0
	// means 8.
	DelayPolls int
	// Full is the probability that Send refuses a message without a reason. It must be below 1,
	// because otherwise no message is ever sent.
	Full float64
	// Wake makes the owner poll, such as the Wake of the transport's Env. The wrapper calls it
	// when it has refused a message of an owner that may sleep. If it is nil, Send refuses
	// nothing between Arm and Disarm.
	Wake func()
	// Down is the probability that a received message is the last one of its peer: the wrapper
	// then calls transport.Transport.Fail for the peer.
	Down float64
	// MaxEvents bounds the events of one Poll. Each Poll returns a random number up to it. 0 means
	// no bound.
	MaxEvents int
	// Refuse is the probability that Share, Join and Reach fail, as if memory or rights were
	// missing. It is also the probability that memory of other processes is read-only.
	Refuse float64
	// Break is the probability that an access to the memory of another process fails after a part
	// of it was done. Delay applies to such accesses, too.
	Break float64
	// Counters, if not nil, counts what happens. Several wrappers may share it.
	Counters *Counters
}

// Counters counts the uses of optional capabilities, and the injected failures. If a FastBox holds
// a message back several times, each time counts.
type Counters struct {
	Taken, Reserved, Shared, Joined, Reached, Read, Written atomic.Int64

	HeldBack, Full, Refused, Broken atomic.Int64
}

// validate checks the plan and sets defaults.
func (p *Plan) validate() error {
	for _, v := range []struct {
		name string
		is   float64
		ok   bool
	}{
		{"Delay", p.Delay, p.Delay >= 0 && p.Delay <= 1},
		{"Full", p.Full, p.Full >= 0 && p.Full < 1},
		{"Down", p.Down, p.Down >= 0 && p.Down <= 1},
		{"Refuse", p.Refuse, p.Refuse >= 0 && p.Refuse <= 1},
		{"Break", p.Break, p.Break >= 0 && p.Break <= 1},
	} {
		if !v.ok {
			return fmt.Errorf("faulty: %s is %v, which is not an allowed probability", v.name, v.is)
		}
	}
	if p.DelayPolls < 0 || p.MaxEvents < 0 {
		return fmt.Errorf("faulty: DelayPolls %d, MaxEvents %d: they must not be negative", p.DelayPolls, p.MaxEvents)
	}
	if p.DelayPolls == 0 {
		p.DelayPolls = 8
	}
	if p.Counters == nil {
		p.Counters = &Counters{}
	}
	return nil
}

// maxHeld bounds the number of events that are held. At this bound the wrapper stops polling the
// transport below, so that the flow control of that transport takes effect.
const maxHeld = 256

// wrapper is the part that every wrapped transport has. It has the same rules for its callers as a
// transport.Transport. Poll, FastBox and Reserve decide by rnd; methods for any goroutine decide by
// dice.
type wrapper struct {
	transport.Transport // the transport below

	plan  Plan
	rnd   *rand.Rand
	turn  uint64 // number of Polls
	below []transport.Event
	slots []*slot // by slot; nil if it has no record
	held  int     // events held, of all slots
	first int     // slot with which the next Poll starts
	armed bool    // between Arm and Disarm
	dice  dice

	// used are the payload buffers of the last Poll. free are unused buffers.
	used, free [][]byte
}

// slot is the record of one slot of the transport below.
type slot struct {
	queue []heldEvent // queue[head:] are held, in order
	head  int
	// full says that Send has answered Full, and EvWritable has not followed.
	full bool
	// fullBelow says that the transport below has answered Full, too, and will report
	// EvWritable.
	fullBelow bool
	// writable is the number of the Poll that ends a refusal of the wrapper; 0 if there is none.
	writable uint64
	// connected says that the engine has connected, so it gets no EvUp.
	connected bool
	failed    bool // by the wrapper
	down      bool // EvDown has been returned
	stream    *stream
}

// heldEvent is an event that is held until Poll number due. The wrapper owns its payload.
type heldEvent struct {
	transport.Event
	due uint64
}

// New wraps below, which then belongs to the wrapper. The wrapper has the optional capabilities of
// below, and the plan applies to them, too.
func New(below transport.Transport, p Plan) (transport.Transport, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return (&wrapper{
		Transport: below,
		plan:      p,
		rnd:       rand.New(rand.NewPCG(p.Seed, 0x666175)),
		dice:      dice{rnd: rand.New(rand.NewPCG(p.Seed, 0x6d656d))},
		below:     make([]transport.Event, 32),
	}).withCapabilities(), nil
}

// chance returns true with probability p.
func (t *wrapper) chance(p float64) bool { return p > 0 && t.rnd.Float64() < p }

// slot returns the record of a slot, which it makes if there is none.
func (t *wrapper) slot(s transport.Slot) *slot {
	for int(s) >= len(t.slots) {
		t.slots = append(t.slots, nil)
	}
	if t.slots[s] == nil {
		t.slots[s] = &slot{}
	}
	return t.slots[s]
}

// Connect implements transport.Transport.
func (t *wrapper) Connect(c wire.Contact) (transport.Slot, error) {
	s, err := t.Transport.Connect(c)
	if err == nil {
		t.slot(s).connected = true
	}
	return s, err
}

// Send implements transport.Transport.
func (t *wrapper) Send(s transport.Slot, h *wire.Header, p []byte, tok transport.Token) transport.Status {
	l := t.slot(s)
	if t.refuses(l) {
		return transport.Full
	}
	return l.noteStatus(t.Transport.Send(s, h, p, tok))
}

// refuses decides whether to refuse a message without a reason.
func (t *wrapper) refuses(l *slot) bool {
	if l.down || t.armed && t.plan.Wake == nil || !t.chance(t.plan.Full) {
		return false
	}
	t.plan.Counters.Full.Add(1)
	l.full = true
	if l.writable == 0 {
		l.writable = t.laterPoll()
	}
	if t.armed {
		t.plan.Wake()
	}
	return true
}

// noteStatus records the answer of the transport below.
func (l *slot) noteStatus(st transport.Status) transport.Status {
	if st == transport.Full {
		l.full, l.fullBelow = true, true
	}
	return st
}

// laterPoll returns the number of a random later Poll.
func (t *wrapper) laterPoll() uint64 { return t.turn + 1 + t.rnd.Uint64N(uint64(t.plan.DelayPolls)) }

// Poll implements transport.Transport.
func (t *wrapper) Poll(ev []transport.Event) int {
	t.turn++
	t.free = append(t.free, t.used...)
	t.used = t.used[:0]
	if t.held < maxHeld {
		k := t.Transport.Poll(t.below)
		for i := range t.below[:k] {
			t.hold(&t.below[i])
			t.below[i] = transport.Event{}
		}
	}
	if t.plan.MaxEvents > 0 && len(ev) > 0 {
		ev = ev[:min(len(ev), 1+t.rnd.IntN(t.plan.MaxEvents))]
	}
	n := 0
	t.first++
	for i := range t.slots {
		s := (t.first + i) % len(t.slots)
		if l := t.slots[s]; l != nil && n < len(ev) {
			n += t.pollSlot(transport.Slot(s), l, ev[n:])
		}
	}
	return n
}

// hold adds an event of the transport below to the queue of its slot.
func (t *wrapper) hold(e *transport.Event) {
	l := t.slot(e.Slot)
	if e.Kind == transport.EvWritable {
		l.fullBelow = false
		if !l.full || l.writable != 0 {
			return // the wrapper will report EvWritable itself
		}
	}
	due := t.turn
	if t.chance(t.plan.Delay) {
		due = t.laterPoll()
	}
	h := heldEvent{*e, due}
	if e.Kind == transport.EvRecv {
		h.Payload = append(t.buffer(), e.Payload...)
		t.mayFail(e.Slot, l)
	}
	if l.head > 0 && len(l.queue) == cap(l.queue) {
		k := copy(l.queue, l.queue[l.head:])
		clear(l.queue[k:])
		l.queue, l.head = l.queue[:k], 0
	}
	l.queue = append(l.queue, h)
	t.held++
}

// mayFail decides whether a message that has arrived is the last one of its peer.
func (t *wrapper) mayFail(s transport.Slot, l *slot) {
	if !l.failed && t.chance(t.plan.Down) {
		l.failed = true
		t.Transport.Fail(s)
	}
}

// buffer returns an empty payload buffer.
func (t *wrapper) buffer() []byte {
	if k := len(t.free); k > 0 {
		b := t.free[k-1]
		t.free = t.free[:k-1]
		return b[:0]
	}
	return nil
}

// pollSlot returns the events of one slot that are due.
func (t *wrapper) pollSlot(s transport.Slot, l *slot, ev []transport.Event) int {
	n := 0
	for n < len(ev) && l.head < len(l.queue) {
		h := &l.queue[l.head]
		if h.due > t.turn {
			break
		}
		if h.Kind != transport.EvUp || !l.connected {
			ev[n] = h.Event
			n++
		}
		switch h.Kind {
		case transport.EvRecv:
			t.used = append(t.used, h.Payload)
		case transport.EvWritable:
			l.full = false
		case transport.EvDown:
			l.full, l.writable, l.down, l.stream = false, 0, true, nil
		}
		l.pop()
		t.held--
	}
	if n < len(ev) && l.writable != 0 && l.writable <= t.turn {
		l.writable = 0
		if l.full && !l.fullBelow {
			l.full = false
			ev[n] = transport.Event{Kind: transport.EvWritable, Slot: s}
			n++
		}
	}
	return n
}

// pop removes the first event.
func (l *slot) pop() {
	l.queue[l.head] = heldEvent{}
	l.head++
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
}

// Arm implements transport.Transport. It fails while events are held, because these need a Poll.
func (t *wrapper) Arm() bool {
	if t.held > 0 || len(t.used) > 0 {
		return false
	}
	for _, l := range t.slots {
		if l != nil && l.writable != 0 {
			return false
		}
	}
	t.armed = t.Transport.Arm()
	return t.armed
}

// Disarm implements transport.Transport.
func (t *wrapper) Disarm() {
	t.armed = false
	t.Transport.Disarm()
}

// Release implements transport.Transport.
func (t *wrapper) Release(s transport.Slot) {
	if int(s) < len(t.slots) && t.slots[s] != nil {
		l := t.slots[s]
		t.held -= len(l.queue) - l.head
		t.slots[s] = nil
	}
	t.Transport.Release(s)
}
