// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// familySum is a reduction over both groups: each side gets the sum of the other's.
func familySum(c *mpi.Comm, mine int) (int, error) { return mpi.AllreduceOne(c, mine, mpi.Sum) }

// childOf is a spawned process that adds with its parents and with its siblings.
func childOf(t *mpitest.T, w *mpi.Comm) {
	c, err := w.Process().Parent()
	must(t, err)
	again, err := w.Process().Parent()
	must(t, err)
	if c == nil || again != c || c.Size() != w.Size() || c.Rank() != w.Rank() || !c.IsInter() {
		t.Fatalf("the parent communicator is %v and %v", c, again)
	}
	sum, err := familySum(c, 10)
	must(t, err)
	if sum != c.RemoteSize() {
		t.Fatalf("the parents' sum is %d of %d", sum, c.RemoteSize())
	}
	m, err := c.IntercommMerge(true)
	must(t, err)
	if sum, err = mpi.AllreduceOne(m, 1, mpi.Sum); err != nil || sum != c.Size()+c.RemoteSize() || m.Rank() != c.RemoteSize()+c.Rank() {
		t.Fatalf("the family's sum is %d, rank %d, %v", sum, m.Rank(), err)
	}
	must(t, m.Free())
	must(t, c.Disconnect())
	if c, err = w.Process().Parent(); c != nil || err != nil {
		t.Fatalf("after Disconnect the parent is %v, %v", c, err)
	}
}

// withChildren is what the parents do.
func withChildren(t *mpitest.T, c *mpi.Comm, n int) {
	t.Helper()
	if c.RemoteSize() != n {
		t.Fatalf("%d children, want %d", c.RemoteSize(), n)
	}
	sum, err := familySum(c, 1)
	must(t, err)
	if sum != 10*n {
		t.Fatalf("the children's sum is %d of %d", sum, n)
	}
	m, err := c.IntercommMerge(false)
	must(t, err)
	if sum, err = mpi.AllreduceOne(m, 1, mpi.Sum); err != nil || sum != c.Size()+n || m.Rank() != c.Rank() {
		t.Fatalf("the family's sum is %d, rank %d, %v", sum, m.Rank(), err)
	}
	must(t, m.Free())
	must(t, c.Disconnect())
}

func wantCodes(t *mpitest.T, codes []error, run, all int) {
	t.Helper()
	if len(codes) != all {
		t.Fatalf("%d error codes for %d processes", len(codes), all)
	}
	n := 0
	for _, err := range codes {
		if err == nil {
			n++
		} else {
			wantError(t, err, mpi.ErrSpawn)
		}
	}
	if n != run {
		t.Fatalf("%d of %d run, want %d: %v", n, all, run, codes)
	}
}

func TestCommSpawn(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for root := range 3 {
			c, codes, err := mpi.CommSpawn(w, mpi.Command{Program: "child", Procs: 2 + root}, root)
			must(t, err)
			wantCodes(t, codes, 2+root, 2+root)
			withChildren(t, c, 2+root)
		}
		if c, err := w.Process().Parent(); c != nil || err != nil {
			t.Errorf("who was not spawned has the parent %v, %v", c, err)
		}
	}, mpitest.Program("child", childOf))
}

// Each rank spawns by itself, all at once and again and again, on slots that are just
// enough.
func TestCommSpawnAtOnce(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for range 5 {
			c, _, err := mpi.CommSpawn(w.Process().Self(), mpi.Command{Program: "child", Procs: 2}, 0)
			must(t, err)
			withChildren(t, c, 2)
		}
	}, mpitest.Program("child", childOf), mpitest.Slots(9))
}

func TestCommSpawnMultiple(t *testing.T) {
	argued := func(t *mpitest.T, w *mpi.Comm) {
		want := "[a b]"
		if w.Rank() == 2 {
			want = "[c]"
		}
		if got := fmt.Sprint(t.Args()); got != want || w.Size() != 3 {
			t.Errorf("rank %d of %d has the arguments %s, want %s", w.Rank(), w.Size(), got, want)
		}
		childOf(t, w)
	}
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, codes, err := mpi.CommSpawnMultiple(w, []mpi.Command{{Program: "child", Args: []string{"a", "b"}, Procs: 2}, {Program: "other", Args: []string{"c"}, Procs: 1}}, 1)
		must(t, err)
		wantCodes(t, codes, 3, 3)
		withChildren(t, c, 3)
	}, mpitest.Program("child", argued), mpitest.Program("other", argued))
}

// Soft counts take what is free, and others are refused.
func TestCommSpawnSoft(t *testing.T) {
	for _, x := range []struct {
		soft string
		want int // 0: refused
	}{{"", 0}, {"1:8", 5}, {"2:8:2", 4}, {"8:1:-3", 5}, {"7,3,1", 3}, {"6:8", 0}, {"0:8:7", 0}, {"-7:8:4", 5}} {
		mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
			c, codes, err := mpi.CommSpawn(w, mpi.Command{Program: "child", Procs: 8, Soft: x.soft}, 0)
			if x.want == 0 {
				wantError(t, err, mpi.ErrSpawn, "5 slots free")
				wantCodes(t, codes, 0, 8)
				return
			}
			must(t, err)
			wantCodes(t, codes, x.want, 8)
			withChildren(t, c, x.want)
		}, mpitest.Program("child", childOf), mpitest.Slots(7))
	}
}

// What is wrong all ranks are told.
func TestCommSpawnRefused(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, x := range []struct {
			text string
			cmd  mpi.Command
		}{
			{"0 processes", mpi.Command{Program: "child"}},
			{"not a, a:b or a:b:c", mpi.Command{Program: "child", Procs: 1, Soft: "x"}},
			{"not NAME=VALUE", mpi.Command{Program: "child", Procs: 1, Env: []string{"=1"}}},
			{"but no program", mpi.Command{Args: []string{"x"}, Procs: 1}},
			{"byte 0", mpi.Command{Program: "a\x00b", Procs: 1}},
		} {
			_, codes, err := mpi.CommSpawn(w, x.cmd, 1)
			wantError(t, err, mpi.ErrArg, x.text)
			if len(codes) > 0 {
				t.Errorf("%s: codes %v", x.text, codes)
			}
		}
		_, codes, err := mpi.CommSpawnMultiple(w, []mpi.Command{{Program: "child", Procs: 1}, {Program: "nowhere", Procs: 2}}, 0)
		wantError(t, err, mpi.ErrSpawn, "no such program: nowhere")
		wantCodes(t, codes, 0, 3)
		if !strings.Contains(codes[0].Error(), "one beside it") || !strings.Contains(codes[2].Error(), "nowhere") {
			t.Errorf("codes %v", codes)
		}
		_, _, err = mpi.CommSpawn(w, mpi.Command{Program: "child", Procs: 1, Hosts: []string{"elsewhere"}}, 0)
		wantError(t, err, mpi.ErrSpawn, "no host \"elsewhere\"")
		spare, err := w.Dup() // the call revokes it, while others may still be in the one before
		must(t, err)
		_, _, err = mpi.CommSpawn(spare, mpi.Command{Program: "child", Procs: 1}, 2)
		wantError(t, err, mpi.ErrRoot)
		many := mpi.Command{Program: "child", Procs: 1 << 16}
		_, _, err = mpi.CommSpawnMultiple(w, []mpi.Command{many, many}, 0)
		wantError(t, err, mpi.ErrArg, "131072 processes")
		_, _, err = mpi.CommSpawnMultiple(w, nil, 0)
		wantError(t, err, mpi.ErrArg, "no command")
		must(t, w.Barrier())
	}, mpitest.Program("child", childOf))
}

// Spawn makes no communicator, and its processes have no parent communicator.
func TestSpawn(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		s, err := mpi.Spawn(w, []mpi.Command{{Program: "child", Procs: 2}}, 1)
		must(t, err)
		wantCodes(t, s.Errors, 2, 2)
		late, req := mpi.Ispawn(w, []mpi.Command{{Program: "child", Procs: 1}, {Program: "child", Procs: 2}}, 0)
		must(t, w.Barrier())
		_, err = req.Wait()
		must(t, err)
		wantCodes(t, late.Errors, 3, 3)
		if s.Set == "" || late.Set == "" || late.Set == s.Set {
			t.Errorf("sets %q and %q", s.Set, late.Set)
		}
		_, req = mpi.Ispawn(w, []mpi.Command{{Program: "nowhere", Procs: 1}}, 0)
		_, err = req.Wait()
		wantError(t, err, mpi.ErrSpawn, "nowhere")
		_, req = mpi.Ispawn(w, nil, 0)
		_, err = req.Wait()
		wantError(t, err, mpi.ErrArg)
	}, mpitest.Program("child", func(t *mpitest.T, w *mpi.Comm) {
		if c, err := w.Process().Parent(); c != nil || err != nil {
			t.Errorf("the parent is %v, %v", c, err)
		}
		must(t, w.Barrier())
	}))
}

// A spawn that waits for slots ends with its context, and the others are told.
func TestCommSpawnGivenUp(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		first, _, err := mpi.CommSpawn(w, mpi.Command{Program: "child", Procs: 1}, 0)
		must(t, err)
		c := w
		if w.Rank() == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			c = w.WithContext(ctx)
		}
		_, codes, err := mpi.CommSpawn(c, mpi.Command{Program: "nobody", Procs: 2}, 0)
		wantError(t, err, mpi.ErrCancelled)
		wantCodes(t, codes, 0, 2)
		must(t, w.Barrier())
		withChildren(t, first, 1)
	}, mpitest.Program("child", childOf), mpitest.Program("nobody", func(t *mpitest.T, w *mpi.Comm) {
		t.Error("a child runs that nobody waits for")
	}), mpitest.Slots(4))
}

// A spawn that is given up at any moment, also in that of its answer, has happened for all
// parents or has failed for one of them, and then the children are not needed.
func TestCommSpawnCancelled(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		happened := 0
		for i := range 60 {
			d, err := w.Dup()
			must(t, err)
			c := d
			if w.Rank() == 0 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*200*time.Microsecond)
				defer cancel()
				c = d.WithContext(ctx)
			}
			k, _, err := mpi.CommSpawn(c, mpi.Command{Program: "child", Procs: 2}, 0)
			if err != nil && !errors.Is(err, mpi.ErrCancelled) && !errors.Is(err, mpi.ErrRevoked) && !errors.Is(err, mpi.ErrAborted) {
				t.Fatal(err)
			}
			ok := 0
			if err == nil {
				ok = 1
			}
			all, err := mpi.AllreduceOne(w, ok, mpi.Sum)
			must(t, err)
			switch {
			case all == 2:
				happened++
				must(t, greet(k))
			case ok == 1:
				must(t, k.Free())
			}
			must(t, d.Free())
		}
		t.Logf("%d of 60 have happened", happened)
	}, mpitest.Program("child", func(t *mpitest.T, w *mpi.Comm) {
		if c, err := w.Process().Parent(); err == nil {
			_ = greet(c) // it may not be wanted
		}
	}))
}

// A child that is killed is a failed rank for its parents.
func TestSpawnedDies(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, _, err := mpi.CommSpawn(w, mpi.Command{Program: "child", Procs: 2}, 0)
		must(t, err)
		_, err = mpi.Recv(c, make([]int, 1), 1, 0)
		wantError(t, err, mpi.ErrProcFailed)
		must(t, mpi.Send(c, []int{1}, 0, 0))
		must(t, c.Free())
	}, mpitest.Program("child", func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Process().Parent()
		must(t, err)
		if w.Rank() == 1 {
			t.Kill(-1)
		}
		for rank := range c.RemoteSize() {
			_, err = mpi.Recv(c, make([]int, 1), rank, 0)
			must(t, err)
		}
	}))
}
