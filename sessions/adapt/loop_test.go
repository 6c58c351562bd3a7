// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/adapt"
)

// published is the program of the paper: the adapt block stands first in the loop, and
// processes that join enter the same loop, where their first Probe says JOINING. The world
// after Commit is the communicator that Begin has given, with the attribute, the copy and
// the pending receive that it got there.
func published(ctx context.Context, world *mpi.Comm) error {
	p, status, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	where := mpi.NewKeyval[int](nil, nil)
	iteration, at := 0, 0
	for asked := -1; ; iteration++ {
		if status == adapt.New && world.Rank() == 0 && asked != at {
			if asked = at; at < len(steps) {
				r := steps[at].ask
				if r.In = []string{"gompi://main"}; len(r.Ranks) > 0 {
					if r.In[0], err = p.Sessions().Main(); err != nil {
						return err
					}
				}
				op, err := sessions.Submit(ctx, r)
				if err != nil {
					return err
				}
				op.Free()
			}
		}
		a, err := p.Probe()
		if err != nil {
			return err
		}
		if a.Operation != adapt.None {
			if again, err := p.Probe(); err != nil || again.Operation != a.Operation || again.Status != a.Status {
				return fmt.Errorf("probed %+v, and then %+v: %w", a, again, err)
			}
			if (status == adapt.Joining) != (a.Status == adapt.Joining) {
				return fmt.Errorf("a process that is %v probes %+v", status, a)
			}
			w, err := p.Begin(ctx)
			if err != nil {
				return err
			}
			if again, err := p.Begin(ctx); err != nil || again != w {
				return fmt.Errorf("begun again: %+v, not %+v: %w", again, w, err)
			}
			var late mpi.Request
			var got []int
			var copied *mpi.Comm
			future := w.Future
			if future != nil {
				if iteration, err = mpi.BcastOne(future, iteration, 0); err == nil {
					at, err = mpi.BcastOne(future, at, 0)
				}
				if err == nil {
					err = mpi.SetAttr(future, where, at)
				}
				if err == nil {
					got = make([]int, 1)
					left := (future.Rank() + future.Size() - 1) % future.Size()
					late = mpi.Irecv(future, got, left, 7)
				}
				if err == nil {
					copied, err = future.Dup()
				}
				if err != nil {
					return err
				}
			}
			if step := steps[at]; a.Operation != step.op || w.Staying != step.stay || w.Leaving != step.leave || w.Joining != step.join {
				return fmt.Errorf("step %d: %+v, %+v", at, a, w)
			}
			next, err := p.Commit(ctx)
			if err != nil {
				return err // who leaves
			}
			if next != future {
				return errors.New("the world is not the communicator that Begin has given")
			}
			world, status = next, adapt.New
			if n, ok := mpi.GetAttr(world, where); !ok || n != at {
				return fmt.Errorf("step %d: attribute %d, %v", at, n, ok)
			}
			if err := mpi.SendOne(world, world.Rank(), (world.Rank()+1)%world.Size(), 7); err != nil {
				return err
			}
			if _, err := late.Wait(); err != nil || got[0] != (world.Rank()+world.Size()-1)%world.Size() {
				return fmt.Errorf("received %d by a request of the window: %w", got[0], err)
			}
			if err := errors.Join(copied.Barrier(), copied.Free()); err != nil {
				return err
			}
			at++
		}
		if sum, err := mpi.AllreduceOne(world, iteration, mpi.Max); err != nil || sum != iteration {
			return fmt.Errorf("iteration %d beside %d: %w", iteration, sum, err)
		}
		if at == len(steps) {
			return nil
		}
	}
}

// freed: the program frees the intercommunicator in the window, or after it, or not.
func freed(ctx context.Context, world *mpi.Comm) error {
	p, status, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	for done := 0; done < 3; {
		if status == adapt.New && world.Rank() == 0 {
			op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}})
			if err != nil {
				return err
			}
			op.Free()
		}
		status = adapt.New
		var a adapt.Adaptation
		for a.Operation == adapt.None {
			if a, err = p.Probe(); err == nil && a.Operation == adapt.None {
				err = world.Barrier()
			}
			if err != nil {
				return err
			}
		}
		w, err := p.Begin(ctx)
		if err != nil {
			return err
		}
		if done, err = mpi.BcastOne(w.Future, done, 0); err != nil {
			return err
		}
		if done == 0 {
			err = w.Inter.Disconnect()
		}
		if err == nil {
			world, err = p.Commit(ctx)
		}
		if err == nil && done > 0 {
			err = w.Inter.Barrier()
		}
		if err == nil && done == 1 {
			err = w.Inter.Free()
		}
		if err != nil {
			return fmt.Errorf("adaptation %d: %w", done, err)
		}
		done++
	}
	return size(world, 4)
}
