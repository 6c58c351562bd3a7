// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/mpi"
)

// begin is what all do together when the change is handed out: if nothing has moved early
// they make the communicator of both first. Data that is lost all know by then, and who
// returns that knows that all others come to it.
func (a *adoption) begin() error {
	a.early = nil
	var err error
	if a.both == nil {
		err = a.meet()
	}
	if err == nil {
		err = a.agree()
	}
	switch {
	case a.lost != nil && (err == nil || gone(err)): // who has learned of it may be gone
		return a.lost
	case err != nil:
		return err
	}
	return a.moveAll(Constant)
}

// meet makes the communicator of all sources that live and the newcomers. It goes by the
// name of the Result, as not all members need have come to make that of a change which is
// rolled back.
func (a *adoption) meet() (err error) {
	living := len(a.from) - len(a.dead())
	newcomers := len(a.to) - len(a.stay)
	if living == len(a.stay) { // nobody leaves
		a.both, err = a.m.s.Comm(a.c.Result)
	} else {
		a.both, err = a.meetAll()
	}
	if err == nil && a.both.Size() != living+newcomers {
		err = fmt.Errorf("mam: %d processes for %d sources and %d newcomers", a.both.Size(), living, newcomers)
	}
	return err
}

// comm is both, for the calls of now.
func (a *adoption) comm() *mpi.Comm {
	if a.early == nil {
		return a.both
	}
	return a.both.WithContext(a.early)
}

func (a *adoption) meetAll() (*mpi.Comm, error) {
	s := a.m.s
	g, err := s.Group(a.c.Input)
	if err != nil {
		return nil, err
	}
	var living []int
	for r, at := range a.from {
		if at >= 0 {
			living = append(living, r)
		}
	}
	if g, err = g.Incl(living); err != nil {
		return nil, err
	}
	// The Result has the sources that stay, and the newcomers behind them. As it is an output
	// of the change a roll-back revokes the communicator, also where nobody comes.
	result, err := s.Group(a.c.Result)
	if err != nil {
		return nil, err
	}
	g = g.Union(result)
	ctx := a.m.ctx
	if a.early != nil {
		ctx = a.early
	}
	return mpi.CommFromGroup(g.WithContext(ctx), "mam "+a.c.Result)
}

// What each rank says of itself in the beginning.
const (
	saysHash = iota
	saysIteration
	saysAhead
	saysUser
	says
)

// agree holds all ranks to the same registry, and sources to the same iteration, unless
// that is early.
func (a *adoption) agree() error {
	m := a.m
	mine := make([]int64, says)
	mine[saysHash] = int64(a.hash())
	if a.early == nil {
		mine[saysIteration], mine[saysAhead] = int64(m.iteration), int64(m.ahead)
	}
	if m.user != nil {
		mine[saysUser] = 1
	}
	all := make([]int64, says*a.both.Size())
	if err := mpi.Allgather(a.comm(), mine, all); err != nil {
		return err
	}
	if err := a.compare(all); err != nil {
		// All find it. Who declines the change for it ends the communicator, so all are to have
		// it by then.
		_ = a.comm().Barrier()
		return err
	}
	first := all[a.first()*says:]
	if a.early == nil {
		m.iteration, m.ahead = int(first[saysIteration]), int(first[saysAhead])
		a.user = first[saysUser] == 1
	}
	return nil
}

// compare says which ranks differ by what all say of themselves.
func (a *adoption) compare(all []int64) error {
	m := a.m
	of := func(rank int) []int64 { return all[rank*says : (rank+1)*says] }
	first := of(a.first())
	for s, at := range a.from {
		switch {
		case at < 0:
		case of(at)[saysHash] != first[saysHash]:
			return m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("rank %d of %d has registered other data than the first rank", s, len(a.from)))
		case of(at)[saysUser] != first[saysUser]:
			return m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("rank %d of %d has a user function, or the first rank has", s, len(a.from)))
		case of(at)[saysIteration] != first[saysIteration] || of(at)[saysAhead] != first[saysAhead]:
			return m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("rank %d of %d is in iteration %d, the first rank in %d: %w",
				s, len(a.from), of(at)[saysIteration]-1, first[saysIteration]-1, errMixed))
		}
	}
	for d := len(a.stay); d < len(a.to); d++ {
		switch o := of(a.to[d]); {
		case o[saysHash] != first[saysHash]:
			return m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("newcomer %d: %w", d-len(a.stay), errStale))
		case o[saysUser] != first[saysUser]:
			return m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("newcomer %d has a user function, or the first rank has", d-len(a.stay)))
		}
	}
	return nil
}

// errStale is told of a change that newcomers end, as data was registered after they
// have looked.
var errStale = errors.New("it has learned of other data than there is now")

// hash is that of the registry as the sources have it.
func (a *adoption) hash() uint64 {
	r := registry{Ranks: len(a.from), Edition: a.edition}
	for _, x := range a.moves {
		r.Data = append(r.Data, x.entry)
	}
	return r.hash()
}
