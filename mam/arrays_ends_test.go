// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mam_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/control/controltest"
	"gompi/internal/host/segment"
	"gompi/internal/test/testjob"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// What is no array is refused, with its name and numbers.
func TestArrayRefuses(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		m, _, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		var x []int64
		full := make([]int64, 5)
		large := int(segment.FreeMemory()/8) * 2
		wantError(t, mam.Array(m, "x", &full, mam.Block(10)), mpi.ErrNoMemory, `"x" has a variable with 40 bytes already`)
		wantError(t, mam.Array[int64](m, "x", nil, mam.Block(10)), mpi.ErrArg, "no variable")
		wantError(t, mam.Array(m, "x", &x, mam.Irregular(10, []int{3, 8})), mpi.ErrArg, "11")
		// Each rank has half of it, which is as much as there is, and its margin.
		wantError(t, mam.Array(m, "large", &x, mam.Block(large+1<<26)), mpi.ErrNoMemory, fmt.Sprintf(`"large": %d bytes of %d on rank %d of 2`, (large+1<<26)/2*8, (large+1<<26)*8, world.Rank()))
		wantError(t, mam.Array(m, "larger", &x, mam.Block(segment.SpanBytes/8+1)), mpi.ErrNoMemory, "memory")
		if x != nil || len(full) != 5 {
			t.Errorf("%d and %d elements", len(x), len(full))
		}
		if err := mam.Array(m, "x", &x, mam.Block(10)); err != nil {
			t.Fatal(err)
		}
		wantError(t, mam.Array(m, "x", &x, mam.Block(10)), mpi.ErrArg, `"x" is registered already`)
		if err := m.Free("none"); !errors.Is(err, mpi.ErrArg) {
			t.Error(err)
		}
	})
}

// A program that has exchanged arrays is told at a change, and nothing is committed.
func TestArraysExchanged(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		m, role, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if errors.Is(err, mpi.ErrRolledBack) {
			return
		}
		if err != nil || role == mam.Target {
			t.Fatal(role, err)
		}
		defer m.Finalize()
		var x, y []int64
		if err := errors.Join(mam.Array(m, "x", &x, mam.Block(10)), mam.Array(m, "y", &y, mam.Block(10)), m.SetTarget(1)); err != nil {
			t.Fatal(err)
		}
		x, y = y, x
		// The first rank that finds it declines the change for all.
		for found := 0; found == 0; {
			if _, err = m.Checkpoint(mam.Check); err != nil {
				wantError(t, err, mpi.ErrCount, `"x" is another slice on rank`)
				found = 1
			}
			if found, err = mpi.AllreduceOne(m.Comm(), found, mpi.Max); err != nil {
				t.Fatal(err)
			}
		}
		if m.Comm().Size() != 2 {
			t.Errorf("%d ranks", m.Comm().Size())
		}
	})
}

// filesOf counts what this process has of files of so many bytes: mappings and descriptors.
func filesOf(t testing.TB, bytes int64) (mapped, open int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var lo, hi int64
		if _, err := fmt.Sscanf(line, "%x-%x", &lo, &hi); err == nil && hi-lo == bytes && strings.Contains(line, "memfd:gompi") {
			mapped++
		}
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if st, err := os.Stat("/proc/self/fd/" + fd.Name()); err == nil && st.Size() == bytes {
			open++
		}
	}
	return mapped, open
}

// Memory, mappings and descriptors are after Free and after Finalize what they were before,
// also where the collector was never told of them; what was unregistered stays until
// Finalize.
func TestArraysEnd(t *testing.T) {
	const n, each, pad = 5, 100_000, 98*4096 - 400_000 // in whole pages
	mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
		m, _, err := mam.Init(t.Context(), world, mam.Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := make([][]int32, n)
		all := func(f func(name string, x *[]int32) error) {
			t.Helper()
			for i := range x {
				if err := f(fmt.Sprint("x", i), &x[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		makes := func(name string, x *[]int32) error { return mam.Array(m, name, x, mam.Block(each)) }
		frees := func(name string, _ *[]int32) error { return m.Free(name) }
		is := func(want int) {
			t.Helper()
			for until := time.Now().Add(controltest.Limit); ; runtime.Gosched() {
				mapped, open := filesOf(t, each*4+pad)
				if mapped == want && open == 2*want { // the rank's, and the agent's
					return
				}
				if mapped != want || time.Now().After(until) { // the agent, which is in this process, hears of an end later
					t.Fatalf("%d mappings and %d descriptors of %d arrays", mapped, open, want)
				}
			}
		}
		is(0)
		all(makes)
		is(n)
		for i := range x {
			x[i][each-1] = 7
		}
		all(frees)
		is(0)
		for i := range x {
			if x[i] != nil {
				t.Errorf("%d elements after Free", len(x[i]))
			}
		}
		all(makes)
		kept := x[0]
		if err := m.Unregister("x0"); err != nil {
			t.Fatal(err)
		}
		kept[0], kept[each-1] = 3, 4
		x[0] = nil
		if err := makes("x0", &x[0]); err != nil {
			t.Fatal(err)
		}
		is(n + 1)
		if x[0][0] != 0 || kept[0] != 3 {
			t.Error("new memory is the old")
		}
		if err := m.Finalize(); err != nil {
			t.Error(err)
		}
		for i := range x {
			if x[i] != nil {
				t.Errorf("%d elements after Finalize", len(x[i]))
			}
		}
		is(0)
	})
}

// faults reports whether a process may not touch a byte.
func faults(b []byte, i int) (is bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { is = recover() != nil }()
	b[i]++
	return false
}

// With GOMPI_CHECK=1 a rank may touch the pages that have a byte of its block, before a
// change and after it, and no others.
func TestArrayGuard(t *testing.T) {
	page := os.Getpagesize()
	n := 10*page + page/2
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		m, role, err := mam.Init(t.Context(), world, mam.Config{Method: mam.InPlace}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		var x []byte
		l := mam.Block(n)
		if err := mam.Array(m, "x", &x, l); err != nil {
			t.Fatal(err)
		}
		is := func() {
			t.Helper()
			for at, length := range m.Runs("x") {
				whole := mam.WholeArray(m, "x")
				for i := range n {
					if i%page != page/4 {
						continue // a byte of each page
					}
					last := min(n, (i/page+1)*page)
					want := last <= at || i/page*page >= at+length
					if got := faults(whole, i); got != want {
						t.Errorf("rank %d of %d, with bytes %d to %d: page %d is a fault: %v", m.Comm().Rank(), m.Comm().Size(), at, at+length, i/page, got)
					}
				}
			}
		}
		if role == mam.Source {
			is()
		}
		for _, size := range []int{3, 1} {
			for m.Comm().Size() > size || m.Comm().Size() < size && size == 3 {
				if err := m.SetTarget(size); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Checkpoint(mam.Wait); errors.Is(err, mpi.ErrLeaving) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			is()
		}
	}, mpitest.Setting("GOMPI_CHECK", "1"))
}

// Between hosts the pages of what has gone to another are given back: as many pages are
// there as have a byte, but for those that hosts share.
func TestArraysPunched(t *testing.T) {
	const pages = 777
	n := pages * os.Getpagesize()
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		m, role, err := mam.Init(t.Context(), world, mam.Config{Method: mam.InPlace}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Finalize()
		var x []byte
		of := func(i int) byte { return byte(i%251 + 1) }
		if err := mam.Array(m, "x", &x, mam.Block(n)); err != nil {
			t.Fatal(err)
		}
		if role == mam.Source {
			put(m, x, "x", of)
		}
		for _, size := range []int{6, 2, 4} {
			if role == mam.Target && m.Times().NS == 2 && size != 4 {
				continue // it has come later
			}
			for m.Comm().Size() != size {
				if err := m.SetTarget(size); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Checkpoint(mam.Wait); errors.Is(err, mpi.ErrLeaving) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(is(m, "x", x, of), m.Comm().Barrier()); err != nil {
				t.Fatal(err)
			}
			if m.Comm().Rank() == 0 {
				there := pagesOf(t, int64(n))           // a leaver has its host's until it finalizes
				most := int64(pages + min(size, 3) - 1) // two hosts may share a page
				for until := time.Now().Add(controltest.Limit); there > most && time.Now().Before(until); there = pagesOf(t, int64(n)) {
					runtime.Gosched()
				}
				if there < pages || there > most {
					t.Errorf("%d ranks: %d pages of %d", size, there, pages)
				}
			}
			if err := m.Comm().Barrier(); err != nil {
				t.Fatal(err)
			}
		}
	}, testjob.Hosts(3, 3), mpitest.Transport("shm,tcp"))
}

// pagesOf is how many pages there are of the files of so many bytes that this process has
// open, as which it has those of the agents of all hosts.
func pagesOf(t testing.TB, bytes int64) (n int64) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	files := map[uint64]int64{}
	for _, fd := range list {
		if st, err := os.Stat("/proc/self/fd/" + fd.Name()); err == nil && st.Size() == bytes {
			sys := st.Sys().(*syscall.Stat_t)
			files[sys.Ino] = sys.Blocks / 8
		}
	}
	for _, pages := range files {
		n += pages
	}
	return n
}
