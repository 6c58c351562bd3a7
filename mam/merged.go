// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/mpi"
)

// connect makes the merged communicator of all sources that live and the newcomers. It has
// the name of the Result: not all members need have come to make that of a change which is
// rolled back.
func (rc *reconfiguration) connect() (err error) {
	if rc.sources() == len(rc.stay) { // nobody leaves
		rc.merged, err = rc.m.s.Comm(rc.change.Result)
	} else {
		rc.merged, err = rc.connectAll()
	}
	if err == nil && rc.merged.Size() != rc.sources()+rc.newcomers() {
		err = fmt.Errorf("mam: %d processes for %d sources and %d newcomers", rc.merged.Size(), rc.sources(), rc.newcomers())
	}
	return err
}

// connectAll is connect where sources leave.
func (rc *reconfiguration) connectAll() (*mpi.Comm, error) {
	s := rc.m.s
	g, err := s.Group(rc.change.Input)
	if err != nil {
		return nil, err
	}
	var living []int
	for r, at := range rc.from {
		if at >= 0 {
			living = append(living, r)
		}
	}
	if g, err = g.Incl(living); err != nil {
		return nil, err
	}
	// The Result has the sources that stay, and the newcomers behind them. It is an output of
	// the change, so a roll-back revokes the communicator, even where nobody joins.
	result, err := s.Group(rc.change.Result)
	if err != nil {
		return nil, err
	}
	g = g.Union(result)
	ctx := rc.m.ctx
	if rc.background != nil {
		ctx = rc.background
	}
	return mpi.CommFromGroup(g.WithContext(ctx), "mam "+rc.change.Result)
}

// comm returns the merged communicator with the context of its calls at this moment.
func (rc *reconfiguration) comm() *mpi.Comm {
	if rc.background == nil {
		return rc.merged
	}
	return rc.merged.WithContext(rc.background)
}

// What each rank says of itself before data moves, by position.
const (
	sayHash = iota
	sayIteration
	sayWaited
	sayUser
	numSays
)

// compareRegistries checks that all ranks have the same registry, and, at the delivery, that
// sources are in the same iteration. Collective over the merged communicator.
func (rc *reconfiguration) compareRegistries() error {
	m := rc.m
	mine := make([]int64, numSays)
	mine[sayHash] = int64(rc.hash())
	if rc.background == nil {
		mine[sayIteration], mine[sayWaited] = int64(m.iteration), int64(m.waited)
	}
	if m.user != nil {
		mine[sayUser] = 1
	}
	all := make([]int64, numSays*rc.merged.Size())
	if err := mpi.Allgather(rc.comm(), mine, all); err != nil {
		return err
	}
	if err := rc.compareAll(all); err != nil {
		// All ranks find it. One that declines the change for it ends the communicator, so all
		// must have found it by then.
		_ = rc.comm().Barrier()
		return err
	}
	first := all[rc.first()*numSays:]
	if rc.background == nil {
		m.iteration, m.waited = int(first[sayIteration]), int(first[sayWaited])
		rc.hasUser = first[sayUser] == 1
	}
	return nil
}

// compareAll names the first rank that differs from the first source in what all say.
func (rc *reconfiguration) compareAll(all []int64) error {
	of := func(rank int) []int64 { return all[rank*numSays : (rank+1)*numSays] }
	first := of(rc.first())
	differ := func(format string, args ...any) error {
		return rc.m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf(format, args...))
	}
	for s, at := range rc.from {
		switch {
		case at < 0:
		case of(at)[sayHash] != first[sayHash]:
			return differ("rank %d of %d has registered other data than the first rank", s, len(rc.from))
		case of(at)[sayUser] != first[sayUser]:
			return differ("rank %d of %d has a user function, or the first rank has", s, len(rc.from))
		case of(at)[sayIteration] != first[sayIteration] || of(at)[sayWaited] != first[sayWaited]:
			return differ("rank %d of %d is in iteration %d, the first rank in %d: %w",
				s, len(rc.from), of(at)[sayIteration]-1, first[sayIteration]-1, errMixedCompletion)
		}
	}
	for d := len(rc.stay); d < len(rc.to); d++ {
		switch o := of(rc.to[d]); {
		case o[sayHash] != first[sayHash]:
			return differ("newcomer %d: %w", d-len(rc.stay), errStaleRegistry)
		case o[sayUser] != first[sayUser]:
			return differ("newcomer %d has a user function, or the first rank has", d-len(rc.stay))
		}
	}
	return nil
}

// errStaleRegistry is the error of a change that newcomers end, because data was registered
// after they have read the registry.
var errStaleRegistry = errors.New("it has learned of other data than there is now")

// hash returns the hash of the registry as the sources have it.
func (rc *reconfiguration) hash() uint64 {
	r := registry{Ranks: len(rc.from), Edition: rc.edition}
	for _, x := range rc.transfers {
		r.Data = append(r.Data, x.entry)
	}
	return r.hash()
}
