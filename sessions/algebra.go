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
	Union        = SetOp(protocol.Union)        // the members of the first set, then the further members of each other set
	Difference   = SetOp(protocol.Difference)   // the members of the first set that are not in the others
	Intersection = SetOp(protocol.Intersection) // the members of the first set that are in all others
	Split        = SetOp(protocol.Split)        // disjoint parts of one set, in order, of the given sizes
)

// Algebra says which sets Combine makes of others.
type Algebra struct {
	Do    SetOp
	In    []string // gompi://main is the main set at the time of the call
	Sizes []int    // Split: of the parts, together at most the size of the set
	// Names are preferred names of the results, by position: "x" becomes app://x, ""
	// means no name. A name that another living set has gives ErrRefused; more than 1,024
	// names of one set give mpi.ErrArg.
	Names []string
}

// Combine makes sets of others and returns their names. The session holds the sets.
//
// Local, but for one round trip to the head. A result without members is gompi://empty. A
// result that is made of outputs of an undecided change belongs to that change: if the
// change is rolled back the result is gone. A result with the members of the change's Result,
// in its order, is that set, under the preferred name as well.
//
// Errors: ErrSet, ErrSetGone, ErrRefused, mpi.ErrArg.
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
		return nil, s.fail(classOf(err), op, detailOf(err))
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

// Union returns the set of the members of all sets: see Combine.
func (s *Session) Union(names ...string) (string, error) { return s.one("Union", Union, names) }

// Difference returns the set of the members of the first set that are not in the
// others: see Combine.
func (s *Session) Difference(names ...string) (string, error) {
	return s.one("Difference", Difference, names)
}

// Intersection returns the set of the members that all sets have: see Combine.
func (s *Session) Intersection(names ...string) (string, error) {
	return s.one("Intersection", Intersection, names)
}

// Split returns disjoint parts of a set, of these sizes, from its first member on. The
// sizes together are at most the size of the set; members behind the last part are in no
// part. See Combine.
func (s *Session) Split(name string, sizes []int) ([]string, error) {
	return s.combine("Split", Algebra{Do: Split, In: []string{name}, Sizes: sizes})
}
