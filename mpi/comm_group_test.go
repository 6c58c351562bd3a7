// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// Many goroutines of each rank make communicators of overlapping groups at the
// same time, each several times over. None waits for another or gets its id.
func TestCommFromGroupConcurrent(t *testing.T) {
	const groups, rounds = 12, 6
	overAll(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		rnd := rand.New(rand.NewPCG(5, 5))
		var wg sync.WaitGroup
		for k := range groups {
			ranks := rnd.Perm(w.Size())[:1+rnd.IntN(w.Size())]
			if k%2 == 1 && k > 1 {
				ranks = []int{4, 2, 3} // the same group under several tags
			}
			if !slices.Contains(ranks, w.Rank()) {
				continue
			}
			g, err := w.Group().Incl(ranks)
			must(t, err)
			wg.Go(func() {
				for i := range rounds {
					var c *mpi.Comm
					var err error
					if k%3 == 0 {
						c, err = w.CreateGroup(g, k)
					} else {
						c, err = mpi.CommFromGroup(g, fmt.Sprint("tag ", k))
					}
					must(t, err)
					var ps []wire.ProcID
					for _, p := range g.Core().All() {
						ps = append(ps, p)
					}
					checkComm(t, c, ps)
					if i%2 == 0 {
						c.Free()
					}
				}
			})
		}
		wg.Wait()
	})
}

// The order of the group counts, and the id may travel as an offer.
func TestCommFromGroupOrder(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		c, err := mpi.CommFromGroup(w.Group(), "")
		must(t, err)
		checkComm(t, c, procs(w))
		turned, err := w.Group().RangeIncl([]mpi.RankRange{{First: 2, Last: 0, Stride: -1}})
		must(t, err)
		c, err = mpi.CommFromGroup(turned, "")
		must(t, err)
		ps := procs(w)
		slices.Reverse(ps)
		checkComm(t, c, ps)
	}, mpitest.Setting("GOMPI_EAGER", "-1"))
}

func TestCommFromGroupRefused(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if c, err := mpi.CommFromGroup(mpi.Group{}, "x"); c != nil || err != nil {
			t.Errorf("the empty group gives %v, %v", c, err)
		}
		if c, err := w.CreateGroup(mpi.Group{}, 1); c != nil || err != nil {
			t.Errorf("the empty group gives %v, %v", c, err)
		}
		other, err := w.Group().Excl([]int{w.Rank()})
		must(t, err)
		_, err = mpi.CommFromGroup(other, "x")
		wantError(t, err, mpi.ErrRank, "not in the group")
		_, err = w.CreateGroup(other, 1)
		wantError(t, err, mpi.ErrRank, "not in the group")
		_, err = mpi.CommFromGroup(w.Group(), string(make([]byte, mpi.MaxStringTag+1)))
		wantError(t, err, mpi.ErrTag)
		_, err = w.CreateGroup(w.Group(), -1)
		wantError(t, err, mpi.ErrTag)
		_, err = w.Process().Self().CreateGroup(w.Group(), 1)
		wantError(t, err, mpi.ErrRank)
	})
}

// Who gives up is rid of the call, and a message that comes later is not taken
// for another answer.
func TestCommFromGroupGivenUp(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		why := errors.New("changed my mind")
		if w.Rank() == 1 {
			go cancel(why)
			_, err := mpi.CommFromGroup(w.Group().WithContext(ctx), "late")
			wantError(t, err, mpi.ErrCancelled, "changed my mind")
		}
		must(t, w.Barrier())
		if w.Rank() == 0 {
			_, err := mpi.CommFromGroup(w.Group(), "late")
			must(t, err)
		}
		must(t, w.Barrier())
		if w.Rank() == 1 {
			_, err := mpi.CommFromGroup(w.Group(), "late")
			wantError(t, err, mpi.ErrComm, "given up")
		}
		// The first rank gives up: the others learn of it.
		if w.Rank() == 0 {
			cancel(why)
			_, err := mpi.CommFromGroup(w.Group().WithContext(ctx), "first")
			wantError(t, err, mpi.ErrCancelled)
		} else {
			_, err := mpi.CommFromGroup(w.Group(), "first")
			wantError(t, err, mpi.ErrAborted)
		}
		c, err := mpi.CommFromGroup(w.Group(), "again")
		must(t, err)
		checkComm(t, c, procs(w))
	})
}

// A member dies while others make a communicator: the death of the first ends
// their calls, that of another the first collective. The memory is the world's, if
// that has some.
func TestCommFromGroupDeath(t *testing.T) {
	for _, tr := range transports {
		for k := range 4 {
			victim, memory := []int{0, 2}[k%2], k >= 2
			t.Run(fmt.Sprint(tr, victim, memory), func(t *testing.T) {
				j := testjob.New(t, mpitest.Transport(tr))
				var ps []*mpi.Process
				for _, sp := range j.Add(3) {
					p, err := j.Boot(sp)
					if err != nil {
						t.Fatal(err)
					}
					ps = append(ps, p)
				}
				errs := make(chan error, 3)
				if memory {
					for _, p := range ps {
						go func() { errs <- p.World().Barrier() }()
					}
					for range ps {
						if err := <-errs; err != nil {
							t.Fatal(err)
						}
					}
				}
				for r, p := range ps {
					if r == victim {
						continue
					}
					go func() {
						c, err := mpi.CommFromGroup(p.World().Group(), "t")
						if err == nil {
							err = c.Barrier()
						}
						errs <- err
					}()
				}
				j.Kill(ps[victim])
				for range 2 {
					if err := <-errs; !errors.Is(err, mpi.ErrProcFailed) {
						t.Errorf("error is %v", err)
					}
				}
				for r, p := range ps {
					if r != victim {
						if err := j.Leave(p); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

// A member dies while all make communicators of all kinds: everybody's calls
// end with an error, whichever call it meets.
func TestCreationDeath(t *testing.T) {
	const n = 5
	for _, tr := range transports {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(tr, seed), func(t *testing.T) {
				j := testjob.New(t, mpitest.Transport(tr))
				var ps []*mpi.Process
				for _, sp := range j.Add(n) {
					p, err := j.Boot(sp)
					if err != nil {
						t.Fatal(err)
					}
					ps = append(ps, p)
				}
				victim := int(seed) % n
				moment := make(chan struct{})
				errs := make(chan error, n)
				for r, p := range ps {
					go func() {
						err := createForever(p.World(), seed, func(i int) {
							if r == victim && i == 20 {
								close(moment)
							}
						})
						if r != victim {
							j.Leave(p)
						}
						errs <- err
					}()
				}
				<-moment
				j.Kill(ps[victim])
				for range n {
					select {
					case err := <-errs:
						if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrLeft) && !errors.Is(err, mpi.ErrFinalized) && !errors.Is(err, mpi.ErrAborted) {
							t.Errorf("error is %v", err)
						}
					case <-time.After(mpitest.Deadline):
						t.Fatalf("a rank does not return:\n%s", j.RollCall())
					}
				}
			})
		}
	}
}

// createForever makes and frees communicators until that fails. All ranks roll
// the same dice.
func createForever(w *mpi.Comm, seed uint64, step func(i int)) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := 0; ; i++ {
		step(i)
		var c *mpi.Comm
		var err error
		kind, k := rnd.IntN(6), 1+rnd.IntN(w.Size()-1)
		ranks := rnd.Perm(w.Size())
		g, gerr := w.Group().Incl(ranks)
		if gerr != nil {
			return gerr
		}
		switch kind {
		case 0:
			c, err = w.Dup()
		case 1:
			c, err = w.Split(w.Rank()%2, k)
		case 2:
			c, err = w.Create(g)
		case 3:
			c, err = w.CreateGroup(g, i)
		case 4:
			c, err = mpi.CommFromGroup(g, "x")
		case 5:
			low, lerr := g.RangeIncl([]mpi.RankRange{{First: 0, Last: k - 1, Stride: 1}})
			high := g.Difference(low)
			if low.Rank() == mpi.Undefined {
				low, high = high, low
			}
			c, err = mpi.IntercommCreateFromGroups(low, high, "y")
			if err == nil {
				err = errors.Join(lerr, c.Free())
				c = nil
			}
			if err == nil {
				var part *mpi.Comm
				part, err = w.Split(map[bool]int{true: 0, false: 1}[w.Rank() < k], 0)
				if err == nil {
					other := 0
					if w.Rank() < k {
						other = k
					}
					c, err = part.IntercommCreate(0, w, other, 1)
				}
				if err == nil {
					c, err = c.IntercommMerge(true)
				}
			}
		}
		if err == nil {
			_, err = mpi.AllreduceOne(c, 1, mpi.Sum)
		}
		if err != nil {
			return err
		}
		c.Free()
	}
}
