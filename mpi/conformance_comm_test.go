// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/mpi"
	"gompi/mpitest"
)

// checkComm checks that c is the ranks want, by process, and that its messages
// find their way.
func checkComm(t *mpitest.T, c *mpi.Comm, want []wire.ProcID) {
	t.Helper()
	self := c.Process().Core().Process().Self
	if c.Size() != len(want) || c.Rank() != slices.Index(want, self) {
		t.Fatalf("%s: rank %d of %d, want %v", c.Name(), c.Rank(), c.Size(), want)
	}
	for i, p := range c.Group().Core().All() {
		if p != want[i] {
			t.Fatalf("%s: rank %d is %v, want %v", c.Name(), i, p, want[i])
		}
	}
	all := make([]uint32, c.Size())
	must(t, mpi.Allgather(c, []uint32{self.Serial}, all))
	for i, s := range all {
		if s != want[i].Serial {
			t.Fatalf("%s: rank %d is process %d, want %v", c.Name(), i, s, want[i])
		}
	}
	to, from := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	in := make([]uint32, 1)
	_, err := mpi.Sendrecv(c, []uint32{self.Serial}, to, 3, in, from, 3)
	must(t, err)
	if in[0] != want[from].Serial {
		t.Fatalf("%s: rank %d is process %d, want %v", c.Name(), from, in[0], want[from])
	}
}

// procs gives the processes of a communicator.
func procs(c *mpi.Comm) (ps []wire.ProcID) {
	for _, p := range c.Group().Core().All() {
		ps = append(ps, p)
	}
	return ps
}

// TestRandomComms makes and frees communicators out of each other at random,
// and compares each with what lists of processes say.
func TestRandomComms(t *testing.T) {
	for _, x := range []struct {
		name string
		opts []mpitest.Option
	}{
		{"plain", nil},
		{"offers", []mpitest.Option{mpitest.Setting("GOMPI_EAGER", "-1")}},
		{"checked", []mpitest.Option{checking}},
		{"awkward", []mpitest.Option{awkward}},
	} {
		for i, n := range []int{1, 2, 3, 5, 8} {
			t.Run(fmt.Sprint(x.name, n), func(t *testing.T) {
				overAll(t, n, func(t *mpitest.T, w *mpi.Comm) { randomComms(t, w, uint64(i), 40) }, x.opts...)
			})
		}
	}
}

// randomComms makes steps communicators. All ranks roll the same dice, those
// outside a communicator too.
func randomComms(t *mpitest.T, w *mpi.Comm, seed uint64, steps int) {
	type made struct {
		c     *mpi.Comm // nil outside
		procs []wire.ProcID
	}
	rnd := rand.New(rand.NewPCG(seed, uint64(w.Size())))
	self := w.Process().Core().Process().Self
	live := []made{{w, procs(w)}}
	// add takes the parts that one call made, of which this process has one.
	add := func(c *mpi.Comm, err error, member bool, parts ...[]wire.ProcID) {
		if !member {
			c, err = nil, nil
		}
		must(t, err)
		for _, ps := range parts {
			m := made{nil, ps}
			if slices.Contains(ps, self) {
				if m.c = c; c == nil {
					t.Fatalf("no communicator of %v", ps)
				}
				checkComm(t, c, ps)
			}
			if len(ps) > 0 {
				live = append(live, m)
			}
		}
		if c != nil && !slices.ContainsFunc(parts, func(ps []wire.ProcID) bool { return slices.Contains(ps, self) }) {
			t.Fatalf("a communicator for a process outside %v", parts)
		}
	}
	for range steps {
		from := live[rnd.IntN(len(live))]
		in, n := from.c != nil, len(from.procs)
		var c *mpi.Comm
		var err error
		switch rnd.IntN(8) {
		case 0:
			if in {
				c, err = from.c.Dup()
			}
			add(c, err, in, from.procs)
		case 1:
			colors, keys := make([]int, n), make([]int, n)
			for i := range n {
				if colors[i], keys[i] = rnd.IntN(3), rnd.IntN(4)-2; rnd.IntN(6) == 0 {
					colors[i] = mpi.Undefined
				}
			}
			parts := make([][]wire.ProcID, 3)
			for color := range parts {
				var ranks []int
				for i := range n {
					if colors[i] == color {
						ranks = append(ranks, i)
					}
				}
				slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
				for _, i := range ranks {
					parts[color] = append(parts[color], from.procs[i])
				}
			}
			if in {
				c, err = from.c.Split(colors[from.c.Rank()], keys[from.c.Rank()])
			}
			add(c, err, in, parts...)
		case 2:
			ranks := rnd.Perm(n)[:1+rnd.IntN(n)]
			var part []wire.ProcID
			for _, i := range ranks {
				part = append(part, from.procs[i])
			}
			if in {
				g, gerr := from.c.Group().Incl(ranks)
				must(t, gerr)
				c, err = from.c.Create(g)
			}
			add(c, err, in, part)
		case 3:
			if in {
				c, err = from.c.SplitType(mpi.SplitShared, -from.c.Rank(), nil)
			}
			turned := slices.Clone(from.procs)
			slices.Reverse(turned)
			add(c, err, in, sharing(t, turned)...)
		case 4: // by the members alone, in any order of groups and tags
			ranks, tag := rnd.Perm(n)[:1+rnd.IntN(n)], rnd.IntN(3)
			var part []wire.ProcID
			for _, i := range ranks {
				part = append(part, from.procs[i])
			}
			member := slices.Contains(part, self)
			if member {
				g, gerr := from.c.Group().Incl(ranks)
				must(t, gerr)
				if tag == 0 {
					c, err = mpi.CommFromGroup(g, "random")
				} else {
					c, err = from.c.CreateGroup(g, tag)
				}
			}
			add(c, err, member, part)
		case 5:
			if in {
				var r mpi.Request
				c, r = from.c.Idup()
				must(t, from.c.Barrier())
				_, err = r.Wait()
			}
			add(c, err, in, from.procs)
		case 6: // two sides, and together again
			k, turn := 1+rnd.IntN(max(1, n-1)), rnd.IntN(2)
			if n < 2 {
				continue
			}
			order := slices.Concat(from.procs[:k], from.procs[k:])
			if turn == 1 {
				order = slices.Concat(from.procs[k:], from.procs[:k])
			}
			if in {
				c = through(t, from.c, k, turn == 1)
			}
			add(c, nil, in, order)
		case 7:
			k := rnd.IntN(len(live))
			if k == 0 {
				continue
			}
			if live[k].c != nil {
				live[k].c.Free()
			}
			live = slices.Delete(live, k, k+1)
		}
	}
	for _, m := range live[1:] {
		if m.c != nil {
			checkComm(t, m.c, m.procs)
			m.c.Free()
		}
	}
}

// through makes an intercommunicator between the ranks of c below k and the
// others, checks it and a duplicate, and merges it, the higher ranks first if
// turned.
func through(t *mpitest.T, c *mpi.Comm, k int, turned bool) *mpi.Comm {
	t.Helper()
	below := c.Rank() < k
	part, local, remote := sides(t, c, k)
	other := 0
	if below {
		other = k
	}
	x, err := part.IntercommCreate(0, c, other, 1)
	must(t, err)
	checkInter(t, x, local, remote)
	d, err := x.Dup()
	must(t, err)
	m, err := d.IntercommMerge(below == turned)
	must(t, err)
	must(t, x.Free())
	must(t, part.Free())
	must(t, d.Disconnect())
	return m
}

// sharing divides processes of one host into those that share memory.
func sharing(t *mpitest.T, ps []wire.ProcID) (parts [][]wire.ProcID) {
	if !strings.HasSuffix(t.Name(), "tcp") {
		return [][]wire.ProcID{ps}
	}
	for i := range ps {
		parts = append(parts, ps[i:][:1])
	}
	return parts
}

func TestSplitRefused(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		color := 1
		if w.Rank() == 1 {
			color = -5
		}
		_, err := w.Split(color, 0)
		wantError(t, err, mpi.ErrArg, "rank 1 gives color -5")
		kind := mpi.SplitShared
		if w.Rank() == 2 {
			kind = mpi.SplitHWUnguided
		}
		_, err = w.SplitType(kind, 0, nil)
		wantError(t, err, mpi.ErrArg, "rank 2 kind")
		for _, k := range []mpi.SplitKind{mpi.SplitHWUnguided, mpi.SplitHWGuided} {
			if c, err := w.SplitType(k, 0, nil); c != nil || err != nil {
				t.Fatalf("kind %d gives %v, %v", k, c, err)
			}
		}
		c, err := w.SplitType(mpi.SplitHWGuided, 0, mpi.NewInfo("mpi_hw_resource_type", "mpi_shared_memory"))
		must(t, err)
		for _, part := range sharing(t, procs(w)) {
			if slices.Contains(part, procs(w)[w.Rank()]) {
				checkComm(t, c, part)
			}
		}
		own := w.Process().Self()
		if _, err = own.Create(w.Group()); err == nil {
			t.Fatal("a group larger than the communicator is accepted")
		}
		wantError(t, err, mpi.ErrRank, "not in the communicator")
		must(t, w.Barrier())
	})
}

func TestCompare(t *testing.T) {
	mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		d, err := w.Dup()
		must(t, err)
		turned, err := w.Split(0, -w.Rank())
		must(t, err)
		half, err := w.Split(w.Rank()%2, 0)
		must(t, err)
		for _, x := range []struct {
			c    *mpi.Comm
			want mpi.Comparison
		}{{w, mpi.Ident}, {w.WithContext(t.Context()), mpi.Ident}, {d, mpi.Congruent}, {turned, mpi.Similar}, {half, mpi.Unequal}} {
			if got := w.Compare(x.c); got != x.want {
				t.Errorf("%s and %s are %v, want %v", w.Name(), x.c.Name(), got, x.want)
			}
		}
		d.SetName("my own")
		if d.Name() != "my own" {
			t.Errorf("name is %q", d.Name())
		}
		wantError(t, mpi.Send(d, []int{1}, 9, 0), mpi.ErrRank, "my own")
	})
}
