// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// moreFlavors are those whose memory has other addresses than Create's.
var moreFlavors = []flavor{
	{"shared", func(comm *mpi.Comm, n int) (*rma.Window, []int64, []int, error) {
		win, err := rma.AllocateShared[int64](comm, n)
		if err != nil {
			return nil, nil, nil, err
		}
		return win, rma.Memory[int64](win), make([]int, comm.Size()), nil
	}},
	{"dynamic", func(comm *mpi.Comm, n int) (*rma.Window, []int64, []int, error) {
		win, err := rma.CreateDynamic(comm)
		if err != nil {
			return nil, nil, nil, err
		}
		mem := make([]int64, n)
		mine, err := rma.Attach(win, mem)
		if err != nil {
			return nil, nil, nil, err
		}
		at := make([]int, comm.Size())
		return win, mem, at, mpi.Allgather(comm, []int{mine}, at)
	}},
}

// TestShared: each rank loads and stores in the memory of all.
func TestShared(t *testing.T) {
	for _, way := range ways[:3] {
		t.Run(way.name, func(t *testing.T) {
			mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
				n := 100 * w.Rank() // rank 0 has none
				win, err := rma.AllocateShared[int64](w, n)
				must(t, err)
				must(t, win.Fence(0))
				for r := range w.Size() {
					part, err := rma.SharedQuery[int64](win, r)
					must(t, err)
					if len(part) != 100*r {
						t.Fatalf("rank %d has %d elements", r, len(part))
					}
					for i := w.Rank(); i < len(part); i += w.Size() {
						part[i] = int64(1000*r + i)
					}
				}
				must(t, win.Fence(0))
				for i, v := range rma.Memory[int64](win) {
					if v != int64(1000*w.Rank()+i) {
						t.Fatalf("element %d is %d", i, v)
					}
				}
				first, err := rma.SharedQuery[int64](win, mpi.ProcNull)
				must(t, err)
				if len(first) != 100 || first[7] != 1007 {
					t.Fatalf("first memory: %d elements", len(first))
				}
				_, err = rma.SharedQuery[int64](win, 4)
				wantError(t, err, mpi.ErrRank, "rank 4 of 4")
				must(t, win.Free())
				other, err := rma.CreateDynamic(w)
				must(t, err)
				_, err = rma.SharedQuery[int64](other, 0)
				wantError(t, err, mpi.ErrRMAFlavor, "CreateDynamic")
				must(t, other.Free())
			}, way.opts...)
		})
	}
}

// TestSharedOthers: memory of windows that were not made to be shared is shown
// where it can be used all the same, else it is empty.
func TestSharedOthers(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				for _, f := range flavors[:2] {
					win, mem, _, err := f.make(w, 10)
					must(t, err)
					mine, err := rma.SharedQuery[int64](win, w.Rank())
					must(t, err)
					if len(mine) != 10 || &mine[0] != &mem[0] {
						t.Fatalf("%s: the caller's own memory has %d elements", f.name, len(mine))
					}
					theirs, err := rma.SharedQuery[int64](win, 1-w.Rank())
					must(t, err)
					if len(theirs) != 0 && len(theirs) != 10 || f.name == "allocate" && way.name == "shm" && len(theirs) == 0 {
						t.Fatalf("%s: %d elements", f.name, len(theirs))
					}
					// Stores need no call, so LockAll has the lock when it returns.
					must(t, win.LockAll(0))
					if len(theirs) > 0 {
						theirs[w.Rank()] = 7
					} else {
						must(t, rma.Put(win, []int64{7}, 1-w.Rank(), w.Rank()))
					}
					must(t, win.UnlockAll())
					must(t, w.Barrier())
					if mem[1-w.Rank()] != 7 {
						t.Fatalf("%s: %v", f.name, mem)
					}
					must(t, win.Free())
				}
			}, way.opts...)
		})
	}
}

// TestSharedNoncontiguous: each part begins on a line of its own if all ranks
// say so, else side by side.
func TestSharedNoncontiguous(t *testing.T) {
	for _, way := range ways[:3] {
		t.Run(way.name, func(t *testing.T) {
			mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
				for _, all := range []bool{true, false} {
					hint := mpi.NewInfo("alloc_shared_noncontig", "true")
					if !all && w.Rank() == 1 {
						hint = nil
					}
					win, err := rma.AllocateSharedWithInfo[int32](w, 1+w.Rank(), hint)
					must(t, err)
					if got := win.Info().Len(); got != hint.Len() {
						t.Fatalf("%d hints are kept", got)
					}
					must(t, win.Fence(0))
					first := uintptr(0)
					for r := range w.Size() {
						part, err := rma.SharedQuery[int32](win, r)
						must(t, err)
						at := reflect.ValueOf(part).Pointer()
						if len(part) != 1+r || part[r] != 0 {
							t.Fatalf("rank %d has %v", r, part)
						}
						switch want := first + uintptr(2*r*(r+1)); {
						case all && at%128 != 0:
							t.Fatalf("the part of rank %d begins at %#x", r, at)
						case r == 0:
							first = at
						case !all && at != want:
							t.Fatalf("the part of rank %d begins at %#x, not %#x", r, at, want)
						}
					}
					must(t, win.Fence(0))
					must(t, rma.Put(win, []int32{7}, (w.Rank()+1)%3, 0))
					must(t, win.Fence(0))
					if rma.Memory[int32](win)[0] != 7 {
						t.Fatal(rma.Memory[int32](win))
					}
					must(t, win.Free())
				}
				_, err := rma.AllocateSharedWithInfo[int64](w, math.MaxInt64/8, mpi.NewInfo("alloc_shared_noncontig", "true"))
				wantError(t, err, mpi.ErrNoMemory)
			}, way.opts...)
		})
	}
}

// TestAllocated: memory that is allocated is zero and aligned, also where other
// windows were, and whatever its size.
func TestAllocated(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, n := range []int{1, 3, 17, 1000, 300_000, 600_000, 1, 1000} {
			win, err := rma.Allocate[int64](w, n)
			must(t, err)
			mem := rma.Memory[int64](win)
			if at := reflect.ValueOf(mem).Pointer(); at%128 != 0 || len(mem) != n || cap(mem) != n {
				t.Fatalf("%d of %d elements at %#x, want %d", len(mem), cap(mem), at, n)
			}
			for i := range mem {
				if mem[i] != 0 {
					t.Fatalf("element %d of %d is %d", i, n, mem[i])
				}
				mem[i] = -1
			}
			must(t, win.Free())
		}
	})
}

// TestNoMemory: what no machine has is ErrNoMemory on all ranks, and the next
// window is made.
func TestNoMemory(t *testing.T) {
	const much = 1 << 42 // elements
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, n := range [][2]int{{much, much}, {1, much}, {much, 1}} {
			_, err := rma.Allocate[int64](w, n[w.Rank()])
			wantError(t, err, mpi.ErrNoMemory, "rma.Allocate")
			if !apart(t.Name()) {
				_, err = rma.AllocateShared[int64](w, n[w.Rank()])
				wantError(t, err, mpi.ErrNoMemory, "rma.AllocateShared", "bytes")
			}
		}
		win, err := rma.Allocate[int64](w, 1)
		must(t, err)
		must(t, win.Free())
	})
}

// TestHints: windows keep the hints that they are made with.
func TestHints(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		hints := mpi.NewInfo("no_locks", "false", "accumulate_ordering", "none", "mine", "7")
		for _, one := range []func() (*rma.Window, error){
			func() (*rma.Window, error) { return rma.CreateWithInfo(w, make([]byte, 5), hints) },
			func() (*rma.Window, error) { return rma.AllocateWithInfo[int64](w, 5, hints) },
			func() (*rma.Window, error) { return rma.AllocateSharedWithInfo[int64](w, 5, hints) },
			func() (*rma.Window, error) { return rma.CreateDynamicWithInfo(w, hints) },
		} {
			win, err := one()
			must(t, err)
			kept := win.Info()
			if kept.Len() != 3 || kept.Get("mine") != "7" || kept.Get("accumulate_ordering") != "none" {
				t.Fatalf("%v keeps %d hints", win.Flavor(), kept.Len())
			}
			must(t, win.Free())
		}
	})
}

// TestSharedApart: ranks that share no memory are told so, all of them.
func TestSharedApart(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		_, err := rma.AllocateShared[int64](w, 10)
		wantError(t, err, mpi.ErrRMAShared, "not shared")
		must(t, w.Barrier())
		win, err := rma.AllocateShared[int64](w.Process().Self(), 10)
		must(t, err)
		mem, err := rma.SharedQuery[int64](win, 0)
		must(t, err)
		if len(mem) != 10 {
			t.Fatalf("%d elements", len(mem))
		}
		must(t, win.Free())
	}, mpitest.Transport("tcp"))
}

// TestDynamic: memory comes and goes while others use other memory of the same
// rank.
func TestDynamic(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		const rounds, lasting = 30, 64
		win, err := rma.CreateDynamic(w)
		must(t, err)
		if win.Bytes(0) != 0 || win.DispUnit(0) != 1 || rma.Memory[byte](win) != nil {
			t.Fatal("a dynamic window has memory")
		}
		base := make([]int64, lasting)
		mine, err := rma.Attach(win, base)
		must(t, err)
		at := make([]int, 3)
		must(t, mpi.Allgather(w, []int{mine}, at))
		must(t, win.LockAll(0))
		for k := range rounds {
			mem := make([]int64, 1+k)
			mem[k] = int64(k)
			addr, err := rma.Attach(win, mem)
			must(t, err)
			where := make([]int, 3)
			must(t, mpi.Allgather(w, []int{addr}, where))
			next := (w.Rank() + 1) % 3
			got := make([]int64, 1)
			must(t, rma.Get(win, got, next, where[next]+8*k))
			must(t, rma.Put(win, []int64{int64(k)}, next, at[next]+8*(k%lasting)))
			must(t, win.Flush(next))
			if got[0] != int64(k) {
				t.Fatalf("round %d: got %d", k, got[0])
			}
			must(t, w.Barrier())
			if k%3 != 0 { // some stay until the end
				must(t, win.Detach(addr))
				wantError(t, win.Detach(addr), mpi.ErrRMAAttach)
			}
			must(t, w.Barrier())
			if k%3 != 0 {
				err := rma.Get(win, got, next, where[next])
				if err == nil {
					err = win.Flush(next)
				}
				if err == nil {
					t.Fatal("memory that was detached was read")
				}
			}
		}
		must(t, win.UnlockAll())
		must(t, w.Barrier())
		for k := range rounds {
			if base[k] != int64(k) {
				t.Fatalf("element %d is %d", k, base[k])
			}
		}
		must(t, win.Fence(0))
		wantError(t, rma.Put(win, []byte{1}, 0, 0), mpi.ErrRMARange)
		wantError(t, rma.Put(win, []byte{1}, 0, -5), mpi.ErrRMARange)
		wantError(t, rma.Put(win, []byte{1}, 0, at[0]-1), mpi.ErrRMARange)
		wantError(t, rma.Put(win, make([]int64, 2), 0, at[0]+8*(lasting-1)), mpi.ErrRMARange, "no memory")
		_, err = rma.Attach(win, []string{"x"})
		wantError(t, err, mpi.ErrType)
		must(t, win.Fence(rma.NoSucceed))
		must(t, win.Free())
		other, err := rma.Create(w, base)
		must(t, err)
		_, err = rma.Attach(other, base)
		wantError(t, err, mpi.ErrRMAFlavor)
		wantError(t, other.Detach(mine), mpi.ErrRMAFlavor)
		must(t, other.Free())
	})
}

// TestAlignment: memory begins where mpi_minimum_memory_alignment wants it, and
// works like any other; what is no alignment is no hint.
func TestAlignment(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for _, hint := range []string{"512", "4096", "65536", "2097152", "3000", "-8", "0", "1099511627776", "x"} {
			want, _ := strconv.Atoi(hint)
			if want <= 0 || want&(want-1) != 0 || want > 2<<20 {
				want = 128
			}
			win, err := rma.AllocateWithInfo[int64](w, 100, mpi.NewInfo("mpi_minimum_memory_alignment", hint))
			must(t, err)
			if at := reflect.ValueOf(rma.Memory[int64](win)).Pointer(); at%uintptr(want) != 0 {
				t.Errorf("alignment %s: memory at %#x", hint, at)
			}
			must(t, win.Fence(0))
			must(t, rma.Put(win, []int64{7}, (w.Rank()+1)%3, 99))
			must(t, win.Fence(0))
			if got := rma.Memory[int64](win)[99]; got != 7 {
				t.Errorf("alignment %s: %d arrived", hint, got)
			}
			must(t, win.Free())
		}
	})
	if underRace {
		return // as overAll
	}
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for _, noncontig := range []string{"true", "false"} {
			hint := []string{"512", "4096", "65536"}[w.Rank()] // the last is none
			win, err := rma.AllocateSharedWithInfo[int32](w, 5, mpi.NewInfo("mpi_minimum_memory_alignment", hint, "alloc_shared_noncontig", noncontig))
			must(t, err)
			at := reflect.ValueOf(rma.Memory[int32](win)).Pointer()
			if (noncontig == "true" || w.Rank() == 0) && at%4096 != 0 || noncontig == "false" && at%4096 != uintptr(20*w.Rank()) {
				t.Errorf("noncontig %s: memory at %#x", noncontig, at)
			}
			must(t, win.Free())
		}
	}, mpitest.Transport("shm"))
}
