// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// What Split and its like give to ranks that are in none of their communicators
// is nil: calls on it are errors.
func TestNilCommunicator(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Split(mpi.Undefined, 0)
		must(t, err)
		if c != nil {
			t.Fatalf("Undefined gives %s", c.Name())
		}
		for name, call := range map[string]func() error{
			"Dup":                     func() error { _, err := c.Dup(); return err },
			"Split":                   func() error { _, err := c.Split(0, 0); return err },
			"SplitType":               func() error { _, err := c.SplitType(mpi.SplitShared, 0, nil); return err },
			"Create":                  func() error { _, err := c.Create(w.Group()); return err },
			"CreateGroup":             func() error { _, err := c.CreateGroup(w.Group(), 0); return err },
			"CartCreate":              func() error { _, err := c.CartCreate(nil, nil, false); return err },
			"CartSub":                 func() error { _, err := c.CartSub(nil); return err },
			"CartMap":                 func() error { _, err := c.CartMap(nil, nil); return err },
			"CartShift":               func() error { _, _, err := c.CartShift(0, 1); return err },
			"GraphCreate":             func() error { _, err := c.GraphCreate(nil, nil, false); return err },
			"DistGraphCreate":         func() error { _, err := c.DistGraphCreate(nil, nil, nil, nil, nil, false); return err },
			"DistGraphCreateAdjacent": func() error { _, err := c.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false); return err },
			"IntercommCreate":         func() error { _, err := c.IntercommCreate(0, w, 0, 0); return err },
			"IntercommMerge":          func() error { _, err := c.IntercommMerge(false); return err },
			"Barrier":                 func() error { return c.Barrier() },
			"NeighborAlltoall":        func() error { return mpi.NeighborAlltoall[int](c, nil, nil) },
		} {
			wantError(t, call(), mpi.ErrComm, "gompi: "+name+": invalid communicator: communicator is nil")
		}
	})
}

// Errors of calls on a communicator that was freed name the call of the
// program, and no rank or tag that it did not give.
func TestFreedCommunicator(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Dup()
		must(t, err)
		c.SetName("c")
		bcast := mpi.BcastInit(c, []int{1}, 1)
		must(t, c.Free())
		started := func(r mpi.Request) error { _, err := r.Wait(); return err }
		for name, call := range map[string]func() error{
			"Free":                    c.Free,
			"Disconnect":              c.Disconnect,
			"Dup":                     func() error { _, err := c.Dup(); return err },
			"Idup":                    func() error { _, r := c.Idup(); return started(r) },
			"Split":                   func() error { _, err := c.Split(0, 0); return err },
			"SplitType":               func() error { _, err := c.SplitType(mpi.SplitShared, 0, nil); return err },
			"Create":                  func() error { _, err := c.Create(c.Group()); return err },
			"CreateGroup":             func() error { _, err := c.CreateGroup(c.Group(), 7); return err },
			"CartCreate":              func() error { _, err := c.CartCreate([]int{2}, []bool{true}, false); return err },
			"DistGraphCreateAdjacent": func() error { _, err := c.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false); return err },
			"Barrier":                 c.Barrier,
			"Reduce":                  func() error { return mpi.Reduce(c, []int{1}, []int{1}, mpi.Sum, 1) },
			"Gather":                  func() error { return started(mpi.Igather(c, []int{1}, make([]int, 2), 0)) },
			"Bcast":                   func() error { return errors.Join(bcast.Start(), started(bcast.Request())) },
		} {
			err := call()
			wantError(t, err, mpi.ErrComm, "gompi: "+name+" on c rank", "it was freed")
			if strings.Contains(err.Error(), "peer") || strings.Contains(err.Error(), "source") || name != "CreateGroup" && strings.Contains(err.Error(), "tag") {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, w.Barrier())
	})
}

// A rank whose group is wrong gets no communicator. What the others send it
// there is dropped: their sends complete.
func TestCreateRefusedByOne(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		pairs, err := w.Split(w.Rank()/2, 0)
		must(t, err)
		if w.Rank() == 2 {
			return
		}
		if w.Rank() == 1 {
			_, err := pairs.Create(w.Group())
			wantError(t, err, mpi.ErrRank, "is not in the communicator")
			_, err = mpi.Recv(pairs, []int{0}, 0, 0)
			must(t, err)
			return
		}
		c, err := pairs.Create(pairs.Group())
		must(t, err)
		must(t, mpi.Ssend(c, make([]byte, 1<<20), 1, 0))
		must(t, mpi.Send(pairs, []int{1}, 1, 0))
	})
}

// Members of a group that give Create different groups.
func TestCheckCreate(t *testing.T) {
	overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		group := func(ranks ...int) mpi.Group {
			g, err := w.Group().Incl(ranks)
			must(t, err)
			return g
		}
		c, err := w.Create([]mpi.Group{group(1, 0), group(1, 0), group(1, 2), group(0)}[w.Rank()])
		switch w.Rank() {
		case 0, 1: // agree, although rank 2 wants rank 1, too
			must(t, err)
			must(t, c.Barrier())
		case 2:
			wantError(t, err, mpi.ErrMismatch, "Create on WORLD rank 2, peer 1", "rank 1 is in the group, but gives another one")
		case 3:
			must(t, err)
			if c != nil {
				t.Fatalf("a rank outside its group gets %s", c.Name())
			}
		}
		// One after the other in another order is another group.
		_, err = w.Create(group([][]int{{0, 1, 2, 3}, {0, 1, 3, 2}}[w.Rank()/2]...))
		wantError(t, err, mpi.ErrMismatch)
		must(t, w.Barrier())
	}, checking)
}

// Where a root or a leader leads what all ranks do together, the others of one that names
// none get an error, too, at once.
func TestNoSuchRoot(t *testing.T) {
	nobody := mpi.Command{Program: "/nonexistent/program", Procs: 1}
	for name, call := range map[string]func(c *mpi.Comm, root int) error{
		"CommSpawn": func(c *mpi.Comm, root int) error { _, _, err := mpi.CommSpawn(c, nobody, root); return err },
		"Spawn":     func(c *mpi.Comm, root int) error { _, err := mpi.Spawn(c, []mpi.Command{nobody}, root); return err },
		"Ispawn": func(c *mpi.Comm, root int) error {
			_, r := mpi.Ispawn(c, []mpi.Command{nobody}, root)
			_, err := r.Wait()
			return err
		},
		"Accept":  func(c *mpi.Comm, root int) error { _, err := c.Accept("no port", root); return err },
		"Connect": func(c *mpi.Comm, root int) error { _, err := c.Connect("no port", root); return err },
		"IntercommCreate": func(c *mpi.Comm, root int) error {
			_, err := c.IntercommCreate(root, nil, 0, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
				for _, root := range []int{0, 1, 3} { // rank 1 is it, is between it and others, or none of both
					c, err := w.Dup()
					must(t, err)
					if err = call(c, map[bool]int{true: 4, false: root}[w.Rank() == 1]); err == nil {
						t.Errorf("root %d: no error", root)
					}
					if w.Rank() == 1 {
						wantError(t, err, map[bool]mpi.Class{true: mpi.ErrRank, false: mpi.ErrRoot}[name == "IntercommCreate"], "4 of 4")
					} else if root == 1 {
						wantError(t, err, mpi.ErrRevoked, "")
					}
					must(t, w.Barrier())
					must(t, c.Free())
				}
			})
		})
	}
}
