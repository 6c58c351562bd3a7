// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gompi/mpi"
	"gompi/sessions"
)

// dppLoop is the loop of DPP's examples, step by step as published: the primary process
// asks, all query, and the name of the new main set goes by the store of the delta.
type dppLoop struct {
	s       *sessions.Session
	main    string // main_pset
	last    string // the delta of the last change
	primary bool
	asked   bool
	comm    *mpi.Comm
	iter    int
	at      int // changes
}

// dppSteps are what the primary process asks for, and the sizes that come of it.
var dppSteps = []struct {
	op   sessions.PSetOp
	n    int
	size int
}{{sessions.PSetOpGrow, 2, 4}, {sessions.PSetOpShrink, 1, 3}, {sessions.PSetOpGrow, 1, 4}, {sessions.PSetOpShrink, 3, 1}}

func (l *dppLoop) run(ctx context.Context) (err error) {
	if l.s, err = sessions.Open(ctx); err != nil {
		return err
	}
	if err = l.loop(ctx); err != nil {
		return err
	}
	return l.s.Close()
}

func (l *dppLoop) loop(ctx context.Context) (err error) {
	dynamic, err := hint(l.s, worldSet, "mpi_dyn")
	if err != nil {
		return err
	}
	if l.main = worldSet; dynamic {
		if l.main, err = lookup(ctx, l.s, worldSet, worldSet, "main_pset"); err != nil {
			return err
		}
	}
	if err := l.renew(ctx); err != nil {
		return err
	}
	if dynamic {
		if err := l.told(); err != nil {
			return err
		}
		if l.primary {
			err = l.s.FinalizePSetOp(ctx, l.main)
		}
		l.iter++
	}
	for ; err == nil && l.at < len(dppSteps); l.iter++ {
		sum, err := mpi.AllreduceOne(l.comm, l.iter, mpi.Max)
		if err != nil || sum != l.iter {
			return fmt.Errorf("iteration %d beside %d: %w", l.iter, sum, err)
		}
		if l.primary && !l.asked {
			if err := l.ask(ctx); err != nil { // steps 1 and 2
				return err
			}
		}
		x, err := l.s.QueryPSetOp(ctx, l.main, l.main) // 3
		if err != nil {
			return err
		}
		if x.Op == sessions.PSetOpNull || x.Out[0] == l.last {
			continue
		}
		if leaves, err := l.adapt(ctx, x); err != nil || leaves {
			return err
		}
	}
	if err != nil {
		return err
	}
	return l.comm.Disconnect()
}

// ask is what the primary process does.
func (l *dppLoop) ask(ctx context.Context) error {
	step := dppSteps[l.at]
	key := sessions.ProcsAdd
	if step.op == sessions.PSetOpShrink {
		key = sessions.ProcsSub
	}
	x, err := l.s.PSetOp(ctx, step.op, []string{l.main}, mpi.NewInfo(key, strconv.Itoa(step.n)))
	if err != nil {
		if errors.Is(err, sessions.ErrRefused) {
			return nil // it goes on
		}
		return err
	}
	if x.Op != step.op || len(x.Out) != 2 {
		return fmt.Errorf("%v makes %+v", step.op, x)
	}
	l.asked = true
	return publish(l.s, x.Out[0], "main_pset", x.Out[1])
}

// adapt is what all do who are told of a change.
func (l *dppLoop) adapt(ctx context.Context, x sessions.PSetOperation) (leaves bool, err error) {
	if want := dppSteps[l.at].op; x.Op != want || len(x.Out) != 2 {
		return false, fmt.Errorf("told of %+v, of %v asked for", x, want)
	}
	l.last = x.Out[0]
	if leaves, err = hint(l.s, x.Out[0], "mpi_included"); err != nil { // 4
		return false, err
	}
	main, err := lookup(ctx, l.s, l.main, x.Out[0], "main_pset") // 5
	if err != nil || main != x.Out[1] {
		return false, fmt.Errorf("the new main set is %s, told of %q: %w", main, x.Out, err)
	}
	if err := l.comm.Disconnect(); err != nil { // 9
		return false, err
	}
	if leaves { // 8
		return true, nil
	}
	l.main, l.asked = main, false
	if err := l.renew(ctx); err != nil { // 6 and 9
		return false, err
	}
	l.at++
	if err := l.told(); err != nil {
		return false, err
	}
	if l.primary {
		err = l.s.FinalizePSetOp(ctx, l.main) // 10
	}
	return false, err
}

// renew makes the communicator of the main set.
func (l *dppLoop) renew(ctx context.Context) (err error) {
	if l.primary, err = hint(l.s, l.main, "mpi_primary"); err == nil {
		l.comm, err = commOf(ctx, l.s, l.main)
	}
	return err
}

// told is where the loop is, which newcomers learn.
func (l *dppLoop) told() (err error) {
	if l.iter, err = mpi.BcastOne(l.comm, l.iter, 0); err == nil {
		l.at, err = mpi.BcastOne(l.comm, l.at, 0)
	}
	if err == nil && l.comm.Size() != dppSteps[l.at-1].size {
		err = fmt.Errorf("after %d changes %d ranks", l.at, l.comm.Size())
	}
	return err
}
