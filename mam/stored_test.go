// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

const storedElems = 60_000

// memories are those that others store to, and how they may move in the background.
var memories = map[string]struct {
	make func(world *mpi.Comm, n int) (*rma.Window, []int64, error)
	mode mam.Mode
}{
	"created": {func(world *mpi.Comm, n int) (*rma.Window, []int64, error) {
		x := make([]int64, n)
		w, err := rma.Create(world, x)
		return w, x, err
	}, mam.Variable},
	"marked": {func(world *mpi.Comm, n int) (*rma.Window, []int64, error) {
		x := make([]int64, n)
		w, err := rma.Create(world, x)
		return w, x, err
	}, mam.Marked},
	"allocated": {func(world *mpi.Comm, n int) (*rma.Window, []int64, error) {
		w, err := rma.Allocate[int64](world, n)
		if err != nil {
			return nil, nil, err
		}
		return w, rma.Memory[int64](w), nil
	}, mam.Variable},
	"shared": {func(world *mpi.Comm, n int) (*rma.Window, []int64, error) {
		w, err := rma.AllocateShared[int64](world, n)
		if err != nil {
			return nil, nil, err
		}
		return w, rma.Memory[int64](w), nil
	}, mam.Variable},
}

// stored is a program of two ranks that grows to three. Its data is memory of a window, and
// between the reading in the background and the commit each rank puts something into that of
// its neighbour.
func stored(kind string) func(context.Context, *mpi.Comm) error {
	of := memories[kind]
	return func(ctx context.Context, world *mpi.Comm) error {
		var w *rma.Window
		var x []int64
		var m *mam.Module
		l := mam.Block(storedElems)
		const n = storedElems / 2
		isPut := func(k int) bool { return k%5003 == 17 }
		m, role, err := mam.Init(ctx, world, mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, func(u *mam.User) error {
			u.Resume()
			if u.Role == mam.NewRank {
				return nil
			}
			if err := w.LockAll(rma.NoCheck); err != nil {
				return err
			}
			neighbour := 1 - world.Rank()
			for k := range n {
				if isPut(k) {
					if err := rma.Put(w, []int64{-int64(neighbour*n + k)}, neighbour, k); err != nil {
						return err
					}
				}
			}
			if err := errors.Join(w.UnlockAll(), world.Barrier()); err != nil {
				return err
			}
			if of.mode == mam.Marked {
				for k := range n {
					if isPut(k) {
						if err := m.Written("x", k, k+1); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		defer m.Finalize()
		if role == mam.Source {
			if w, x, err = of.make(world, n); err != nil {
				return err
			}
			for k := range x {
				x[k] = int64(world.Rank()*n + k)
			}
			if err := world.Barrier(); err != nil {
				return err
			}
		}
		if err := mam.Distributed(m, "x", &x, l, of.mode); err != nil {
			return err
		}
		for m.Comm().Size() != 3 {
			time.Sleep(iterationTime) //archtest:sleep an iteration of the program
			if err := m.SetTarget(3); err != nil {
				return err
			}
			if _, err := m.Checkpoint(mam.Check); err != nil {
				return err
			}
		}
		err = is(m, "x", x, func(i int) int64 {
			if isPut(i % n) {
				return -int64(i)
			}
			return int64(i)
		})
		got := m.Times()
		switch moved := got.Bytes > 0; {
		case err != nil:
			return err
		case of.mode == mam.Variable && got.Early > 0:
			return fmt.Errorf("%d bytes in the background of memory that others store to", got.Early)
		case of.mode == mam.Marked && moved && (got.Early != got.Bytes-got.Again || got.Again == 0 || got.Again > got.Early/2 || got.Hot != ""):
			return fmt.Errorf("%+v", got)
		}
		if w != nil {
			if err := w.Free(); err != nil {
				return err
			}
		}
		return m.Finalize()
	}
}

// What a neighbour puts into memory while that moves is there after the commit.
func TestStoredByOthers(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		for kind := range memories {
			if kind == "shared" && transport == "tcp" {
				continue // ranks of different hosts
			}
			t.Run(transport+"/"+kind, func(t *testing.T) {
				mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
					if err := stored(kind)(t.Context(), world); err != nil {
						t.Fatal(err)
					}
				}, mpitest.Transport(transport))
			})
		}
	}
}

// hot: all that was read in the background is written afterwards, which is told, for the
// data for which it is so.
func TestHot(t *testing.T) {
	const n = 50_000
	mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
		var x, y []int64
		var m *mam.Module
		m, role, err := mam.Init(t.Context(), world, mam.Config{Method: mam.Pull, Strategy: mam.WaitDrains}, func(u *mam.User) error {
			u.Resume()
			for k := range x {
				x[k]++
			}
			if u.Role == mam.Continue {
				return errors.Join(m.Written("x", 0, n), m.Written("y", 7, 8))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if role == mam.Source {
			x, y = make([]int64, n), make([]int64, n)
		}
		if err := errors.Join(mam.Distributed(m, "x", &x, mam.Block(n), mam.Marked), mam.Distributed(m, "y", &y, mam.Block(n), mam.Marked)); err != nil {
			t.Fatal(err)
		}
		wantError(t, m.Written("z", 0, 1), mpi.ErrArg, `no data "z"`)
		for _, r := range [][2]int{{-1, 1}, {2, 1}, {0, len(x) + 1}} {
			wantError(t, m.Written("x", r[0], r[1]), mpi.ErrArg, "elements")
		}
		for m.Comm().Size() != 2 {
			if err := m.SetTarget(2); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Checkpoint(mam.Check); err != nil {
				t.Fatal(err)
			}
		}
		for k := range x {
			if x[k] != 1 {
				t.Fatalf("element %d is %d", k, x[k])
			}
		}
		if got := m.Times(); role == mam.Target && (got.Hot != "x" || got.Early != 8*n || got.Again != 4*n) {
			t.Errorf("%+v", got)
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
	})
}
