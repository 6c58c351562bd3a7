// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/adapt"
)

var programs = []scenes.Scene{
	{Name: "loop", Ranks: 3, Run: loop},
	{Name: "misused", Ranks: 1, Run: misused},
	{Name: "fault", Ranks: 3, Run: fault, Dies: 1},
	{Name: "undone", Ranks: 3, Run: undone},
	{Name: "declined", Ranks: 3, Run: declined},
	{Name: "late", Ranks: 3, Run: late},
	{Name: "published", Ranks: 3, Run: published},
	{Name: "freed", Ranks: 1, Run: freed},
}

// steps are the adaptations for which the first process asks, one after the other.
var steps = []struct {
	ask                  sessions.Request
	op                   adapt.Operation
	stay, leave, join, n int
}{
	{sessions.Request{Kind: sessions.Grow, Add: []int{2}}, adapt.Expansion, 3, 0, 2, 5},
	{sessions.Request{Kind: sessions.Replace, Ranks: []int{0, 1}, Add: []int{1}}, adapt.Combined, 3, 2, 1, 4},
	{sessions.Request{Kind: sessions.Replace, Ranks: []int{3}, Add: []int{1}}, adapt.Migration, 3, 1, 1, 4},
	{sessions.Request{Kind: sessions.Shrink, Sub: 3}, adapt.Reduction, 1, 3, 0, 1},
}

// loop is the run of iMPI: work, probe, and a window in which all learn where the loop
// is, at the end of its body.
func loop(ctx context.Context, world *mpi.Comm) error {
	p, status, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	iteration, at := 0, 0
	window := func(op adapt.Operation) error {
		w, err := p.Begin(ctx)
		if err != nil {
			return err
		}
		if w.Future != nil { // where the loop is comes from who has stayed
			if iteration, err = mpi.BcastOne(w.Future, iteration, 0); err == nil {
				at, err = mpi.BcastOne(w.Future, at, 0)
			}
			if err != nil {
				return err
			}
		}
		if w.Inter != nil {
			if err := w.Inter.Barrier(); err != nil {
				return err
			}
		}
		step := steps[at]
		if w.Staying != step.stay || w.Leaving != step.leave || w.Joining != step.join || (op != adapt.None && op != step.op) {
			return fmt.Errorf("step %d, %v: %+v", at, op, w)
		}
		next, err := p.Commit(ctx)
		if err != nil {
			return err
		}
		if world = next; world.Size() != step.n {
			return fmt.Errorf("step %d: %d ranks", at, world.Size())
		}
		at++
		return nil
	}
	if status == adapt.Joining {
		if err := window(adapt.None); err != nil {
			return err
		}
		iteration++
	}
	for asked := -1; at < len(steps); iteration++ {
		if sum, err := mpi.AllreduceOne(world, iteration, mpi.Max); err != nil || sum != iteration {
			return fmt.Errorf("iteration %d beside %d: %w", iteration, sum, err)
		}
		if world.Rank() == 0 && asked != at {
			asked = at
			r := steps[at].ask
			if r.In = []string{"gompi://main"}; len(r.Ranks) > 0 {
				main, err := p.Sessions().Main()
				if err != nil {
					return err
				}
				r.In[0] = main
			}
			op, err := sessions.Submit(ctx, r)
			if err != nil {
				return err
			}
			op.Free()
		}
		a, err := p.Probe()
		if err != nil {
			return err
		}
		if a.Operation == adapt.None {
			continue
		}
		if _, leave := a.Status, steps[at].leave; a.Status == adapt.Leaving && leave == 0 {
			return fmt.Errorf("%+v, where nobody leaves", a)
		}
		if err := window(a.Operation); err != nil {
			return err
		}
	}
	return nil
}

// fault: a process fails, and the others are told of it by the adaptation that leaves
// it out.
func fault(ctx context.Context, world *mpi.Comm) error {
	p, _, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() == 1 {
		scenes.Die(ctx)
	}
	if _, _, err := mpi.RecvOne[int](world, 1, 0); !errors.Is(err, mpi.ErrProcFailed) {
		return fmt.Errorf("received from who has failed: %w", err)
	}
	if world.Rank() == 0 {
		op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}})
		if err != nil {
			return err
		}
		defer op.Free()
	}
	var a adapt.Adaptation
	for a.Operation == adapt.None {
		if a, err = p.Probe(); err != nil {
			return err
		}
	}
	if a.Operation != adapt.Fault || a.Status != adapt.Staying || len(a.Failed) != 1 || a.Failed[0] != 1 {
		return fmt.Errorf("probed %+v", a)
	}
	if w, err := p.Begin(ctx); err != nil || w.Staying != 2 || w.Leaving+w.Joining != 0 || w.Inter != nil {
		return fmt.Errorf("%+v: %w", w, err)
	}
	next, err := p.Commit(ctx)
	if err != nil || next.Size() != 2 {
		return fmt.Errorf("a world of %d: %w", next.Size(), err)
	}
	if err := next.Barrier(); err != nil {
		return err
	}
	return nil
}

// misused: calls that have no place are errors.
func misused(ctx context.Context, world *mpi.Comm) error {
	p, status, err := adapt.Init(ctx)
	if err != nil || status != adapt.New {
		return fmt.Errorf("%v: %w", status, err)
	}
	defer p.Close()
	if _, err := p.Begin(ctx); !errors.Is(err, mpi.ErrArg) {
		return fmt.Errorf("a window without an adaptation: %w", err)
	}
	if _, err := p.Commit(ctx); !errors.Is(err, mpi.ErrArg) {
		return fmt.Errorf("committed no adaptation: %w", err)
	}
	a, err := p.Probe()
	if err != nil || a.Operation != adapt.None {
		return fmt.Errorf("%+v: %w", a, err)
	}
	return nil
}
