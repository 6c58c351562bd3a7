// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A change that waits for the vote of one is rolled back for all when its deadline is over,
// the reason names that one, and the next change is adopted.
func TestCommitDeadline(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		over, told := over(transport), make(chan struct{}, 4)
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			rolledBack := func(c *sessions.Change) {
				t.Helper()
				if _, err := c.Commit(ctx); !errors.Is(err, sessions.ErrRolledBack) {
					t.Errorf("Commit: %v", err)
				}
			}
			if c, err := sessions.Joined(ctx); err != nil || c != nil {
				must(err)
				if _, err := c.Commit(ctx); err != nil && !errors.Is(err, sessions.ErrRolledBack) {
					t.Error(err)
				}
				return
			}
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
			must(err)
			var op *sessions.Operation
			asks := true
			for i, round := 0, 0; round < 2; i++ {
				if asks && world.Rank() == 0 {
					r := sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}}
					if round == 0 {
						r.Deadlines.Commit = 100 * time.Millisecond
					}
					op, err = sessions.Submit(ctx, r)
					must(err)
				}
				asks = false
				c, err := w.Check(i)
				must(err)
				if c == nil {
					must(world.Barrier())
					continue
				}
				switch {
				case round == 1:
					_, err := c.Commit(ctx)
					must(err)
				case world.Rank() == 2:
					<-told // both others are told before it votes
					<-told
					rolledBack(c)
				default:
					rolledBack(c)
					told <- struct{}{}
				}
				if op != nil {
					x, err := op.Decided(ctx)
					must(err)
					// A slow machine has others late, too.
					if want := regexp.MustCompile(`the deadline is over: it waited for .*ranks? .*\b2\b`); round == 0 && (x.State != sessions.RolledBack || !want.MatchString(x.Err.Error())) {
						t.Errorf("%v %v, want %v", x.State, x.Err, want)
					}
					op.Free()
				}
				asks, round = true, round+1
			}
			must(w.Close())
		}, over...)
	})
}

// Who reports may work for three deadlines between Check and Commit, as a member and as a
// newcomer.
func TestProgress(t *testing.T) {
	const deadline = 300 * time.Millisecond
	for _, transport := range []string{"shm", onHosts} {
		for _, who := range []string{"member", "newcomer"} {
			t.Run(transport+", "+who, func(t *testing.T) {
				var still atomic.Int64 // how long nobody has reported
				mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
					ctx := t.Context()
					c, err := sessions.Joined(ctx)
					if err != nil {
						t.Fatal(err)
					}
					works := c != nil && who == "newcomer"
					if c == nil {
						works = who == "member" && world.Rank() == 1
						w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Deadlines: sessions.Deadlines{Commit: deadline}})
						if err == nil && world.Rank() == 0 {
							_, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}})
						}
						for i := 0; c == nil && err == nil; i++ {
							if c, err = w.Check(i); c == nil && err == nil {
								err = world.Barrier()
							}
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					if works {
						tick := time.NewTicker(5 * time.Millisecond)
						defer tick.Stop()
						for began, last := time.Now(), time.Now(); time.Since(began) < 3*deadline; last = time.Now() {
							<-tick.C
							c.Progress()
							still.Store(max(still.Load(), int64(time.Since(last))))
						}
					}
					_, err = c.Commit(ctx)
					c.Progress() // of one that is over
					switch {
					case errors.Is(err, sessions.ErrRolledBack) && time.Duration(still.Load()) > deadline/2:
						t.Logf("the machine stood still for %v", time.Duration(still.Load()))
					case err != nil:
						t.Errorf("Commit: %v", err)
					}
				}, over(transport)...)
			})
		}
	}
}
