// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"fmt"

	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// SetOp is an operation on process sets that changes no process.
type SetOp uint8

// The operations.
const (
	Union        = SetOp(protocol.Union)        // the members of the first, then those of each other that are in none before
	Difference   = SetOp(protocol.Difference)   // the members of the first that are in none of the others
	Intersection = SetOp(protocol.Intersection) // the members of the first that are in all others
	Split        = SetOp(protocol.Split)        // disjoint parts of one, in order, of the given sizes
)

// Algebra makes sets of others.
type Algebra struct {
	Do    SetOp
	In    []string // gompi://main as it is now
	Sizes []int    // Split: of the parts, together at most the size of the set
	// Names are preferred ones of the results, by position: "x" becomes app://x,
	// "" is none. A name that another living set has is ErrRefused; beyond 1,024 names of one
	// set it is ErrArg.
	Names []string
}

// Combine makes sets of others at once and returns their names. The session holds them.
// Over outputs of a change that is not decided a result belongs to that change, and
// vanishes with it; one that has the members of the change's Result in its order is
// that set, under the preferred name as well. A result without members is
// gompi://empty. Local.
func (s *Session) Combine(a Algebra) ([]string, error) {
	return s.combine("Combine", a)
}

func (s *Session) combine(op string, a Algebra) (_ []string, err error) {
	defer s.raise(&err)
	return s.algebra(op, a)
}

func (s *Session) algebra(op string, a Algebra) ([]string, error) {
	m := protocol.Algebra{Do: protocol.SetOp(a.Do), Names: a.Names}
	if a.Do < Union || a.Do > Split {
		return nil, s.fail(mpi.ErrArg, op, fmt.Errorf("operation %d on process sets", a.Do))
	}
	if n := max(len(a.In), len(a.Names), len(a.Sizes)); n > protocol.MaxNames {
		return nil, s.fail(mpi.ErrArg, op, fmt.Errorf("%d process sets, names or sizes, at most %d allowed", n, protocol.MaxNames))
	}
	for _, n := range a.Sizes {
		if n < 0 || n > protocol.MaxMembers {
			return nil, s.fail(mpi.ErrArg, op, fmt.Errorf("a part of %d processes", n))
		}
		m.Sizes = append(m.Sizes, uint32(n))
	}
	for _, name := range a.Names {
		if len(name) > protocol.MaxName {
			return nil, s.fail(mpi.ErrArg, op, fmt.Errorf("a name of %d bytes, at most %d allowed", len(name), protocol.MaxName))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range a.In {
		if name = canonical(name); name == protocol.EmptyURI {
			m.In = append(m.In, 0)
			continue
		}
		h, err := s.find(op, name)
		if err != nil {
			return nil, err
		}
		m.In = append(m.In, h.set.Number)
	}
	if err := s.open(op); err != nil {
		return nil, err
	}
	ctl := s.process().Control
	var b protocol.SetsBody
	if err := ctl.Ask(s.ctx, &m, &b); err != nil {
		return nil, s.fail(classOf(err), op, told(err))
	}
	names := make([]string, len(b.Sets))
	var failed error
	for i, n := range b.Sets {
		names[i] = n.Name
		if n.Number == 0 {
			continue
		}
		if _, err := s.find(op, n.Name); err != nil {
			failed = err
		}
		ctl.Tell(&protocol.Release{Number: n.Number}) // the session holds it
	}
	if failed != nil {
		return nil, failed
	}
	return names, nil
}

func (s *Session) one(op string, do SetOp, names []string) (string, error) {
	list, err := s.combine(op, Algebra{Do: do, In: names})
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// Union is the set of the members of all sets: see Combine.
func (s *Session) Union(names ...string) (string, error) { return s.one("Union", Union, names) }

// Difference is the set of the members of the first set that are in none of the
// others: see Combine.
func (s *Session) Difference(names ...string) (string, error) {
	return s.one("Difference", Difference, names)
}

// Intersection is the set of the members that all sets have: see Combine.
func (s *Session) Intersection(names ...string) (string, error) {
	return s.one("Intersection", Intersection, names)
}

// Split cuts parts of these sizes out of a set, from its first member on: together at most
// its own, and members behind the last part are in none. See Combine.
func (s *Session) Split(name string, sizes []int) ([]string, error) {
	return s.combine("Split", Algebra{Do: Split, In: []string{name}, Sizes: sizes})
}
