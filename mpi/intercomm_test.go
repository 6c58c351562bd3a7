// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// checkInter checks the groups of an intercommunicator, and that messages of
// each kind reach the right process of the remote group.
func checkInter(t *mpitest.T, c *mpi.Comm, local, remote []wire.ProcID) {
	t.Helper()
	self := c.Process().Core().Process().Self
	if !c.IsInter() || c.Size() != len(local) || c.Rank() != slices.Index(local, self) || c.RemoteSize() != len(remote) {
		t.Fatalf("%s: rank %d of %d facing %d; want %v facing %v", c.Name(), c.Rank(), c.Size(), c.RemoteSize(), local, remote)
	}
	for i, p := range c.RemoteGroup().Core().All() {
		if p != remote[i] {
			t.Fatalf("%s: remote rank %d is %v, want %v", c.Name(), i, p, remote[i])
		}
	}
	var reqs []mpi.Request
	in := make([][]uint32, len(remote))
	for r := range remote {
		in[r] = make([]uint32, 1)
		reqs = append(reqs, mpi.Irecv(c, in[r], r, 3), mpi.Issend(c, []uint32{self.Serial}, r, 3))
	}
	must(t, mpi.Waitall(reqs))
	for r, p := range remote {
		if in[r][0] != p.Serial {
			t.Fatalf("%s: remote rank %d is process %d, want %v", c.Name(), r, in[r][0], p)
		}
	}
	// Anybody means anybody of the remote group.
	for r := range remote {
		reqs[r] = mpi.Isend(c, make([]uint32, 5000), r, 4)
	}
	from := map[int]bool{}
	for range remote {
		m, st, err := c.Mprobe(mpi.AnySource, 4)
		must(t, err)
		_, err = mpi.Mrecv(m, make([]uint32, 5000))
		must(t, err)
		from[st.Source] = true
	}
	must(t, mpi.Waitall(reqs[:len(remote)]))
	if len(from) != len(remote) {
		t.Fatalf("%s: messages from %v only", c.Name(), from)
	}
}

// sides splits w into the ranks below k and the others, and returns the
// caller's part with both lists, its own first.
func sides(t *mpitest.T, w *mpi.Comm, k int) (part *mpi.Comm, local, remote []wire.ProcID) {
	t.Helper()
	all := procs(w)
	local, remote = all[:k], all[k:]
	if w.Rank() >= k {
		local, remote = remote, local
	}
	part, err := w.Split(map[bool]int{true: 0, false: 1}[w.Rank() < k], 0)
	must(t, err)
	return part, local, remote
}

// pair makes an intercommunicator between the ranks of w below k and the
// others.
func pair(t *mpitest.T, w *mpi.Comm, k int) (c *mpi.Comm, local, remote []wire.ProcID) {
	t.Helper()
	part, local, remote := sides(t, w, k)
	// The last rank of each side leads.
	other := w.Size() - 1
	if w.Rank() >= k {
		other = k - 1
	}
	var peer *mpi.Comm
	if part.Rank() == part.Size()-1 {
		peer = w
	} else {
		other = -7 // matters to leaders only
	}
	c, err := part.IntercommCreate(part.Size()-1, peer, other, 12)
	must(t, err)
	part.Free()
	return c, local, remote
}

func TestIntercomm(t *testing.T) {
	for _, x := range [][2]int{{2, 1}, {3, 1}, {5, 3}, {8, 3}} {
		t.Run(fmt.Sprintf("%d of %d", x[1], x[0]), func(t *testing.T) {
			overAll(t, x[0], func(t *mpitest.T, w *mpi.Comm) {
				n, k := x[0], x[1]
				c, local, remote := pair(t, w, k)
				checkInter(t, c, local, remote)

				d, err := c.Dup()
				must(t, err)
				checkInter(t, d, local, remote)
				i, req := c.Idup()
				_, err = req.Wait()
				must(t, err)
				checkInter(t, i, local, remote)
				for _, y := range []struct {
					c    *mpi.Comm
					want mpi.Comparison
				}{{c, mpi.Ident}, {d, mpi.Congruent}, {w, mpi.Unequal}} {
					if got := c.Compare(y.c); got != y.want {
						t.Errorf("compares as %v to %s, want %v", got, y.c.Name(), y.want)
					}
				}

				// Rank 0 of each side alone, and the others in reverse.
				s, err := c.Split(min(c.Rank(), 1), -c.Rank())
				must(t, err)
				part := func(ps []wire.ProcID) []wire.ProcID {
					if c.Rank() == 0 {
						return ps[:1]
					}
					rest := slices.Clone(ps[1:])
					slices.Reverse(rest)
					return rest
				}
				if len(part(remote)) == 0 {
					if s != nil {
						t.Fatal("an intercommunicator that faces nobody")
					}
				} else {
					checkInter(t, s, part(local), part(remote))
				}

				last, err := c.Group().Incl([]int{c.Size() - 1, 0})
				if c.Size() == 1 {
					last, err = c.Group(), nil
				}
				must(t, err)
				s, err = c.Create(last)
				must(t, err)
				ends := func(ps []wire.ProcID) []wire.ProcID {
					if len(ps) == 1 {
						return ps
					}
					return []wire.ProcID{ps[len(ps)-1], ps[0]}
				}
				if slices.Contains(ends(local), w.Process().Core().Process().Self) {
					checkInter(t, s, ends(local), ends(remote))
				} else if s != nil {
					t.Fatal("an intercommunicator for a process outside the group")
				}
				if s, err = c.Create(mpi.Group{}); s != nil || err != nil {
					t.Fatalf("of no ranks: %v, %v", s, err)
				}

				// Both orders, and one that is the library's choice.
				for _, order := range []string{"low first", "high first", "any"} {
					below := w.Rank() < k
					m, err := c.IntercommMerge(order != "any" && below == (order == "high first"))
					must(t, err)
					want := procs(w)
					if order == "high first" {
						want = append(slices.Clone(want[k:]), want[:k]...)
					}
					if order == "any" && m.Group().Core().At(0) != want[0] {
						want = append(slices.Clone(want[k:]), want[:k]...)
					}
					checkComm(t, m, want)
					m.Free()
				}
				if n > 2 {
					_, err = c.IntercommMerge(w.Rank() == 0)
					if k > 1 {
						wantError(t, err, mpi.ErrArg, "different values of high")
					}
				}
				must(t, w.Barrier())
				must(t, c.Free())
				must(t, d.Disconnect())
				wantError(t, mpi.Send(c, []int{1}, 0, 0), mpi.ErrComm)
				_, err = c.Dup()
				wantError(t, err, mpi.ErrComm)
			})
		})
	}
}

// Partitioned and buffered messages, and a peer that is an intercommunicator
// itself.
func TestIntercommKinds(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		c, local, remote := pair(t, w, 1)
		must(t, c.SendBuffer().Attach(1<<16))
		for r := range remote {
			must(t, mpi.Bsend(c, []int64{int64(c.Rank())}, r, 1))
		}
		for range remote {
			in := make([]int64, 1)
			st, err := mpi.Recv(c, in, mpi.AnySource, 1)
			must(t, err)
			if int(in[0]) != st.Source {
				t.Fatalf("rank %d sends %d", st.Source, in[0])
			}
		}
		buf := make([]int64, 4000)
		if w.Rank() == 0 {
			p := mpi.PrecvInit(c, buf, 2, 1, 5)
			must(t, p.Start())
			_, err := p.Wait()
			must(t, err)
			checkFill(t, buf, 9)
		} else if c.Rank() == 1 {
			fill(buf, 9)
			p := mpi.PsendInit(c, buf, 4, 0, 5)
			must(t, p.Start())
			must(t, p.PreadyRange(0, 3))
			_, err := p.Wait()
			must(t, err)
		}
		wantError(t, mpi.Send(c, []int{1}, len(remote), 0), mpi.ErrRank)
		// Over c, the two groups make another one.
		part, err := w.Split(min(w.Rank(), 1), 0)
		must(t, err)
		d, err := part.IntercommCreate(0, c, 0, 3)
		must(t, err)
		checkInter(t, d, local, remote)
	})
}

func TestIntercommFromGroups(t *testing.T) {
	overAll(t, 6, func(t *mpitest.T, w *mpi.Comm) {
		g := w.Group()
		a, err := g.Incl([]int{4, 1})
		must(t, err)
		b, err := g.Incl([]int{2, 0, 5})
		must(t, err)
		local, remote := a, b
		if a.Rank() == mpi.Undefined {
			local, remote = b, a
		}
		list := func(g mpi.Group) (ps []wire.ProcID) {
			for _, p := range g.Core().All() {
				ps = append(ps, p)
			}
			return ps
		}
		if local.Rank() == mpi.Undefined {
			_, err := mpi.IntercommCreateFromGroups(a, b, "t")
			wantError(t, err, mpi.ErrRank)
			_, err = mpi.IntercommCreateFromGroups(g, b, "t")
			wantError(t, err, mpi.ErrRank, "both groups")
			_, err = mpi.IntercommCreateFromGroups(g, mpi.Group{}, "t")
			wantError(t, err, mpi.ErrArg, "empty")
			return
		}
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				for range 3 {
					c, err := mpi.IntercommCreateFromGroups(local, remote, fmt.Sprint(k))
					must(t, err)
					checkInter(t, c, list(local), list(remote))
					must(t, c.Free())
				}
			})
		}
		wg.Wait()
	})
}

// An error of a leader is an error of its whole group, and of the other one
// where it concerns that.
func TestIntercommCreateErrors(t *testing.T) {
	overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		part, _, _ := sides(t, w, 2)
		_, err := part.IntercommCreate(0, nil, 0, 1)
		wantError(t, err, mpi.ErrComm, "in common")
		_, err = part.IntercommCreate(0, w, 99, 1)
		wantError(t, err, mpi.ErrRank, "99")
		_, err = part.IntercommCreate(0, w, 0, -1)
		wantError(t, err, mpi.ErrTag)
		spare, err := part.Dup() // the call revokes it, while others may still be in the one before
		must(t, err)
		_, err = spare.IntercommCreate(2, w, 0, 1)
		wantError(t, err, mpi.ErrRank)
		// Groups that overlap: everybody is in both.
		_, err = w.IntercommCreate(0, w, 0, 1)
		wantError(t, err, mpi.ErrArg, "both groups")
		_, err = w.IntercommMerge(true)
		wantError(t, err, mpi.ErrComm)
		must(t, w.Barrier())
	})
}

// Leaders that miss each other give up when the context of either communicator ends, or when
// the local one is revoked.
func TestIntercommCreateMissed(t *testing.T) {
	overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		part, _, _ := sides(t, w, 2)
		side := w.Rank() / 2 // tags differ by it
		other := 2 - 2*side
		for i, over := range []string{"the local communicator", "that of the leaders"} {
			own, err := part.Dup()
			must(t, err)
			ctx, cancel := context.WithTimeout(w.Process().Context(), 50*time.Millisecond)
			local, peer := own.WithContext(ctx), w
			if i == 1 {
				local, peer = own, w.WithContext(ctx)
			}
			_, err = local.IntercommCreate(0, peer, other, 10+2*i+side)
			// Who gives up a call on the local communicator revokes that for the others.
			if !errors.Is(err, mpi.ErrCancelled) && (i == 1 || !errors.Is(err, mpi.ErrRevoked)) {
				t.Errorf("the context of %s has ended: %v", over, err)
			}
			cancel()
		}
		own, err := part.Dup()
		must(t, err)
		if part.Rank() == 1 {
			own.Revoke()
		} else {
			_, err = own.IntercommCreate(0, w, other, 20+side)
			wantError(t, err, mpi.ErrRevoked, "revoked")
		}
		must(t, w.Barrier())
	})
}

// A death on either side ends what needs the dead: local ranks are told from
// remote ones of the same number.
func TestIntercommDeath(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			j := testjob.New(t, mpitest.Transport(tr))
			var ps []*mpi.Process
			for _, sp := range j.Add(4) {
				p, err := j.Boot(sp)
				if err != nil {
					t.Fatal(err)
				}
				ps = append(ps, p)
			}
			const victim = 3 // rank 1 of the side of 2 and 3
			inters := make([]*mpi.Comm, 4)
			var wg sync.WaitGroup
			for r, p := range ps {
				wg.Go(func() {
					w := p.World()
					g := w.Group()
					low, _ := g.Incl([]int{0, 1})
					high, _ := g.Incl([]int{2, 3})
					if r >= 2 {
						low, high = high, low
					}
					c, err := mpi.IntercommCreateFromGroups(low, high, "x")
					if err != nil {
						t.Error(err)
						return
					}
					inters[r] = c
				})
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			errs := make([]error, 4)
			for r := range 3 {
				wg.Go(func() { errs[r] = func() error { _, err := inters[r].Split(0, 0); return err }() })
			}
			j.Kill(ps[victim])
			wg.Wait()
			for r := range 3 {
				if !errors.Is(errs[r], mpi.ErrProcFailed) {
					t.Errorf("rank %d: Split gives %v", r, errs[r])
				}
			}
			// Remote rank 1 is dead for 0 and 1; for 2 it is alive.
			buf := make([]int64, 1)
			for r := range 2 {
				_, err := mpi.Recv(inters[r], buf, mpi.AnySource, 0)
				wantError(t, err, mpi.ErrProcFailed)
				_, err = mpi.Recv(inters[r], buf, 1, 0)
				wantError(t, err, mpi.ErrProcFailed)
			}
			for r, want := range [][]int{{1}, {1}, nil} {
				if got := inters[r].Failed(); !slices.Equal(got, want) {
					t.Errorf("rank %d knows %v to have failed, want %v", r, got, want)
				}
			}
			wg.Go(func() { errs[1] = mpi.Send(inters[1], []int64{4}, 0, 0) })
			_, err := mpi.Recv(inters[2], buf, mpi.AnySource, 0)
			wg.Wait()
			if err != nil || errs[1] != nil || buf[0] != 4 {
				t.Errorf("among the living: %v, %v, %v", err, errs[1], buf)
			}
			for r := range 3 {
				if err := j.Leave(ps[r]); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
