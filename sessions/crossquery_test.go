// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// agreeing is a job of two halves, each of which changes now and then. All ranks ask
// for the changes of both.
type agreeing struct {
	seed    uint64
	changes int
	victim  int // 0: nobody dies

	halves [2]atomic.Int32 // changes of each that are over
	mu     sync.Mutex
	saw    map[string]*[4][]string // by coll and in, what each call of each rank has seen
}

func (a *agreeing) run(t *mpitest.T, world *mpi.Comm) {
	ctx := t.Context()
	c, err := sessions.Joined(ctx)
	if err == nil && c != nil {
		if _, err = c.Commit(ctx); err == nil || errors.Is(err, sessions.ErrRolledBack) {
			return
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := sessions.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	names, err := s.Split("mpi://WORLD", []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	if world.Rank() != 0 { // each Split makes sets of its own
		names = nil
	}
	if names, err = sharedNames(world, names); err != nil {
		t.Fatal(err)
	}
	rank, half := world.Rank(), world.Rank()/2
	w, err := sessions.Watch(ctx, names[half], sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := world.Barrier(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(a.seed, uint64(rank)))
	pairs := [][2]string{{names[half], names[half]}, {"mpi://WORLD", names[0]}, {"mpi://WORLD", names[1]}}
	var op *sessions.Operation
	killed := false
	for a.halves[0].Load() < int32(a.changes) || a.halves[1].Load() < int32(a.changes) {
		if rank%2 == 0 && rng.IntN(8) == 0 {
			op = a.steer(t, rng, names[half], half, op)
		}
		if rank == 0 && a.victim > 0 && !killed && a.halves[0].Load() >= int32(a.changes/2) {
			killed = true
			t.Kill(a.victim)
		}
		for range rng.IntN(20) {
			runtime.Gosched()
		}
		pair := pairs[rng.IntN(len(pairs))]
		x, err := w.Query(ctx, pair[0], pair[1])
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		key := strings.Join(pair[:], " ")
		if a.saw[key] == nil {
			a.saw[key] = new([4][]string)
		}
		answer := ""
		if x != nil {
			answer = "a change " + strings.Join(x.Joining, " ")
		}
		a.saw[key][rank] = append(a.saw[key][rank], answer)
		a.mu.Unlock()
		if x == nil || pair[1] != names[half] {
			if x != nil && (x.Role != sessions.Beside || x.Input != pair[1]) {
				t.Errorf("a change of %s, of which it is no member: %+v", pair[1], x)
			}
			continue
		}
		if _, err := x.Commit(ctx); err != nil && !errors.Is(err, sessions.ErrRolledBack) && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	if op != nil {
		op.Free()
	}
}

// steer submits the next change of a half when the one before is over.
func (a *agreeing) steer(t *mpitest.T, rng *rand.Rand, set string, half int, op *sessions.Operation) *sessions.Operation {
	if op != nil {
		if s := op.State(); s < sessions.Committed {
			if rng.IntN(20) == 0 {
				_ = op.Cancel(t.Context()) // too late, or not
			}
			return op
		}
		op.Free()
		a.halves[half].Add(1)
	}
	r := sessions.Request{Kind: sessions.Add, In: []string{set}, Add: []int{1}}
	r.Deadlines.Whole = time.Duration(rng.IntN(20)+1) * time.Millisecond
	if rng.IntN(2) == 0 {
		r.Deadlines.Whole = 100 * time.Millisecond // members may have closed their watches
	}
	op, err := sessions.Submit(t.Context(), r)
	if err != nil && t.Context().Err() == nil && !errors.Is(err, sessions.ErrRefused) { // others have closed their watches
		t.Fatal(err)
	}
	return op
}

func sharedNames(world *mpi.Comm, names []string) ([]string, error) {
	text := []byte(strings.Join(names, " "))
	n, err := mpi.BcastOne(world, len(text), 0)
	if err != nil {
		return nil, err
	}
	if world.Rank() != 0 {
		text = make([]byte, n)
	}
	if err := mpi.Bcast(world, text, 0); err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}

// TestQueriesAgree: the calls of one number of all members of a set see the same of
// another set, or of their own, whatever happens to either, and whoever dies.
func TestQueriesAgree(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				nothingLeft(t)
				a := &agreeing{seed: seed, changes: 4, victim: []int{0, 1, 3}[seed], saw: map[string]*[4][]string{}}
				mpitest.Run(t, 4, a.run, over(transport)...)
				a.check(t)
			})
		}
	})
}

func (a *agreeing) check(t *testing.T) {
	some := 0
	for key, calls := range a.saw {
		for rank := range calls {
			for other := range rank {
				for k := range min(len(calls[rank]), len(calls[other])) {
					x, y := calls[other][k], calls[rank][k]
					if x != "" {
						some++
					}
					// Who comes after the roll-back is told no more than that there was one.
					if rolled := "a change "; x != y && (x == "" || y == "" || x != rolled && y != rolled) {
						t.Fatalf("%s, call %d: rank %d sees %q, rank %d %q", key, k+1, other, x, rank, y)
					}
				}
			}
		}
	}
	if some == 0 {
		t.Error("no call has seen a change")
	}
}

// TestQueryBeside: members of a set are told of a change of another one, of which they
// are not, until it is over; the main set is followed further.
func TestQueryBeside(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			if c, err := sessions.Joined(ctx); err != nil || c != nil {
				var comm *mpi.Comm
				if err == nil {
					comm, err = c.Commit(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
				if err == nil {
					defer w.Close()
					err = comm.Barrier()
				}
				if err != nil {
					t.Fatal(err)
				}
				c, _ := querying(t, w, 0)
				if _, err := c.Commit(ctx); !errors.Is(err, sessions.ErrLeaving) {
					t.Error(err)
				}
				return
			}
			s, err := sessions.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			names, err := s.Split("mpi://WORLD", []int{2, 1})
			if err == nil {
				names, err = sharedNames(world, names)
			}
			if err != nil {
				t.Fatal(err)
			}
			pair, last := names[0], names[1]
			own := pair
			if world.Rank() == 2 {
				own = last
			}
			if world.Rank() == 0 {
				if err := s.SetMain(pair); err != nil {
					t.Fatal(err)
				}
			}
			w, err := sessions.Watch(ctx, own, sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if world.Rank() == 2 { // else it would be too late for what the others do
				_, err = w.Query(ctx, "mpi://SELF", pair)
			}
			if err == nil {
				err = world.Barrier()
			}
			if err != nil {
				t.Fatal(err)
			}
			until := func(coll, in string) *sessions.Change {
				t.Helper()
				for {
					c, err := w.Query(ctx, coll, in)
					if err != nil {
						t.Fatal(err)
					}
					if c != nil {
						return c
					}
					runtime.Gosched()
				}
			}
			if world.Rank() == 2 {
				if _, err := w.Query(ctx, pair, last); !errors.Is(err, sessions.ErrRefused) {
					t.Errorf("with members of a set that it is not in: %v", err)
				}
				if _, err := w.Query(ctx, last, "mpi://WORLD"); !errors.Is(err, sessions.ErrRefused) {
					t.Errorf("of a set that it is in: %v", err)
				}
				for _, coll := range []string{"mpi://SELF", "mpi://WORLD"} {
					c := until(coll, pair)
					if again, err := w.Query(ctx, coll, pair); again != c || err != nil {
						t.Errorf("again %p, not %p: %v", again, c, err)
					}
					if c.Role != sessions.Beside || c.Input != pair || c.Result == "" || len(c.Joining) != 1 || c.Kind() != sessions.Grow {
						t.Errorf("%+v", c)
					}
					if comm, err := c.Commit(ctx); comm != nil || err != nil {
						t.Error(comm, err)
					}
					for range 2 {
						if _, err := w.Query(ctx, coll, pair); !errors.Is(err, sessions.ErrSetReplaced) || !strings.Contains(err.Error(), c.Result) {
							t.Errorf("of a set that was replaced: %v", err)
						}
					}
				}
				if c, err := w.Query(ctx, last, mainSet); c != nil || err != nil {
					t.Error(c, err)
				}
				if err := mpi.Send(world, []byte{1}, 0, 0); err != nil {
					t.Fatal(err)
				}
				c := until(last, mainSet)
				if _, err := c.Commit(ctx); c.Kind() != sessions.Shrink || err != nil {
					t.Errorf("%+v, %v", c, err)
				}
				if c, err := w.Query(ctx, last, mainSet); c != nil || err != nil {
					t.Error(c, err)
				}
				return
			}
			if world.Rank() == 0 {
				op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{pair}, Add: []int{1}})
				if err != nil {
					t.Fatal(err)
				}
				defer op.Free()
			}
			// Nobody has called but by the page beside.
			c := until("mpi://WORLD", pair)
			comm, err := c.Commit(ctx)
			if err != nil || comm.Size() != 3 {
				t.Fatal(comm, err)
			}
			if world.Rank() == 0 {
				if _, err := mpi.Recv(world, make([]byte, 1), 2, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := comm.Barrier(); err != nil { // who calls much more often than others is waited for
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				if _, err := t.Shrink(2); err != nil {
					t.Fatal(err)
				}
			}
			c = until(c.Result, c.Result)
			if comm, err := c.Commit(ctx); err != nil || comm.Size() != 2 {
				t.Error(comm, err)
			}
		}, over(transport)...)
	})
}
