// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand/v2"

	"gompi/collectives"
)

// interp executes the schedules of all ranks on real data, one rank at a time
// in an order drawn from rng. It is the second opinion on the verifier and
// differs where it can: sends are buffered, so a rank runs ahead as far as its
// receives let it.
type interp[T any] struct {
	alg   *collectives.Algorithm
	op    func(left, right T) T
	rng   *rand.Rand
	ranks []*actor[T]
	near  int // ranks from here on are the second group of an intercommunicator
	// mail holds what was sent and not yet received, by from*size+to.
	mail [][][]T
}

type actor[T any] struct {
	args          collectives.Args
	buf           [3][]T
	round, rounds int
	steps         []collectives.Step
	waiting       []collectives.Step // receives of the round that are not complete
}

// interpret runs one case. contribute gives a rank's contribution of n
// elements. It returns Out of every rank.
func interpret[T any](alg *collectives.Algorithm, c Case, seed uint64, contribute func(rank int, n int64) []T, op func(left, right T) T) ([][]T, error) {
	p := c.ranks()
	m := &interp[T]{alg: alg, op: op, rng: rand.New(rand.NewPCG(seed, 1)), near: c.Size, mail: make([][][]T, p*p)}
	for r := range p {
		x := &actor[T]{args: c.args(alg.Op, r), round: -1}
		a := &x.args
		x.rounds = alg.Rounds(a)
		x.buf[collectives.Scratch] = make([]T, alg.Scratch(a))
		x.buf[collectives.In] = make([]T, a.InLen())
		x.buf[collectives.Out] = make([]T, a.OutLen())
		if a.InPlace {
			if a.OutInside() {
				if a.OutLen() > 0 {
					x.buf[collectives.Out] = x.buf[collectives.In][a.Own():][:a.OutLen()]
				}
			} else if a.InLen() > 0 { // an empty block may lie beyond the end
				x.buf[collectives.In] = x.buf[collectives.Out][a.Own():][:a.InLen()]
			}
		}
		if a.Op == collectives.OpBcast {
			if r == c.Root {
				copy(x.buf[collectives.Out], contribute(r, a.Count))
			}
		} else {
			copy(x.buf[collectives.In], contribute(r, a.InLen()))
		}
		m.ranks = append(m.ranks, x)
	}
	for left := p; left > 0; {
		moved := false
		for _, r := range m.rng.Perm(p) {
			x := m.ranks[r]
			for x.round < x.rounds && m.receive(r, x) {
				moved = true
				m.finish(x)
				if x.round++; x.round == x.rounds {
					left--
					break
				}
				m.begin(r, x)
			}
		}
		if left > 0 && !moved {
			return nil, fmt.Errorf("%v: %v: deadlock", alg, c)
		}
	}
	for i, box := range m.mail {
		if len(box) > 0 {
			return nil, fmt.Errorf("%v: %v: %d messages from %d to %d never received", alg, c, len(box), i/p, i%p)
		}
	}
	outs := make([][]T, p)
	for r, x := range m.ranks {
		outs[r] = x.buf[collectives.Out]
	}
	return outs, nil
}

func (x *actor[T]) at(r collectives.Ref) []T { return x.buf[r.Buf][r.Off : r.Off+r.Len] }

// peer is the place in ranks of a step's peer.
func (m *interp[T]) peer(r int, s collectives.Step) int {
	if second := r >= m.near; second != s.Remote {
		return m.near + int(s.Peer)
	}
	return int(s.Peer)
}

// begin starts a round's messages.
func (m *interp[T]) begin(r int, x *actor[T]) {
	x.steps = m.alg.Round(&x.args, x.round, nil)
	for _, s := range x.steps {
		switch s.Kind {
		case collectives.Send:
			box := &m.mail[r*len(m.ranks)+m.peer(r, s)]
			*box = append(*box, append([]T(nil), x.at(s.A)...))
		case collectives.Recv:
			x.waiting = append(x.waiting, s)
		}
	}
}

// receive takes what has arrived and reports whether nothing is missing.
func (m *interp[T]) receive(r int, x *actor[T]) bool {
	missing := x.waiting[:0]
	for _, s := range x.waiting {
		box := &m.mail[m.peer(r, s)*len(m.ranks)+r]
		if len(*box) == 0 {
			missing = append(missing, s)
			continue
		}
		if len((*box)[0]) != int(s.A.Len) {
			panic(fmt.Sprintf("%v: rank %d: %q meets a message of %d", m.alg, r, s, len((*box)[0])))
		}
		copy(x.at(s.A), (*box)[0])
		*box = (*box)[1:]
	}
	x.waiting = missing
	return len(missing) == 0
}

// finish does a round's local steps.
func (m *interp[T]) finish(x *actor[T]) {
	for _, s := range x.steps {
		switch s.Kind {
		case collectives.Reduce:
			a, b := x.at(s.A), x.at(s.B)
			for i := range b {
				if s.Left {
					b[i] = m.op(a[i], b[i])
				} else {
					b[i] = m.op(b[i], a[i])
				}
			}
		case collectives.Copy:
			copy(x.at(s.B), x.at(s.A))
		}
	}
	x.steps = nil
}
