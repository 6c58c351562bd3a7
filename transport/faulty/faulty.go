// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Plan says what goes wrong and how often. The zero value changes nothing.
// Probabilities are 0 (never) to 1 (always).
type Plan struct {
	// Seed makes the decisions; wrappers of one job want different ones.
	Seed uint64
	// Delay is the probability that an event is held back, and with it all
	// later ones of its slot.
	Delay float64
	// DelayPolls is the longest time that an event is held back, in Polls of
	// this transport; 0 means 8.
	DelayPolls int
	// Full is the probability that Send refuses for no reason; below 1, as
	// else nothing is ever sent.
	Full float64
	// Wake makes the owner poll, such as the Wake of the transport's Env: a
	// refusal of ours ends at a later Poll, which an owner that sleeps does
	// not make. If nil, Send refuses nothing between Arm and Disarm.
	Wake func()
	// Down is the probability that a received message is the last from its
	// peer: the peer is failed (transport.Transport.Fail) behind it.
	Down float64
	// MaxEvents bounds the events that one Poll returns; each Poll returns a
	// random number up to it. 0 means no bound.
	MaxEvents int
	// Refuse is the probability that Share, Join and Reach fail, as where
	// memory or rights are short, and that memory reached may only be read.
	Refuse float64
	// Break is the probability that an access to the memory of another process
	// fails, after a part of it was made. Delay holds accesses up, too.
	Break float64
	// Tally counts, if it is not nil. Wrappers may share one.
	Counters *Counters
}

// Tally counts what an owner has used of the optional capabilities, and what
// was made to fail there. A message that a FastBox held back counts each time.
type Counters struct {
	Taken, Reserved, Shared, Joined, Reached, Read, Written atomic.Int64

	HeldBack, Full, Refused, Broken atomic.Int64
}

// validate fills in defaults.
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
			return fmt.Errorf("faulty: %s is %v, which is no probability that can be used", v.name, v.is)
		}
	}
	if p.DelayPolls < 0 || p.MaxEvents < 0 {
		return fmt.Errorf("faulty: DelayPolls %d, MaxEvents %d: want none below 0", p.DelayPolls, p.MaxEvents)
	}
	if p.DelayPolls == 0 {
		p.DelayPolls = 8
	}
	if p.Counters == nil {
		p.Counters = &Counters{}
	}
	return nil
}

// heldMax is how many events may be held before the transport below is left
// alone, so that its own flow control is felt.
const maxHeld = 256

// wrapper is the part of it that every transport has, with the same rules about
// who may call what. Poll, FastBox and Reserve decide by rnd; what any goroutine may
// call, by dice.
type wrapper struct {
	transport.Transport // below

	plan  Plan
	rnd   *rand.Rand
	turn  uint64 // counts Polls
	below []transport.Event
	slots []*slot // by slot; nil: nothing known
	held  int     // events of all slots
	first int     // the one that the next Poll starts with
	armed bool    // the owner sleeps
	dice  dice

	// used are the payload buffers of the last Poll; free are unused ones.
	used, free [][]byte
}

// slot is what is held back of one slot of the transport below.
type slot struct {
	queue []heldEvent // queue[head:] waits, in order
	head  int
	// full: Send has answered Full, and EvWritable has not followed.
	full bool
	// fullBelow: of these, the transport below has answered one, and will
	// say EvWritable.
	fullBelow bool
	// writable is the Poll that ends a refusal of ours; 0 if there is none.
	writable uint64
	// connected: by the engine, which then wants no EvUp.
	connected bool
	failed    bool // by us
	down      bool // EvDown has been returned
	stream    *stream
}

// heldEvent is an event that waits for Poll number due. Its payload is ours.
type heldEvent struct {
	transport.Event
	due uint64
}

// New wraps below, which then belongs to the wrapper. The wrapper has the
// optional capabilities of below, to which the plan applies as well.
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

// chance decides with a probability.
func (t *wrapper) chance(p float64) bool { return p > 0 && t.rnd.Float64() < p }

// slot returns the record of a slot, made if there is none.
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

// refuses decides whether a message is refused for no reason.
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

// told notes the answer of the transport below.
func (l *slot) noteStatus(st transport.Status) transport.Status {
	if st == transport.Full {
		l.full, l.fullBelow = true, true
	}
	return st
}

// later is the number of a Poll to come.
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

// hold puts an event of the transport below into its slot.
func (t *wrapper) hold(e *transport.Event) {
	l := t.slot(e.Slot)
	if e.Kind == transport.EvWritable {
		l.fullBelow = false
		if !l.full || l.writable != 0 {
			return // ours will follow
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

// mayFail decides whether a message that has arrived is the last of its peer.
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

// pop forgets the first event.
func (l *slot) pop() {
	l.queue[l.head] = heldEvent{}
	l.head++
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
}

// Arm implements transport.Transport: held events must be polled for.
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
