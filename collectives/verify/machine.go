// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"

	"gompi/collectives"
)

// machine executes the schedules of all ranks on symbols. Sends are
// synchronous: a round ends when both ends of all its messages have started.
// A machine is reused from case to case to keep its memory.
type machine struct {
	alg *collectives.Algorithm
	// ranks are those of the first group, near of them, and of the second
	// group of an intercommunicator.
	ranks []rankState
	near  int
	// pairs[from*size+to] are the messages started at one end only.
	pairs []pair
	ready []int32 // ranks whose round's messages are complete
	syms  symbols
	lens  []int64
	flags []uint64 // backing of the ranks' heard and hearing
}

// rankState is one rank's progress and memory. In, Out and Scratch lie in mem;
// in place In and Out share it.
type rankState struct {
	args  collectives.Args
	mem   []symbol
	marks []mark   // of mem
	start [3]int64 // of In, Out, Scratch in mem
	size  [3]int64
	high  int64 // end of the scratch that was used

	round, rounds int
	steps         []collectives.Step
	pending       int // messages of the round that are not complete
	talked        bool
	depth, after  int // chain of messages until now; at the end of the round
	sent          int64
	// For barriers: the ranks known to have arrived, and what the messages of
	// this round add.
	heard, hearing []uint64
}

// mark tells in which round an element was last sent and received, counting
// from 1.
type mark struct{ sent, received int32 }

// pair holds one direction between two ranks. Of posts and takes at least one
// is empty.
type pair struct{ posts, takes queue }

type queue struct {
	ends []end
	head int
}

// end is a started send or receive.
type end struct {
	lo, n int64 // in the rank's mem
	depth int
}

func (q *queue) empty() bool { return q.head == len(q.ends) }
func (q *queue) push(e end)  { q.ends = append(q.ends, e) }
func (q *queue) clear()      { q.ends, q.head = q.ends[:0], 0 }

func (q *queue) pop() end {
	e := q.ends[q.head]
	if q.head++; q.empty() {
		q.clear()
	}
	return e
}

// run executes the algorithm; rank r is called with args(r). The ranks from near
// on are the second group of an intercommunicator.
func (m *machine) run(alg *collectives.Algorithm, near, size int, args func(r int) collectives.Args) error {
	m.alg, m.near = alg, near
	m.ready = m.ready[:0]
	for len(m.ranks) < size {
		m.ranks = append(m.ranks, rankState{})
	}
	m.ranks = m.ranks[:size]
	for len(m.pairs) < size*size {
		m.pairs = append(m.pairs, pair{})
	}
	for i := range m.pairs {
		m.pairs[i].posts.clear()
		m.pairs[i].takes.clear()
	}
	m.lens = m.lens[:0]
	words := (size + 63) / 64
	m.flags = append(m.flags[:0], make([]uint64, 2*size*words)...)
	for r := range m.ranks {
		s := &m.ranks[r]
		if err := s.begin(args(r), alg); err != nil {
			return err
		}
		s.heard = m.flags[2*r*words : (2*r+1)*words]
		s.hearing = m.flags[(2*r+1)*words : (2*r+2)*words]
		s.heard[r/64] |= 1 << (r % 64)
		m.lens = append(m.lens, s.contribution())
	}
	m.syms.reset(m.lens)
	for r := range m.ranks {
		s := &m.ranks[r]
		for i := range m.lens[r] {
			s.mem[s.start[s.source()]+i] = m.syms.leaf(r, i)
		}
	}
	for r := range m.ranks {
		m.ready = append(m.ready, int32(r))
		for len(m.ready) > 0 {
			last := len(m.ready) - 1
			r := m.ready[last]
			m.ready = m.ready[:last]
			if err := m.advance(int(r)); err != nil {
				return err
			}
		}
	}
	for r := range m.ranks {
		if s := &m.ranks[r]; s.round < s.rounds {
			return m.stuck(r)
		}
	}
	return nil
}

func (s *rankState) begin(a collectives.Args, alg *collectives.Algorithm) error {
	s.args = a
	s.size = [3]int64{a.InLen(), a.OutLen(), alg.Scratch(&s.args)}
	if s.size[collectives.Scratch] < 0 {
		return fmt.Errorf("rank %d wants %d elements of scratch", a.Rank, s.size[collectives.Scratch])
	}
	total := s.size[collectives.In] + s.size[collectives.Out] + s.size[collectives.Scratch]
	if int64(cap(s.mem)) < total {
		s.mem = make([]symbol, total)
		s.marks = make([]mark, total)
	}
	s.mem, s.marks = s.mem[:total], s.marks[:total]
	clear(s.mem)
	clear(s.marks)
	s.start = [3]int64{0, s.size[collectives.In], s.size[collectives.In] + s.size[collectives.Out]}
	switch { // an empty block may lie beyond the end
	case a.InPlace && a.OutInside() && s.size[collectives.Out] > 0:
		s.start[collectives.Out] = s.start[collectives.In] + a.Own()
	case a.InPlace && !a.OutInside() && s.size[collectives.In] > 0:
		s.start[collectives.In] = s.start[collectives.Out] + a.Own()
	}
	s.high = 0
	s.round, s.rounds = -1, alg.Rounds(&s.args)
	s.steps = s.steps[:0]
	s.pending, s.talked, s.depth, s.after, s.sent = 0, false, 0, 0, 0
	return nil
}

// source is the buffer with the rank's contribution.
func (s *rankState) source() collectives.Buffer {
	if s.args.Op == collectives.OpBcast {
		return collectives.Out
	}
	return collectives.In
}

func (s *rankState) contribution() int64 {
	if s.args.Op == collectives.OpBcast && !s.args.IsRoot() {
		return 0
	}
	return s.size[s.source()]
}

// advance ends the current round of a rank and starts the following ones until
// one must wait.
func (m *machine) advance(r int) error {
	s := &m.ranks[r]
	for s.pending == 0 && s.round < s.rounds {
		for i, st := range s.steps {
			if st.Kind >= collectives.Reduce {
				if err := m.local(s, st); err != nil {
					return m.fault(r, i, err)
				}
			}
		}
		if s.talked {
			s.depth, s.talked = s.after+1, false
		}
		for i, w := range s.hearing {
			s.heard[i] |= w
		}
		s.steps = s.steps[:0]
		if s.round++; s.round >= s.rounds {
			return nil
		}
		s.steps = m.alg.Round(&s.args, s.round, s.steps)
		s.after = s.depth
		for _, st := range s.steps {
			if st.Kind < collectives.Reduce {
				s.pending++
				s.talked = true
			}
		}
		for i, st := range s.steps {
			if st.Kind < collectives.Reduce {
				if err := m.start(r, st); err != nil {
					return m.fault(r, i, err)
				}
			}
		}
	}
	return nil
}

// start checks and starts one message of a round.
func (m *machine) start(r int, st collectives.Step) error {
	s := &m.ranks[r]
	size := len(m.ranks)
	if st.Remote && m.near == size {
		return fmt.Errorf("there is no remote group")
	}
	first, last := m.group(r, st.Remote)
	peer := first + int(st.Peer)
	if peer < first || peer >= last || peer == r {
		return fmt.Errorf("rank %d is no peer", st.Peer)
	}
	if st.A.Len == 0 && m.alg.Op != collectives.OpBarrier {
		return fmt.Errorf("empty message")
	}
	lo, err := s.at(st.A, st.Kind == collectives.Recv)
	if err != nil {
		return err
	}
	if s.touch(lo, st.A.Len, st.Kind == collectives.Recv) {
		return fmt.Errorf("overlaps a message of the same round")
	}
	e := end{lo: lo, n: st.A.Len, depth: s.depth}
	if st.Kind == collectives.Send {
		s.sent += e.n
		for _, v := range s.mem[lo : lo+e.n] {
			if v == 0 {
				return fmt.Errorf("sends something undefined")
			}
		}
		q := &m.pairs[r*size+peer]
		if q.takes.empty() {
			q.posts.push(e)
			return nil
		}
		return m.deliver(r, e, peer, q.takes.pop())
	}
	q := &m.pairs[peer*size+r]
	if q.posts.empty() {
		q.takes.push(e)
		return nil
	}
	return m.deliver(peer, q.posts.pop(), r, e)
}

// group is where the ranks lie of the group of rank r, or of its remote group.
func (m *machine) group(r int, remote bool) (first, last int) {
	if r >= m.near != remote {
		return m.near, len(m.ranks)
	}
	return 0, m.near
}

// touch notes that a message of this round reads or writes n elements from lo
// on, and reports whether another one forbids it.
func (s *rankState) touch(lo, n int64, write bool) bool {
	now := int32(s.round + 1)
	clash := false
	for i := lo; i < lo+n; i++ {
		m := &s.marks[i]
		clash = clash || m.received == now || write && m.sent == now
		if write {
			m.received = now
		} else {
			m.sent = now
		}
	}
	return clash
}

// deliver completes a message. No rank runs while it has messages pending, so
// what it sent is still what it started to send.
func (m *machine) deliver(from int, post end, to int, take end) error {
	if post.n != take.n {
		return fmt.Errorf("%d elements from rank %d meet a receive of %d by rank %d", post.n, from, take.n, to)
	}
	a, b := &m.ranks[from], &m.ranks[to]
	copy(b.mem[take.lo:take.lo+take.n], a.mem[post.lo:post.lo+post.n])
	b.after = max(b.after, post.depth)
	if m.alg.Op == collectives.OpBarrier {
		for i, w := range a.heard {
			b.hearing[i] |= w
		}
	}
	for _, r := range [2]int{from, to} {
		s := &m.ranks[r]
		if s.pending--; s.pending == 0 {
			m.ready = append(m.ready, int32(r))
		}
	}
	return nil
}

// local does a reduction or a copy.
func (m *machine) local(s *rankState, st collectives.Step) error {
	if st.Kind > collectives.Copy {
		return fmt.Errorf("unknown kind")
	}
	if st.A.Len != st.B.Len || st.A.Len == 0 {
		return fmt.Errorf("lengths %d and %d", st.A.Len, st.B.Len)
	}
	from, err := s.at(st.A, false)
	if err != nil {
		return err
	}
	into, err := s.at(st.B, true)
	if err != nil {
		return err
	}
	n := st.A.Len
	if overlap(from, n, into, n) {
		return fmt.Errorf("%v overlaps %v", st.A, st.B)
	}
	a, b := s.mem[from:from+n], s.mem[into:into+n]
	for i, v := range a {
		w := b[i]
		if v == 0 || st.Kind == collectives.Reduce && w == 0 {
			return fmt.Errorf("element %d is undefined", i)
		}
		if st.Kind == collectives.Copy {
			b[i] = v
			continue
		}
		if st.Left {
			w = m.syms.join(v, w)
		} else {
			w = m.syms.join(w, v)
		}
		if w == 0 {
			return fmt.Errorf("element %d is combined with another one", i)
		}
		b[i] = w
	}
	return nil
}

// at checks a reference and gives its place in mem.
func (s *rankState) at(r collectives.Ref, write bool) (int64, error) {
	if r.Buf > collectives.Scratch || r.Off < 0 || r.Len < 0 || r.Off > s.size[r.Buf] || r.Len > s.size[r.Buf]-r.Off {
		return 0, fmt.Errorf("%v is outside; the buffer has %d elements", r, s.size[min(r.Buf, collectives.Scratch)])
	}
	if write && r.Buf == collectives.In {
		return 0, fmt.Errorf("%v is written", r)
	}
	if r.Buf == collectives.Scratch {
		s.high = max(s.high, r.Off+r.Len)
	}
	return s.start[r.Buf] + r.Off, nil
}

func overlap(a, n, b, m int64) bool { return n > 0 && m > 0 && a < b+m && b < a+n }

func (m *machine) fault(r, i int, err error) error {
	s := &m.ranks[r]
	return fmt.Errorf("rank %d, round %d, %q: %w", r, s.round, s.steps[i], err)
}

// stuck describes the deadlock that rank r is part of.
func (m *machine) stuck(r int) error {
	s := &m.ranks[r]
	size := len(m.ranks)
	for _, st := range s.steps {
		if st.Kind >= collectives.Reduce {
			continue
		}
		first, _ := m.group(r, st.Remote)
		p := first + int(st.Peer)
		waits := !m.pairs[r*size+p].posts.empty()
		if st.Kind == collectives.Recv {
			waits = !m.pairs[p*size+r].takes.empty()
		}
		if waits {
			peer := &m.ranks[p]
			return fmt.Errorf("deadlock: rank %d waits in round %d of %d, %q; rank %d is in round %d of %d",
				r, s.round, s.rounds, st, p, peer.round, peer.rounds)
		}
	}
	panic("gompi: BUG: a rank waits for nothing")
}

// missing is the number of ranks of [first, last) that rank r does not know to
// have entered.
func (m *machine) missing(r, first, last int) int {
	n := 0
	for q := first; q < last; q++ {
		n += int(^m.ranks[r].heard[q/64] >> (q % 64) & 1)
	}
	return n
}
