// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"runtime"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

// player runs one rank's part of a random program.
type player struct {
	p     *testlab.Program
	rank  int
	comms map[int]*mpi.Comm // nil: freed, or not of this rank
	// prepared are the persistent collectives by the IDs of their Inits.
	prepared map[int]*ready
	out      []testlab.Result
	open     []opened
}

// ready is a persistent collective with its buffers.
type ready struct {
	*mpi.Persistent
	collBuffers
	comm int
}

// opened is something started that is not complete yet.
type opened struct {
	due  int
	req  mpi.Request
	done func(mpi.Status, error) error
}

func newPlayer(p *testlab.Program, world *mpi.Comm) *player {
	return &player{p: p, rank: world.Rank(), comms: map[int]*mpi.Comm{testlab.World: world}, prepared: map[int]*ready{}}
}

// play runs rank's part of p and returns its results.
func play(p *testlab.Program, world *mpi.Comm) ([]testlab.Result, error) {
	pl := newPlayer(p, world)
	wild, err := world.Dup()
	if err != nil {
		return nil, err
	}
	pl.comms[testlab.Wild] = wild
	if err := world.Process().SendBuffer().Attach(mpi.BufferAutomatic); err != nil {
		return nil, err
	}
	for i := range p.Events {
		e := &p.Events[i]
		if !p.Participates(e, pl.rank) {
			continue
		}
		if err := pl.complete(e.ID); err != nil {
			return nil, fmt.Errorf("before event\n%v\n%w", e, err)
		}
		if err := pl.event(e); err != nil {
			return nil, fmt.Errorf("event\n%v\n%w", e, err)
		}
	}
	if err := pl.complete(testlab.Never + 1); err != nil {
		return nil, fmt.Errorf("at the end: %w", err)
	}
	if err := world.Barrier(); err != nil {
		return nil, err
	}
	for id, c := range pl.comms {
		if id != testlab.World && c != nil {
			if err := pl.free(id); err != nil {
				return nil, err
			}
		}
	}
	_, err = world.Process().SendBuffer().Detach()
	return pl.out, err
}

func (pl *player) event(e *testlab.Event) error {
	c := pl.comms[e.Comm]
	switch e.Kind {
	case testlab.Message:
		return pl.message(c, e)
	case testlab.Group:
		return pl.group(c, e)
	case testlab.Exchange:
		return pl.exchange(c, e)
	case testlab.Collective:
		return pl.collective(c, e)
	case testlab.Withdraw:
		return pl.withdraw(c, e)
	case testlab.Starts:
		return pl.starts(e)
	case testlab.Make:
		return pl.make(c, e)
	case testlab.Free:
		return pl.free(e.Comm)
	}
	return fmt.Errorf("unknown event")
}

// add keeps what is to be completed by an event to come.
func (pl *player) add(due int, req mpi.Request, done func(mpi.Status, error) error) {
	pl.open = append(pl.open, opened{due, req, done})
}

// complete completes, in one of the ways that there are, at least everything
// that is due before event id.
func (pl *player) complete(id int) error {
	for turn := 0; ; turn++ {
		due := 0
		for _, o := range pl.open {
			if o.due < id {
				due++
			}
		}
		if due == 0 {
			return nil
		}
		style := int(testlab.Sum(fmt.Append(nil, pl.p.Seed, id, pl.rank, turn/1000)) % 8)
		if err := pl.someWay(style, id); err != nil {
			return err
		}
	}
}

// someWay completes some of what is open, if something is complete.
func (pl *player) someWay(style, id int) error {
	reqs := make([]mpi.Request, len(pl.open))
	for i, o := range pl.open {
		reqs[i] = o.req
	}
	finished := map[int]func() error{}
	book := func(i int, st mpi.Status, err error) {
		finished[i] = func() error { return pl.open[i].done(st, err) }
	}
	switch style {
	case 0: // Wait, in order
		for i, o := range pl.open {
			if o.due < id {
				st, err := o.req.Wait()
				book(i, st, err)
			}
		}
	case 1:
		for i, o := range pl.open {
			if o.due >= id {
				reqs[i] = mpi.Request{}
			}
		}
		ended := make([]mpi.Completion, len(reqs))
		active := make([]bool, len(reqs))
		for i, r := range reqs {
			active[i] = !r.IsNull()
		}
		if err := mpi.WaitallStatuses(reqs, ended); err != nil && !errors.Is(err, mpi.ErrTruncate) {
			return err
		}
		for i, c := range ended {
			if active[i] {
				book(i, c.Status, c.Err)
			}
		}
	case 2:
		i, st, err := mpi.Waitany(reqs)
		if i == mpi.Undefined {
			return fmt.Errorf("Waitany finds no request among %d", len(reqs))
		}
		book(i, st, err)
	case 3:
		for _, c := range mpi.Waitsome(reqs) {
			book(c.Index, c.Status, c.Err)
		}
	case 4:
		done, i, st, err := mpi.Testany(reqs)
		if done {
			book(i, st, err)
		}
	case 5:
		for _, c := range mpi.Testsome(reqs) {
			book(c.Index, c.Status, c.Err)
		}
	case 6:
		for i, o := range pl.open {
			if done, _, _ := o.req.GetStatus(); done {
				done, st, err := o.req.Test()
				if !done {
					return fmt.Errorf("Test says no after GetStatus said yes")
				}
				book(i, st, err)
			}
		}
	case 7:
		for i, o := range pl.open {
			if done, st, err := o.req.Test(); done {
				book(i, st, err)
			}
		}
	}
	if len(finished) == 0 {
		runtime.Gosched()
		return nil
	}
	var rest []opened
	for i, o := range pl.open {
		if f := finished[i]; f == nil {
			rest = append(rest, o)
		} else if err := f(); err != nil {
			return err
		}
	}
	pl.open = rest
	return nil
}
