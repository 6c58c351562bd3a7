// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/layout"
	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// adoption is a change from when this process was handed it to the commit: on a newcomer
// all of it.
type adoption struct {
	m    *Module
	c    *sessions.Change
	both *mpi.Comm // see User.Comm
	// from and to are the ranks in both of sources and targets, by their ranks before and
	// after the change; -1 of a source that has died.
	from, to []int
	stay     []int // ranks before the change of the first targets
	old, new int   // this process's ranks; -1: it is no source, no target
	moves    []*move
	config   Config
	edition  int            // of what is registered
	lost     error          // the data that is missing: nothing moves, and all sources say it in the same iteration
	open     []*rma.Exposed // until the decision
	calls    int            // of the user function
	user     bool
	times    Times
	since    time.Time
}

// move is what becomes of an array.
type move struct {
	*array
	next  layout.Split
	rule  layout.Layout // afterwards
	fresh []byte        // what this rank has afterwards; nil of a leaver
	moved bool
	from  int64 // bytes that have come from other processes
}

// adoptionOf begins with a change, as far as no other process is needed for it.
func (m *Module) adoptionOf(c *sessions.Change, ns, old int, since time.Time, arrays []*array) (*adoption, error) {
	a := &adoption{m: m, c: c, since: since, old: old}
	m.mu.Lock()
	a.config, a.edition = m.config, m.edition
	m.mu.Unlock()
	if err := a.place(ns); err != nil {
		return nil, err
	}
	a.lost = lost(arrays, a.dead())
	return a, a.divide(arrays)
}

// handed begins with a change that a source was handed.
func (m *Module) handed(c *sessions.Change) (*adoption, error) {
	m.mu.Lock()
	a, since := m.ready, m.since
	if m.ready = nil; a != nil && a.c != c {
		a = nil
	}
	m.mu.Unlock()
	var err error
	if a == nil {
		if a, err = m.adoptionOf(c, m.comm.Size(), m.comm.Rank(), since, m.arrays); err != nil {
			return nil, err
		}
	}
	if a.lost != nil {
		return nil, a.lost
	}
	for _, x := range a.moves {
		if err = x.held(a.old); err != nil {
			return nil, m.refuse("Checkpoint", mpi.ErrCount, err)
		}
	}
	if err := a.begin(); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// place finds who is who of ns sources.
func (a *adoption) place(ns int) error {
	if a.c.Result == "" {
		return a.m.refuse("Checkpoint", mpi.ErrArg, fmt.Errorf("a change of the kind %v has no result to go on with", a.c.Kind()))
	}
	stay, leave := a.c.Ranks()
	result, err := a.m.s.Group(a.c.Result)
	if err != nil {
		return err
	}
	nd := result.Size()
	living := append(slices.Clone(stay), leave...)
	slices.Sort(living)
	if len(living) > ns || len(stay) > nd || len(living) > 0 && living[len(living)-1] >= ns {
		return fmt.Errorf("mam: of %d sources %v stay and %v leave; %d targets", ns, stay, leave, nd)
	}
	a.stay, a.new = stay, result.Rank()
	a.times.NS, a.times.ND = ns, nd
	a.from, a.to = make([]int, ns), make([]int, nd)
	for s := range a.from {
		a.from[s] = slices.Index(living, s)
	}
	for d := range a.to {
		if d < len(stay) {
			a.to[d] = a.from[stay[d]]
		} else {
			a.to[d] = len(living) + d - len(stay)
		}
	}
	return nil
}

// dead are the sources that have died.
func (a *adoption) dead() (list []int) {
	for s, at := range a.from {
		if at < 0 {
			list = append(list, s)
		}
	}
	return list
}

// first is the rank in both of the first source.
func (a *adoption) first() int { return 0 }

// role is what the process is.
func (a *adoption) role() Role {
	switch {
	case a.old < 0:
		return NewRank
	case a.new < 0:
		return Leaver
	}
	return Continue
}

// divide says what each array is afterwards.
func (a *adoption) divide(arrays []*array) (err error) {
	for _, x := range arrays {
		y := &move{array: x}
		if !x.Replicated {
			if y.next, y.rule, err = x.Rule.Next(x.split, a.stay, a.times.ND); err != nil {
				return fmt.Errorf("mam: %q: %w", x.Name, err)
			}
		}
		a.moves = append(a.moves, y)
	}
	return nil
}

// touch gives targets the memory for what they are to have.
func (a *adoption) touch(x *move) {
	start := time.Now()
	switch {
	case x.fresh != nil || a.new < 0:
		return
	case !x.Replicated:
		x.fresh = memoryFor(x.next.Count(a.new) * x.Bytes)
	case a.old < 0:
		x.fresh = memoryFor(x.Rule.N * x.Bytes)
	default:
		return
	}
	for i := 0; i < len(x.fresh); i += pageBytes {
		x.fresh[i] = 0
	}
	a.times.Touch += time.Since(start)
}

const pageBytes = 4096

// begin makes the communicator of both, in which all find that they agree.
func (a *adoption) begin() error {
	if err := a.meet(); err != nil {
		return err
	}
	return a.agree()
}

// meet makes the communicator of all sources that live and the newcomers.
func (a *adoption) meet() (err error) {
	s, living := a.m.s, len(a.from)-len(a.dead())
	newcomers := len(a.to) - len(a.stay)
	switch {
	case living == len(a.stay): // nobody leaves
		a.both, err = s.Comm(a.c.Result)
	case newcomers == 0 && living == len(a.from):
		a.both, err = s.Comm(a.c.Input)
	default:
		a.both, err = a.meetAll()
	}
	if err == nil && a.both.Size() != living+newcomers {
		err = fmt.Errorf("mam: %d processes for %d sources and %d newcomers", a.both.Size(), living, newcomers)
	}
	return err
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
	for _, name := range a.c.Joining {
		j, err := s.Group(name)
		if err != nil {
			return nil, err
		}
		g = g.Union(j)
	}
	return mpi.CommFromGroup(g.WithContext(a.m.ctx), "mam "+a.c.Result)
}

// What each rank says of itself in the beginning.
const (
	saysHash = iota
	saysIteration
	saysAhead
	saysUser
	says
)

// agree holds all ranks to the same registry, and sources to the same iteration.
func (a *adoption) agree() error {
	m := a.m
	mine := make([]int64, says)
	mine[saysHash], mine[saysIteration], mine[saysAhead] = int64(a.hash()), int64(m.iteration), int64(m.ahead)
	if m.user != nil {
		mine[saysUser] = 1
	}
	all := make([]int64, says*a.both.Size())
	if err := mpi.Allgather(a.both, mine, all); err != nil {
		return err
	}
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
	m.iteration, m.ahead = int(first[saysIteration]), int(first[saysAhead])
	a.user = first[saysUser] == 1
	return a.moveAll(Constant)
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

// userPhase is one call of the user function on all; over says whether it was the last
// one.
func (a *adoption) userPhase() (over bool, err error) {
	if !a.user {
		return true, nil
	}
	start := time.Now()
	u := &User{NS: a.times.NS, ND: a.times.ND, Role: a.role(), Comm: a.both}
	a.calls++
	if err := a.m.user(u); err != nil {
		return false, err
	}
	resumed := 1
	if a.old >= 0 && !u.resumed {
		resumed = 0
	}
	resumed, err = mpi.AllreduceOne(a.both, resumed, mpi.Min)
	a.times.User += time.Since(start)
	return resumed == 1, err
}

// finish moves what is left, and tells newcomers where the loop is.
func (a *adoption) finish() error {
	if err := a.moveAll(Variable); err != nil {
		return err
	}
	if !a.user {
		return nil
	}
	// Each call but the first was a Checkpoint of the sources, unless one has waited.
	at, err := mpi.BcastOne(a.both, a.m.iteration, a.first())
	a.m.iteration = at
	return err
}

// commit ends a change: with the new ranks and data, or as if it had not been.
func (m *Module) commit() (State, error) {
	a := m.adopting
	start := time.Now()
	comm, err := a.c.Commit(m.ctx)
	if err != nil {
		return m.failed(a.c, err)
	}
	a.times.Commit = time.Since(start)
	a.close()
	m.adopting = nil
	for _, x := range a.moves {
		if x.fresh != nil && x.store != nil {
			x.store(x.fresh)
		} else if x.fresh != nil {
			x.came = x.fresh
		}
		a.times.Bytes += x.from
		if !x.Replicated {
			x.split, x.Rule = x.next, x.rule
		}
	}
	m.hide()
	if m.made {
		err = m.comm.Free()
	}
	if m.own != nil {
		err = errors.Join(err, m.own.Free())
		m.own = nil
	}
	m.release(a.c)
	m.comm, m.made, m.set, m.asked = comm, true, a.c.Result, m.wish
	m.mu.Lock()
	m.closeGate()
	m.coming = nil
	m.mu.Unlock()
	a.times.Total = time.Since(a.since)
	m.times = a.times
	return Completed, err
}

// release lets go of the sets of a change that are not needed any more.
func (m *Module) release(c *sessions.Change) {
	for _, name := range append([]string{c.Input, c.Leaving}, c.Joining...) {
		if name != "" {
			_ = m.s.Release(name)
		}
	}
}

// failed ends a change of which nothing comes on this process. Who could not move its
// data has not voted; if that is for a death, or as the change was rolled back, the
// verdict is a roll-back, and waited for.
func (m *Module) failed(c *sessions.Change, err error) (State, error) {
	if a := m.adopting; a != nil {
		a.close()
		m.adopting = nil
	}
	if c.Role == sessions.Joining {
		return NotStarted, m.undone(c, err)
	}
	var missing *LostError
	if !errors.As(err, &missing) && (gone(err) || errors.Is(err, errStale)) {
		committed, asked := c.Decided(m.ctx)
		if asked != nil || committed {
			return NotStarted, errors.Join(err, asked)
		}
		_, err = c.Commit(m.ctx) // who has not voted is told that it was rolled back
	}
	if errors.Is(err, mpi.ErrRolledBack) {
		m.release(c)
		_ = m.s.Release(c.Result)
		return NotStarted, nil
	}
	return NotStarted, err
}

// gone reports whether a move has failed since a process is gone, for which the change
// will be rolled back: who takes part keeps its memory open until the decision.
func gone(err error) bool {
	return errors.Is(err, mpi.ErrProcFailed) || errors.Is(err, mpi.ErrRevoked) || errors.Is(err, mpi.ErrClosed)
}

// undoneWait is how long a newcomer whose part has failed waits to hear that its change
// was rolled back, which its own end would do.
const undoneWait = 2 * time.Second

// undone is why a newcomer is none: that its change was rolled back, if that is why err
// has come, as sets are gone then, and sources go on, or leave.
func (m *Module) undone(c *sessions.Change, err error) error {
	var of *mpi.Error
	if !errors.As(err, &of) || errors.Is(err, mpi.ErrRolledBack) || errors.Is(err, mpi.ErrMismatch) {
		return err
	}
	ctx, cancel := context.WithTimeout(m.ctx, undoneWait)
	defer cancel()
	if committed, asked := c.Decided(ctx); asked == nil && !committed {
		_, err = c.Commit(m.ctx)
	}
	return err
}

// close ends the communicator of both, and what was exposed for the change.
func (a *adoption) close() {
	for _, x := range a.open {
		_ = x.Close() // once
	}
	a.open = nil
	if a.both != nil {
		_ = a.both.Free() // nobody uses it any more
		a.both = nil
	}
}

// join is the part of a newcomer, until it is one of the ranks.
func (m *Module) join(c *sessions.Change) error {
	a, err := m.arrive(c)
	if err != nil {
		return m.undone(c, err)
	}
	if a.lost != nil { // the sources tell it when they are handed the change, if that is soon
		ctx, cancel := context.WithTimeout(m.ctx, undoneWait)
		defer cancel()
		if _, err := c.Decided(ctx); err != nil {
			return a.lost
		}
		_, err = c.Commit(m.ctx) // it was rolled back, as this process has not voted
		return err
	}
	m.adopting = a
	if err := a.begin(); err != nil {
		_, err = m.failed(c, err)
		return err
	}
	state, err := m.goOn(Wait)
	if err != nil {
		return err
	}
	if state != Completed {
		return fmt.Errorf("gompi: BUG: a newcomer is %v", state)
	}
	m.w, err = sessions.Watch(m.ctx, c.Result, options)
	return err
}

// arrive prepares a newcomer for the change, without any source. What has failed since
// something was changed meanwhile is done again.
func (m *Module) arrive(c *sessions.Change) (*adoption, error) {
	store, err := m.s.Store(c.Input)
	if err != nil {
		return nil, err
	}
	var last []byte
	for {
		values, err := store.Get(m.ctx, true, registryKey)
		if err != nil {
			return nil, err
		}
		a, err := m.prepared(c, store, values[0])
		if err == nil {
			return a, c.Ready()
		}
		if bytes.Equal(values[0], last) {
			return nil, err
		}
		last = values[0]
	}
}

// prepared is arrive by a registry.
func (m *Module) prepared(c *sessions.Change, store *sessions.Store, text []byte) (*adoption, error) {
	r, err := readRegistry(text)
	if err != nil {
		return nil, err
	}
	m.config, m.settings, m.edition, m.arrays = r.Config, r.Settings, r.Edition, nil
	for _, e := range r.Data {
		x := &array{entry: e}
		if !e.Replicated {
			if x.split, err = e.Rule.Over(r.Ranks); err != nil {
				return nil, fmt.Errorf("mam: %q: %w", e.Name, err)
			}
		}
		m.arrays = append(m.arrays, x)
	}
	a, err := m.adoptionOf(c, r.Ranks, -1, time.Now(), m.arrays)
	if err != nil {
		return nil, err
	}
	if a.lost != nil {
		return a, nil
	}
	for _, x := range a.moves {
		a.touch(x)
	}
	if a.config.early() {
		if err := a.pullEarly(m.life, store, nil); err != nil {
			return nil, err
		}
	}
	return a, nil
}
