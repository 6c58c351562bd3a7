// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gompi/collectives"
)

// Result is what a simulation found.
type Result struct {
	// Usec is when the last rank is through, in microseconds.
	Usec float64
	// Messages and Bytes are those of all ranks together.
	Messages, Bytes int64

	work  int64 // rounds and steps of all ranks
	waits int64 // ends that waited at once, at most
}

// Message is one message of a simulation.
type Message struct {
	From, To int
	Bytes    int64
	// Start is when the sender begins, End when the receiver has it, in
	// microseconds.
	Start, End float64
}

// ErrSchedule is what a schedule that breaks the rules of package collectives
// gives.
var ErrSchedule = errors.New("sim: impossible schedule")

// Run simulates a call. trace, if not nil, is called with each message:
// those of one pair come in order, but there is no order between pairs. Errors:
// a call or a machine that cannot be, ErrSchedule.
func Run(c *Call, m *Machine, trace func(Message)) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	if err := m.validate(); err != nil {
		return Result{}, err
	}
	r := run{call: c, machine: m, trace: trace, args: c.arguments(), pairs: newPairs()}
	if err := r.all(); err != nil {
		return Result{}, fmt.Errorf("%w: %v on %d ranks: %w", ErrSchedule, c.Alg, c.Ranks, err)
	}
	return r.result, nil
}

// run is a simulation in progress.
type run struct {
	call    *Call
	machine *Machine
	trace   func(Message)
	args    *arguments
	ranks   []rank
	pairs   *pairs
	ready   fifo
	result  Result

	// Reused.
	steps []collectives.Step
	got   []int32
}

// rank is one virtual rank: a cursor in its schedule, and its clocks.
type rank struct {
	round, rounds int32
	started       bool
	missing       int32 // receives of the round that no message has met
	got           int32 // chain of the messages that have, the newest first
	now           float64
	sent          float64    // the last byte of the round's sends has left
	local         float64    // time of the round's reductions and copies
	out, in       [2]float64 // the ports are free: Net, Node
}

func (r *run) all() error {
	r.ranks = make([]rank, r.call.Ranks)
	r.ready = newFIFO(r.call.Ranks)
	for i := range r.ranks {
		r.ranks[i].rounds = int32(r.call.Alg.Rounds(r.args.at(i)))
		r.ready.push(int32(i))
	}
	for !r.ready.empty() {
		if err := r.advance(r.ready.pop()); err != nil {
			return err
		}
	}
	for i := range r.ranks {
		k := &r.ranks[i]
		if k.round < k.rounds {
			return fmt.Errorf("rank %d waits in round %d of %d for %d messages that nobody sends", i, k.round, k.rounds, k.missing)
		}
		r.result.Usec = max(r.result.Usec, k.now)
	}
	if r.pairs.used > 0 {
		return fmt.Errorf("messages of %d pairs are received by nobody", r.pairs.used)
	}
	r.result.waits = int64(len(r.pairs.ends))
	return nil
}

// advance takes a rank as far as it comes without a further message.
func (r *run) advance(i int32) error {
	k := &r.ranks[i]
	for k.missing == 0 {
		if k.started {
			r.endRound(i, k)
		}
		if k.round == k.rounds {
			return nil
		}
		if err := r.startRound(i, k); err != nil {
			return fmt.Errorf("rank %d, round %d: %w", i, k.round, err)
		}
	}
	return nil
}

// startRound sends and asks for what is received.
func (r *run) startRound(i int32, k *rank) error {
	r.steps = r.call.Alg.Round(r.args.at(int(i)), int(k.round), r.steps[:0])
	r.result.work += int64(1 + len(r.steps))
	k.started, k.sent, k.local = true, 0, 0
	size := int64(r.call.ElemBytes)
	for j := range r.steps {
		s := &r.steps[j]
		bytes := s.A.Len * size
		switch s.Kind {
		case collectives.Reduce, collectives.Copy:
			k.local += float64(bytes) * r.machine.Gamma
			continue
		}
		if s.Remote || s.Peer < 0 || int(s.Peer) >= len(r.ranks) || s.Peer == i || bytes < 0 {
			return fmt.Errorf("%q is no message", s)
		}
		e := end{bytes: bytes, from: i, recv: s.Kind == collectives.Recv}
		to := s.Peer
		if e.recv {
			e.from, to = to, i
		} else {
			r.send(k, &e, to)
		}
		if err := r.match(e, to); err != nil {
			return fmt.Errorf("%q: %w", s, err)
		}
	}
	return nil
}

// send takes the sender's time for a message.
func (r *run) send(k *rank, e *end, to int32) {
	p, class := r.link(e.from, to)
	e.start = k.now
	k.now += p.Overhead
	port := max(k.now, k.out[class])
	k.sent = max(k.sent, port+p.stream(e.bytes))
	k.out[class] = port + p.Gap + p.stream(e.bytes)
	e.head = port + p.Latency
	r.result.Messages++
	r.result.Bytes += e.bytes
}

// match brings the two ends of a message together. The rank of the second may
// have waited for nothing else.
func (r *run) match(e end, to int32) error {
	k := &r.ranks[to]
	m := r.pairs.meet(to, e)
	if m == 0 {
		if e.recv {
			k.missing++
		}
		return nil
	}
	met := &r.pairs.ends[m]
	if met.bytes != e.bytes {
		return fmt.Errorf("%d bytes meet the other end's %d", e.bytes, met.bytes)
	}
	if !e.recv {
		*met = e
		if k.missing--; k.missing == 0 {
			r.ready.push(to)
		}
	}
	met.next = k.got
	k.got = m
	return nil
}

// endRound receives what has come and does the local work.
func (r *run) endRound(i int32, k *rank) {
	r.got = r.got[:0]
	ends := r.pairs.ends
	for m := k.got; m != 0; m = ends[m].next {
		r.got = append(r.got, m)
	}
	// Each pair's messages are in order in the chain; the rest is by chance.
	slices.Reverse(r.got)
	slices.SortStableFunc(r.got, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ends[a].head, ends[b].head), cmp.Compare(ends[a].from, ends[b].from))
	})
	for _, m := range r.got {
		e := &ends[m]
		p, class := r.link(e.from, i)
		port := max(e.head, k.in[class])
		k.in[class] = port + p.Gap + p.stream(e.bytes)
		k.now = max(k.now, port+p.stream(e.bytes)) + p.Overhead
		if r.trace != nil {
			r.trace(Message{int(e.from), int(i), e.bytes, e.start, k.now})
		}
		r.pairs.release(m)
	}
	k.got = 0
	k.now = max(k.now, k.sent) + k.local
	k.started = false
	k.round++
}

// link is the link between two ranks and its class: 0 between nodes, 1 inside
// one.
func (r *run) link(a, b int32) (*LogGP, int) {
	if n := r.args.Nodes; n != nil && n.Of(int(a)) == n.Of(int(b)) {
		return &r.machine.Node, 1
	}
	return &r.machine.Net, 0
}

// fifo is a queue of ranks, each of which stands in it once at most.
type fifo struct {
	ring    []int32
	head, n int
}

func newFIFO(ranks int) fifo { return fifo{ring: make([]int32, ranks)} }

func (q *fifo) empty() bool { return q.n == 0 }

func (q *fifo) push(r int32) {
	q.ring[(q.head+q.n)%len(q.ring)] = r
	q.n++
}

func (q *fifo) pop() int32 {
	r := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return r
}
