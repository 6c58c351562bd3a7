// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// guests is how many real processes are in the job at a time, beside the one that
// stays.
const guests = 10

// churnSet is the name of the key with the set of the one that stays and those of
// a world.
func churnSet(world wire.Set) string { return fmt.Sprint("set with ", world.Number) }

// meetGuests is what each of a round does in the set of all.
func meetGuests(c *mpi.Comm) error {
	defer c.Free()
	sum, err := mpi.AllreduceOne(c, c.Rank()+1, mpi.Sum)
	if n := c.Size(); err == nil && sum != n*(n+1)/2 {
		err = fmt.Errorf("sum is %d", sum)
	}
	if err != nil {
		return err
	}
	if c.Rank() != 0 { // a small and a large one to each who comes
		if _, err := mpi.Recv(c, make([]int64, 1), 0, 1); err != nil {
			return err
		}
		return mpi.Send(c, make([]int64, 10_000), 0, 2)
	}
	for r := 1; r < c.Size(); r++ {
		if err := mpi.Send(c, []int64{int64(r)}, r, 1); err != nil {
			return err
		}
		if _, err := mpi.Recv(c, make([]int64, 10_000), r, 2); err != nil {
			return err
		}
	}
	return nil
}

// guestRank is one that comes and goes.
func guestRank(w *mpi.Comm) error {
	p := w.Process()
	world, err := p.Core().Process().Control.Lookup("mpi://WORLD")
	if err != nil {
		return err
	}
	uri, err := p.Core().Process().Control.Get(context.Background(), churnSet(world), true)
	if err != nil {
		return err
	}
	set, err := p.Core().Process().Control.Lookup(string(uri))
	if err != nil {
		return err
	}
	made, err := p.Core().Make(p.Core().Process().InSet(set))
	if err != nil {
		return err
	}
	c := made.(*mpi.Comm)
	return meetGuests(c)
}

// hostRank stays, while args[0] processes come and go. It prints what it and
// gompirun hold, and the time of a round, in the beginning and in the end.
func hostRank(w *mpi.Comm, args []string) error {
	total, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	p := w.Process()
	ctl := p.Core().Process().Control
	round := func() error {
		spawned, err := ctl.SpawnAll(context.Background(), &protocol.Spawn{Parts: []protocol.SpawnPart{{N: guests, Argv: []string{os.Args[0], "rank", "guest"}}}})
		if err != nil {
			return err
		}
		world := spawned.World
		var b wire.MembersBuilder
		b.Add(wire.Range{First: p.Core().Process().Self, Count: 1})
		for _, r := range world.Members.Ranges() {
			b.Add(r)
		}
		set, err := ctl.DefineSet(b.Members())
		if err != nil {
			return err
		}
		if err := ctl.Put(churnSet(world), []byte(set.URI)); err != nil {
			return err
		}
		made, err := p.Core().Make(p.Core().Process().InSet(set))
		if err != nil {
			return err
		}
		c := made.(*mpi.Comm)
		if err := meetGuests(c); err != nil {
			return err
		}
		ctl.ReleaseSet(set.Number)
		ctl.ReleaseSet(world.Number)
		return ctl.Delete(churnSet(world))
	}
	report := func(when string, took time.Duration) {
		own := testlab.Take()
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getppid()))
		fmt.Println(when, own.HeapBytes>>10, own.Maps, own.Goroutines, len(fds), testlab.StatusOf(os.Getppid(), "VmRSS"), took.Microseconds())
	}
	var times testlab.Spread
	rounds := total / guests
	for i := range rounds {
		began := time.Now()
		if err := round(); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		times.Add(time.Since(began))
		if i == rounds/10 || i == rounds-1 {
			report([]string{"first", "last"}[min(1, i/(rounds/10+1))], times.At(0.5))
			times = testlab.Spread{}
		}
	}
	return nil
}

// TestSoakChurn: real processes come, meet one that stays, and go. Neither that one
// nor gompirun grows.
func TestSoakChurn(t *testing.T) {
	total := guests * max(2, testlab.Rounds(4, 500))
	for _, tr := range []string{"shm", "tcp"} {
		t.Run(tr, func(t *testing.T) {
			began := time.Now()
			r := osRanks(t, 1, []string{"host", strconv.Itoa(total)}, mpitest.Flags("--transport", tr), mpitest.Timeout(10*time.Minute))
			if r.Status != 0 {
				t.Fatalf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
			}
			var is [2]struct{ heap, maps, goroutines, fds, rss, took int }
			for i, line := range strings.Split(strings.TrimSpace(r.Stdout), "\n") {
				var when string
				x := &is[min(i, 1)]
				if n, err := fmt.Sscan(line, &when, &x.heap, &x.maps, &x.goroutines, &x.fds, &x.rss, &x.took); n != 7 {
					t.Fatalf("line %q: %v", line, err)
				}
			}
			a, b := is[0], is[1]
			t.Logf("%d processes in %v: {heap KiB, maps, goroutines; descriptors and KiB of gompirun; us a round} %v, then %v", total, time.Since(began).Round(time.Millisecond), a, b)
			// Processes that are just ending still have descriptors in gompirun.
			if b.heap > a.heap+2<<10 || b.maps > a.maps+2*guests || b.goroutines > a.goroutines+4 || b.fds > a.fds+8*guests || b.rss > a.rss+16<<10 {
				t.Errorf("%+v after the first rounds, %+v in the end", a, b)
			}
			if testlab.Long() && b.took > 3*a.took {
				t.Errorf("a round takes %d us at first and %d in the end", a.took, b.took)
			}
		})
	}
}
