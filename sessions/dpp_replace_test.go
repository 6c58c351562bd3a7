// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/mpi"
	"gompi/sessions"
)

// dmr is the program of DMR over DPP: the primary process has one REPLACE outstanding,
// all query in each iteration, and data are moved while the old communicator and the new
// one are there. At the end what is outstanding is taken back; where that is too late,
// the newcomers are told to end.
type dmr struct {
	s       *sessions.Session
	main    string
	final   string // final_pset
	primary bool
	comm    *mpi.Comm
	iter    int
	at      int
	data    []int // this process's part of 0, 1, ...

	out     *sessions.PSetOperation // of what is outstanding
	request mpi.Request
	pending bool
	// held ends the program in a race: one process was told of the last operation, and
	// the others were not.
	held bool
}

const dmrData = 1000

// dmrSteps are what is asked for by REPLACE: who comes, who leaves, and how many there
// are then.
var dmrSteps = []struct{ add, sub, size int }{{2, 0, 5}, {1, 2, 4}, {0, 1, 3}, {1, 0, 0}} // the last does not happen

func (d *dmr) run(ctx context.Context) (err error) {
	if d.s, err = sessions.Open(ctx); err != nil {
		return err
	}
	leaves, err := d.begin(ctx)
	for ; err == nil && !leaves && d.at < len(dmrSteps)-1; d.iter++ {
		leaves, err = d.reconfiguration(ctx)
	}
	if err != nil {
		return err
	}
	if d.comm != nil {
		err = d.finalize(ctx)
	}
	if err != nil {
		return err
	}
	return d.s.Close()
}

// begin is DMR_INIT; ends: there is nothing to be done any more.
func (d *dmr) begin(ctx context.Context) (ends bool, err error) {
	d.main = worldSet
	dynamic, err := hint(d.s, worldSet, "mpi_dyn")
	if err != nil {
		return false, err
	}
	if dynamic {
		first, err := hint(d.s, worldSet, "mpi_primary")
		if err != nil {
			return false, err
		}
		if d.main, err = lookup(ctx, d.s, worldSet, worldSet, "inter_pset"); err != nil {
			return false, err
		}
		if d.main == "dmr://finalize" {
			if first {
				err = publish(d.s, worldSet, "dmr://finalize", "ack")
			}
			return true, err
		}
	}
	if err := d.renew(ctx); err != nil {
		return false, err
	}
	d.final = d.main
	if !dynamic {
		d.data = d.part(upTo(dmrData))
		return false, nil
	}
	all, err := d.expand(nil)
	d.data = d.part(all)
	d.iter++
	return false, err
}

func (d *dmr) renew(ctx context.Context) (err error) {
	if d.primary, err = hint(d.s, d.main, "mpi_primary"); err == nil {
		d.comm, err = commOf(ctx, d.s, d.main)
	}
	return err
}

// expand is EXPAND_SEND and EXPAND_RECV: the first has all.
func (d *dmr) expand(all []int) ([]int, error) {
	var err error
	if d.iter, err = mpi.BcastOne(d.comm, d.iter, 0); err != nil {
		return nil, err
	}
	if d.at, err = mpi.BcastOne(d.comm, d.at, 0); err != nil {
		return nil, err
	}
	return mpi.BcastNew(d.comm, all, 0)
}

// part is this process's part of all data.
func (d *dmr) part(all []int) []int {
	n, r := d.comm.Size(), d.comm.Rank()
	return slices.Clone(all[len(all)*r/n : len(all)*(r+1)/n])
}

// ask has one REPLACE outstanding.
func (d *dmr) ask(ctx context.Context) {
	if !d.primary || d.pending {
		return
	}
	step := dmrSteps[d.at]
	info := mpi.NewInfo(sessions.ProcsAdd, fmt.Sprint(step.add), sessions.ProcsSub, fmt.Sprint(step.sub))
	d.out, d.request = d.s.IPSetOp(ctx, sessions.PSetOpReplace, []string{d.main}, info)
	d.pending = true
}

// reconfiguration is DMR_RECONFIGURATION, once in each iteration.
func (d *dmr) reconfiguration(ctx context.Context) (leaves bool, err error) {
	if max, err := mpi.AllreduceOne(d.comm, d.iter, mpi.Max); err != nil || max != d.iter {
		return false, fmt.Errorf("iteration %d beside %d: %w", d.iter, max, err)
	}
	d.ask(ctx)
	x, err := d.s.QueryPSetOp(ctx, d.main, d.main)
	if err != nil || x.Op == sessions.PSetOpNull {
		return false, err
	}
	step := dmrSteps[d.at]
	if x.Op != sessions.PSetOpReplace || len(x.Out) != 3 || (x.Out[0] != "") != (step.sub > 0) || (x.Out[1] != "") != (step.add > 0) {
		return false, fmt.Errorf("told of %+v, asked for %+v", x, step)
	}
	old, err := d.comm.Dup()
	if err != nil {
		return false, err
	}
	at := x.Out[1] // where the name goes: the empty set has no store
	if at == "" {
		at = x.Out[2]
	}
	if d.primary {
		if _, err := d.request.Wait(); err != nil || !slices.Equal(d.out.Out, x.Out) {
			return false, fmt.Errorf("asked for %+v, told of %+v: %w", d.out, x, err)
		}
		d.pending = false
		if err := publish(d.s, at, "inter_pset", d.out.Out[2]); err != nil {
			return false, err
		}
	}
	before := d.main
	if d.main, err = lookup(ctx, d.s, before, at, "inter_pset"); err != nil {
		return false, err
	}
	d.final = x.Out[0]
	included, err := hint(d.s, d.main, "mpi_included")
	if err != nil {
		return false, err
	}
	if d.primary, err = hint(d.s, d.main, "mpi_primary"); err != nil {
		return false, err
	}
	if err := d.comm.Disconnect(); err != nil {
		return false, err
	}
	// SHRINK_SEND and SHRINK_RECV over the old one, EXPAND_SEND over the new one.
	blocks, err := mpi.AllgatherNew(old, d.data)
	if err != nil {
		return false, err
	}
	if d.at++; included {
		d.final = d.main
		if err := d.renew(ctx); err != nil {
			return false, err
		}
		all, err := d.expand(slices.Concat(blocks...))
		if err != nil || !slices.Equal(all, upTo(dmrData)) || d.comm.Size() != step.size {
			return false, fmt.Errorf("%d numbers on %d ranks after %+v: %w", len(all), d.comm.Size(), step, err)
		}
		d.data = d.part(all)
	}
	if d.primary {
		if err := d.s.FinalizePSetOp(ctx, before); err != nil {
			return false, err
		}
	}
	return !included, old.Disconnect()
}

// finalize is DMR_FINALIZE.
func (d *dmr) finalize(ctx context.Context) error {
	included, err := hint(d.s, d.main, "mpi_included")
	if err != nil {
		return err
	}
	if included {
		if err := d.race(ctx); err != nil {
			return err
		}
	}
	if d.primary {
		_, err := d.s.PSetOp(ctx, sessions.PSetOpCancel, []string{d.main}, nil)
		late := errors.Is(err, sessions.ErrTooLate)
		if err != nil && !late {
			return err
		}
		// With several hosts it is accepted when it is shown.
		if several, lost := severalHosts(d.s); lost != nil || late != d.held && !several {
			return fmt.Errorf("taken back, held %v: %v, %w", d.held, err, lost)
		}
		if late {
			err = d.tooLate(ctx)
		} else if _, lost := d.request.Wait(); lost != nil && !errors.Is(lost, mpi.ErrCancelled) { // nil: it had names
			err = fmt.Errorf("what was taken back: %w", lost)
		}
		if err != nil {
			return err
		}
	}
	if err := d.s.Barrier(ctx, d.final); err != nil {
		return err
	}
	if included {
		return d.comm.Disconnect()
	}
	return nil
}

// tooLate consumes what cannot be taken back.
func (d *dmr) tooLate(ctx context.Context) error {
	if _, err := d.request.Wait(); err != nil {
		return err
	}
	x, err := d.s.QueryPSetOp(ctx, "mpi://SELF", d.main)
	if err != nil || x.Op != sessions.PSetOpReplace || !slices.Equal(x.Out, d.out.Out) {
		return fmt.Errorf("asked for %+v, told of %+v: %w", d.out, x, err)
	}
	if err := publish(d.s, x.Out[1], "inter_pset", "dmr://finalize"); err != nil {
		return err
	}
	// A newcomer that is quick to end takes the operation back, and all is done.
	if err := d.s.FinalizePSetOp(ctx, d.main); err != nil {
		if errors.Is(err, sessions.ErrRolledBack) {
			return nil
		}
		return err
	}
	ack, err := lookup(ctx, d.s, "mpi://SELF", x.Out[1], "dmr://finalize")
	if err == nil && ack != "ack" {
		err = fmt.Errorf("the newcomers say %q", ack)
	}
	return err
}

// race brings about the outcome that is wanted: either nobody asks any more before the
// operation is taken back, or the last process is told of it, and is held while the
// others do not ask.
func (d *dmr) race(ctx context.Context) error {
	d.ask(ctx)
	if err := d.comm.Barrier(); err != nil {
		return err
	}
	if !d.held {
		return nil
	}
	if d.comm.Rank() == d.comm.Size()-1 {
		var x sessions.PSetOperation
		for x.Op == sessions.PSetOpNull {
			var err error
			if x, err = d.s.QueryPSetOp(ctx, d.main, d.main); err != nil {
				return err
			}
		}
	} else if d.comm.Rank() > 0 { // it follows the set
		if _, err := d.s.QueryPSetOp(ctx, d.main, d.main); err != nil {
			return err
		}
	}
	return d.comm.Barrier()
}

func severalHosts(s *sessions.Session) (bool, error) {
	list, err := s.PSets()
	hosts := 0
	for _, name := range list {
		if strings.HasPrefix(name, "gompi://host/") {
			hosts++
		}
	}
	return hosts > 1, err
}
