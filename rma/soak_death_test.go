// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rma_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// deathScenes are what the ranks do again and again when the last one is
// killed. Those that are survived do not need it: memory that is mapped stays.
var deathScenes = map[string]func(w *mpi.Comm, win *rma.Window) error{
	"put":        underLock(func(win *rma.Window, at int, b []int64) error { return rma.Put(win, b[:1], at, 0) }),
	"put-large":  underLock(func(win *rma.Window, at int, b []int64) error { return rma.Put(win, b, at, 0) }),
	"get-large":  underLock(func(win *rma.Window, at int, b []int64) error { return rma.Get(win, b, at, 0) }),
	"accumulate": underLock(func(win *rma.Window, at int, b []int64) error { return rma.Accumulate(win, b, at, 0, mpi.Sum) }),
	"fetch": underLock(func(win *rma.Window, at int, b []int64) error {
		_, err := rma.FetchAndOp(win, b[0], at, 0, mpi.Sum)
		return err
	}),
	"request": underLock(func(win *rma.Window, at int, b []int64) error {
		_, err := rma.RGet(win, b, at, 0).Wait()
		return err
	}),
	"lock-all": func(w *mpi.Comm, win *rma.Window) error {
		return first(
			func() error { return win.LockAll(0) },
			func() error { return rma.Put(win, make([]int64, 100), w.Size()-1, 0) },
			win.UnlockAll)
	},
	"fence": func(w *mpi.Comm, win *rma.Window) error {
		return first(
			func() error { return win.Fence(0) },
			func() error { return rma.Put(win, make([]int64, 100), (w.Rank()+1)%w.Size(), 0) })
	},
	"posts-test": func(w *mpi.Comm, win *rma.Window) error {
		err := first(
			func() error { return win.Post(w.Group(), 0) },
			func() error { return win.Start(w.Group(), 0) },
			win.Complete)
		for done := false; !done && err == nil; {
			done, err = win.Test()
		}
		return err
	},
	// Rank 1 has nothing to do with the victim: it has to be told.
	"posts-chain": func(w *mpi.Comm, win *rma.Window) error {
		to, err := w.Group().Incl([]int{(w.Rank() + 1) % w.Size()})
		if err != nil {
			return err
		}
		from, err := w.Group().Incl([]int{(w.Rank() + w.Size() - 1) % w.Size()})
		if err != nil {
			return err
		}
		err = first(
			func() error { return win.Post(from, 0) },
			func() error { return win.Start(to, 0) },
			func() error { return rma.Put(win, make([]int64, 100), (w.Rank()+1)%w.Size(), 100) },
			win.Complete, win.Wait)
		if err != nil {
			win.Revoke()
		}
		return err
	},
	"posts": func(w *mpi.Comm, win *rma.Window) error {
		return first(
			func() error { return win.Post(w.Group(), 0) },
			func() error { return win.Start(w.Group(), 0) },
			func() error { return rma.Put(win, make([]int64, 100), (w.Rank()+1)%w.Size(), 100) },
			win.Complete, win.Wait)
	},
	"create-free": func(w *mpi.Comm, _ *rma.Window) error {
		win, err := rma.Allocate[int64](w, 100)
		if err != nil {
			return err
		}
		return win.Free()
	},
}

// underLock accesses the memory of the victim under a shared lock.
func underLock(access func(win *rma.Window, at int, b []int64) error) func(w *mpi.Comm, win *rma.Window) error {
	b := make([]int64, deathElems)
	return func(w *mpi.Comm, win *rma.Window) error {
		at := w.Size() - 1
		return first(
			func() error { return win.Lock(rma.LockShared, at, 0) },
			func() error { return access(win, at, b) },
			func() error { return win.Unlock(at) })
	}
}

const deathElems = 100_000

// deathRank plays a scene: "put create" in a window of Create.
func deathRank(w *mpi.Comm, arg string) error {
	scene, flavor, _ := strings.Cut(arg, " ")
	step := deathScenes[scene]
	var win *rma.Window
	var err error
	mem := make([]int64, deathElems)
	if flavor == "create" {
		win, err = rma.Create(w, mem)
	} else {
		win, err = rma.Allocate[int64](w, deathElems)
	}
	if err != nil {
		return err
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	if w.Rank() == w.Size()-1 {
		time.AfterFunc(100*time.Millisecond, kill)
	}
	begin, steps := time.Now(), 0
	for err == nil && time.Since(begin) < 10*time.Second {
		err = step(w, win)
		steps++
	}
	ended := time.Since(begin)
	if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
		return fmt.Errorf("step %d after %v: %w", steps, ended, err)
	}
	if err := errors.Join(living(w)); err != nil {
		return fmt.Errorf("the living: %w", err)
	}
	// No epoch is in the way of Free: give up what the scene has left open.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	free := win.WithContext(ctx).Free()
	for range 3 {
		if !errors.Is(free, mpi.ErrRMASync) {
			break
		}
		win.Revoke() // nobody waits for who has given up
		_ = win.Unlock(w.Size() - 1)
		_ = win.UnlockAll()
		_ = win.Complete()
		_ = win.Wait()
		free = win.WithContext(ctx).Free()
	}
	if errors.Is(free, mpi.ErrRMASync) || errors.Is(free, mpi.ErrCancelled) {
		return fmt.Errorf("Free: %w", free)
	}
	fmt.Printf("survived: rank %d, %d steps, %v: %v; Free: %v\n", w.Rank(), steps, ended, err, free)
	return living(w)
}

// TestSoakDeath kills a rank in the middle of one-sided accesses: all others
// are told so, none hangs, and the window can be freed.
func TestSoakDeath(t *testing.T) {
	ofProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	settings := [][]string{{"GOMPI_TRANSPORT=shm"}, {"GOMPI_TRANSPORT=tcp"}, {"GOMPI_TRANSPORT=shm", "GOMPI_CMA=off"}}
	for s, scene := range slices.Sorted(maps.Keys(deathScenes)) {
		for f, flavor := range []string{"allocate", "create"} {
			for i, env := range settings {
				if (s+f+i)%testlab.Every(3) != 0 {
					continue
				}
				t.Run(scene+"/"+flavor+"/"+strings.Join(env, ","), func(t *testing.T) {
					const ranks = 4
					r := mpitest.Exec(t, ranks, []string{self, "rank", "death", scene + " " + flavor},
						mpitest.Flags("--ft"), mpitest.Env(env...))
					t.Log(r.Stdout)
					if n := strings.Count(r.Stdout, "survived"); n != ranks-1 {
						t.Fatalf("%d survived: status %d\n%s", n, r.Status, r.Stderr)
					}
				})
			}
		}
	}
}
