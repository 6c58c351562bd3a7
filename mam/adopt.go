// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// adoption is a change from when this process was handed it to the commit: on a newcomer
// all of it.
type adoption struct {
	m    *Module
	c    *sessions.Change
	both *mpi.Comm // see User.Comm; nil: not made yet
	// early ends calls in both as long as nobody was handed the change; nil: it was handed
	// out. pace is that of what moves meanwhile; nil: none.
	early context.Context
	pace  *pace
	// from and to are the ranks in both of sources and targets, by their ranks before and
	// after the change; -1 of a source that has died.
	from, to []int
	stay     []int // ranks before the change of the first targets
	old, new int   // this process's ranks; -1: it is no source, no target
	moves    []*move
	homes    []uint32         // of all of both, where arrays lie; nil: it is not known
	config   Config           // in which nothing is Auto of method and strategy
	why      string           // it is that; "": the program said so
	edition  int              // of what is registered
	lost     error            // the data that is missing: nothing moves, and all learn that of each other
	open     []*rma.Exposed   // until the decision
	loans    map[*array]*loan // likewise, of a source
	borrower *reader          // of what is lent; nil: nothing was read
	calls    int              // of the user function
	user     bool
	// unwilling: the user function has failed.
	unwilling bool
	times     Times
	since     time.Time
}

// move is what becomes of an array.
type move struct {
	*array
	next  layout.Split
	rule  layout.Layout // afterwards
	have  []byte        // what this rank has, of constant data that moves early; nil: the variable says it
	fresh []byte        // what this rank has afterwards; nil of a leaver
	block block         // of which fresh is
	moved bool
	from  int64 // bytes that have come from other processes

	ahead       bool               // it has moved before the change was handed out, from copies of what is lent
	borrowed    map[int]bool       // of whom, by ranks before the change, what is lent was read
	own         *dirty.Set         // what this source has written since it has lent it; nil: nobody knows
	sets        map[int]*dirty.Set // that of others
	soon, again int64              // bytes of from in the background, and again at the commit
}

// adoptionOf begins with a change, as far as no other process is needed for it.
func (m *Module) adoptionOf(c *sessions.Change, ns, old int, since time.Time, arrays []*array) (*adoption, error) {
	a := &adoption{m: m, c: c, since: since, old: old}
	m.mu.Lock()
	a.config, a.edition = m.config, m.edition
	a.config.Method = m.config.others()
	x := m.inputs
	m.mu.Unlock()
	if err := a.place(ns); err != nil {
		return nil, err
	}
	a.lost = lost(arrays, a.dead())
	if err := a.divide(arrays); err != nil {
		return nil, err
	}
	a.why = a.choose(&x)
	a.config, _ = repaired(a.config, a.times.NS, a.times.ND, false) // by the method that was chosen, too
	return a, nil
}

// errMissed is that of a change that was rolled back when it was handed out here.
var errMissed = errors.New("what has moved early of the change is gone, as it was rolled back")

// handed begins with a change that a source was handed.
func (m *Module) handed(c *sessions.Change) (*adoption, error) {
	m.mu.Lock()
	since := m.since
	m.mu.Unlock()
	a := m.takeReady(c)
	if a == nil {
		var err error
		if a, err = m.adoptionOf(c, m.comm.Size(), m.comm.Rank(), since, m.arrays); err != nil {
			return nil, err
		}
		if a.lost == nil && a.config.early() {
			return nil, errMissed
		}
	}
	var err error
	for _, x := range a.moves {
		if bad := x.held(a.old); bad != nil {
			err = m.refuse("Checkpoint", mpi.ErrCount, bad)
			break
		}
	}
	if err == nil {
		err = a.begin()
	}
	if err != nil {
		a.close()
		return nil, err
	}
	if a.why != "" {
		m.say(nil, "auto: "+a.why)
	}
	return a, nil
}

// takeReady is what has moved of a change before it is handed out, which is the caller's
// from now on; nil: nothing has, or another has taken it.
func (m *Module) takeReady(c *sessions.Change) *adoption {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.ready
	if a == nil || a.c != c {
		return nil
	}
	m.ready = nil
	return a
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
