// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// stage is when a rank ends that is to end in the midst of a change.
type stage int

const (
	whenHanded stage = iota // before its vote
	whenBegun               // a newcomer, before its vote
	whenOver                // after the decision
)

// death is a change, and who ends in its midst.
type death struct {
	name    string
	request sessions.Request
	asks    int // rank that submits it
	victim  int // rank; -1: the newcomer
	at      stage
	state   sessions.State // of the change in the end
	size    int            // after another change, by one more
}

// deathly is a job in which one change is struck by a death and the next is not.
type deathly struct {
	death
	mu     sync.Mutex
	owner  context.Context // of who has submitted the present change
	op     *sessions.Operation
	done   int  // changes
	struck bool // the victim has ended
}

// steer submits the changes, one after the other, and returns true after the last.
func (d *deathly) steer(t *mpitest.T, comm *mpi.Comm, broken bool) (end bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx := t.Context()
	switch {
	case d.op != nil && d.owner.Err() != nil:
		d.op = nil // its requester is dead: it has come to an end or will
		d.done++
	case d.op != nil && d.owner == ctx:
		if s := d.op.State(); s < sessions.Committed {
			break
		} else if want := []sessions.State{d.state, sessions.Committed}[d.done]; s != want && !(want == sessions.Committed && s == sessions.Done) {
			x, err := d.op.Decided(ctx)
			t.Errorf("change %d is %v, want %v: %v, %v", d.done, s, want, x.Err, err)
		}
		d.op.Free()
		d.op = nil
		d.done++
	case d.done == 1 && d.victim >= 0 && !(d.struck && broken): // the death is not known yet
	case d.op == nil && d.done < 2 && (d.done == 1 || comm.Rank() == d.asks):
		r := d.request
		if d.done == 1 {
			r = sessions.Request{Kind: sessions.Grow, Add: []int{1}}
		}
		r.In = []string{"gompi://main"}
		if op, err := sessions.Submit(ctx, r); err == nil {
			d.op, d.owner = op, ctx
		} else if ctx.Err() == nil {
			t.Errorf("change %d: %v", d.done, err)
			d.done++
		}
	}
	return d.done >= 2
}

// strikes reports whether this rank ends at this point of the first change.
func (d *deathly) strikes(rank int, at stage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := !d.struck && at == d.at && rank == d.victim
	d.struck = d.struck || now
	return now
}

func (d *deathly) run(t *mpitest.T, world *mpi.Comm) {
	ctx, comm, i, broken := t.Context(), world, 0, false
	c, err := sessions.Joined(ctx)
	if err == nil && c != nil {
		if d.strikes(-1, whenBegun) {
			t.Kill(-1)
		}
		if comm, err = c.Commit(ctx); err == nil {
			i, err = c.Iteration(ctx)
			i++
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for end := int64(0); end == 0 || int64(i) < end; i++ {
		c, err := w.Check(i)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			if d.strikes(comm.Rank(), whenHanded) {
				t.Kill(-1)
			}
			rank := comm.Rank()
			next, err := c.Commit(ctx)
			switch {
			case errors.Is(err, sessions.ErrLeaving):
				return
			case errors.Is(err, sessions.ErrRolledBack):
			case err != nil:
				t.Fatal(err)
			default:
				comm, broken = next, false
				if d.strikes(rank, whenOver) {
					t.Kill(-1)
				}
				continue
			}
		}
		if d.steer(t, comm, broken) && comm.Rank() == 0 && end == 0 && !broken {
			end = int64(i + comm.Size() + 1)
			if comm.Size() != d.size {
				t.Errorf("%d ranks in the end, want %d", comm.Size(), d.size)
			}
		}
		if broken {
			runtime.Gosched()
			continue
		}
		word := []int64{int64(i), end}
		switch err := ring(comm, word); {
		case err == nil:
			end = word[1]
		case errors.Is(err, mpi.ErrProcFailed), errors.Is(err, mpi.ErrRevoked), errors.Is(err, mpi.ErrLeft):
			comm.Revoke()
			broken = true
		default:
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Whoever ends in the midst of a change, it is committed or rolled back on all others,
// and the next one happens.
func TestDeaths(t *testing.T) {
	grow := sessions.Request{Kind: sessions.Grow, Add: []int{1}}
	shrink := sessions.Request{Kind: sessions.Shrink, Sub: 1}
	replace := sessions.Request{Kind: sessions.Replace, Add: []int{1}, Sub: 1}
	for _, d := range []death{
		{name: "newcomer", request: grow, victim: -1, at: whenBegun, state: sessions.RolledBack, size: 5},
		{name: "old rank", request: grow, victim: 2, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "requester", request: grow, asks: 1, victim: 1, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "first rank", request: grow, asks: 1, victim: 0, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "leaver", request: shrink, victim: 3, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "beside a leaver", request: shrink, victim: 1, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "old rank, late", request: grow, victim: 2, at: whenOver, state: sessions.Committed, size: 5},
		{name: "requester, late", request: shrink, victim: 0, at: whenOver, state: sessions.Committed, size: 3},
		{name: "newcomer of a replacement", request: replace, victim: -1, at: whenBegun, state: sessions.RolledBack, size: 5},
		{name: "leaver of a replacement", request: replace, victim: 3, at: whenHanded, state: sessions.RolledBack, size: 4},
		{name: "first rank of a replacement, late", request: replace, asks: 1, victim: 0, at: whenOver, state: sessions.Committed, size: 4},
	} {
		for _, transport := range []string{"inproc", "shm", onHosts} {
			t.Run(fmt.Sprint(d.name, "/", transport), func(t *testing.T) {
				nothingLeft(t)
				mpitest.Run(t, 4, (&deathly{death: d}).run, over(transport)...)
			})
		}
	}
}
