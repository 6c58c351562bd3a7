// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// eachWindow runs f for windows of n elements of each flavor, in each way and
// scheme.
func eachWindow(t *testing.T, ranks, n int, f func(t *mpitest.T, x *exchange)) {
	all := slices.Concat(flavors, moreFlavors)
	overAll(t, ranks, func(t *mpitest.T, w *mpi.Comm) {
		for _, fl := range all {
			if fl.name == "shared" && apart(t.Name()) {
				continue
			}
			win, mem, at, err := fl.make(w, n)
			if err != nil {
				t.Fatalf("%s: %v", fl.name, err)
			}
			for _, s := range schemes {
				x := &exchange{w: w, win: win, mem: mem, at: at, name: fl.name + "/" + s.name, passive: s.passive}
				x.run = func(access func(int)) { s.run(t, w, win, access) }
				clear(mem)
				must(t, w.Barrier())
				f(t, x)
				must(t, w.Barrier())
			}
			must(t, win.Free())
		}
	})
}

// exchange is a window to be used in one kind of epoch.
type exchange struct {
	w       *mpi.Comm
	win     *rma.Window
	mem     []int64
	at      []int
	name    string
	passive bool
	run     func(access func(target int))
}

func (x *exchange) fill(t *mpitest.T, what string, got []int64, want func(i int) int64) {
	t.Helper()
	for i, v := range got {
		if v != want(i) {
			t.Fatalf("%s: %s: element %d of %d is %d, want %d", x.name, what, i, len(got), v, want(i))
		}
	}
}

// TestPutGet: every rank writes its own part of every other's memory, and reads
// it back.
func TestPutGet(t *testing.T) {
	const n, ranks = 100, 3
	value := func(from, to, i int) int64 { return int64(1000000*from + 1000*to + i) }
	eachWindow(t, ranks, n*ranks, func(t *mpitest.T, x *exchange) {
		me := x.w.Rank()
		src := make([]int64, n*ranks)
		x.run(func(to int) {
			src := src[to*n:][:n]
			for i := range src {
				src[i] = value(me, to, i)
			}
			must(t, rma.Put(x.win, src, to, x.off(to, me*n)))
		})
		clear(src)
		x.fill(t, "put", x.mem, func(i int) int64 { return value(i/n, me, i%n) })
		must(t, x.w.Barrier())
		got := make([]int64, ranks*n)
		x.run(func(to int) { must(t, rma.Get(x.win, got[to*n:][:n], to, x.off(to, me*n))) })
		x.fill(t, "get", got, func(i int) int64 { return value(me, i/n, i%n) })
	})
}

// off is the offset of element i of a rank's memory.
func (x *exchange) off(rank, i int) int { return x.at[rank] + i*x.step() }

// step is how many units of offsets an element has.
func (x *exchange) step() int {
	if x.win.Flavor() == rma.FlavorDynamic {
		return 8
	}
	return 1
}

// TestRequests: the forms with requests, which need a lock.
func TestRequests(t *testing.T) {
	const n = 50
	eachWindow(t, 2, n, func(t *mpitest.T, x *exchange) {
		if !x.passive {
			x.run(func(to int) {
				_, err := rma.RPut(x.win, []int64{1}, to, x.off(to, 0)).Wait()
				wantError(t, err, mpi.ErrRMASync)
			})
			return
		}
		src, got, old := make([]int64, n), make([]int64, n), make([]int64, n)
		other := 1 - x.w.Rank()
		for i := range src {
			src[i] = int64(i + 1)
		}
		x.run(func(to int) {
			if to != other {
				return
			}
			_, err := rma.RPut(x.win, src, to, x.off(to, 0)).Wait()
			must(t, err)
			must(t, x.win.Flush(to)) // the request says nothing of the target
			_, err = rma.RAccumulate(x.win, src, to, x.off(to, 0), mpi.Sum).Wait()
			must(t, err)
			_, err = rma.RGetAccumulate(x.win, src, old, to, x.off(to, 0), mpi.Sum).Wait()
			must(t, err)
			must(t, mpi.Waitall([]mpi.Request{rma.RGet(x.win, got, to, x.off(to, 0)), rma.RGet(x.win, got[:0], to, x.off(to, 0))}))
		})
		x.fill(t, "got before", old, func(i int) int64 { return 2 * int64(i+1) })
		x.fill(t, "got", got, func(i int) int64 { return 3 * int64(i+1) })
	})
}

// TestAccumulate: all ranks add to the same elements of all.
func TestAccumulate(t *testing.T) {
	const n, ranks, times = 20, 3, 30
	eachWindow(t, ranks, n+3, func(t *mpitest.T, x *exchange) {
		me := x.w.Rank()
		src := make([]int64, n)
		for i := range src {
			src[i] = int64(i * (me + 1))
		}
		tickets := make([][]int64, ranks)
		x.run(func(to int) {
			for range times {
				must(t, rma.Accumulate(x.win, src, to, x.off(to, 0), mpi.Sum))
				old, err := rma.FetchAndOp(x.win, 1, to, x.off(to, n), mpi.Sum)
				must(t, err)
				tickets[to] = append(tickets[to], int64(old))
				// A counter by compare-and-swap.
				for seen := int64(0); ; {
					old, err := rma.CompareAndSwap(x.win, seen, seen+1, to, x.off(to, n+1))
					must(t, err)
					if old == seen {
						break
					}
					seen = old
				}
				must(t, rma.Accumulate(x.win, []int64{int64(me)}, to, x.off(to, n+2), mpi.Max))
			}
		})
		x.fill(t, "sums", x.mem[:n], func(i int) int64 { return int64(times * i * (1 + 2 + 3)) })
		if x.mem[n] != times*ranks || x.mem[n+1] != times*ranks || x.mem[n+2] != ranks-1 {
			t.Fatalf("%s: counters %v, maximum %d", x.name, x.mem[n:n+2], x.mem[n+2])
		}
		// No two have drawn the same ticket.
		all := make([]int64, ranks*ranks*times)
		must(t, mpi.Allgather(x.w, slices.Concat(tickets...), all))
		for to := range ranks {
			seen := make([]bool, ranks*times)
			for from := range ranks {
				for _, k := range all[(from*ranks+to)*times:][:times] {
					if k < 0 || k >= ranks*times || seen[k] {
						t.Fatalf("%s: ticket %d of rank %d was drawn twice, or is none", x.name, k, to)
					}
					seen[k] = true
				}
			}
		}
	})
}

// TestGetAccumulate: what was there before, Replace, NoOp, and the order of
// accesses of one rank to one place.
func TestGetAccumulate(t *testing.T) {
	const n = 10
	eachWindow(t, 2, n, func(t *mpitest.T, x *exchange) {
		other := 1 - x.w.Rank()
		one, two := make([]int64, n), make([]int64, n)
		old1, old2, now := make([]int64, n), make([]int64, n), make([]int64, n)
		for i := range n {
			one[i], two[i] = int64(i), 100
		}
		x.run(func(to int) {
			if to != other {
				return
			}
			must(t, rma.GetAccumulate(x.win, one, old1, to, x.off(to, 0), mpi.Replace))
			must(t, rma.GetAccumulate(x.win, two, old2, to, x.off(to, 0), mpi.Sum))
			must(t, rma.GetAccumulate(x.win, nil, now, to, x.off(to, 0), mpi.NoOp))
		})
		x.fill(t, "before", old1, func(i int) int64 { return 0 })
		x.fill(t, "replaced", old2, func(i int) int64 { return int64(i) })
		x.fill(t, "now", now, func(i int) int64 { return int64(i + 100) })
		x.fill(t, "memory", x.mem, func(i int) int64 { return int64(i + 100) })
	})
}

// TestDerived: columns of a matrix go to rows of another's, and back.
func TestDerived(t *testing.T) {
	const rows, cols = 7, 5
	column, err := mpi.TypeVector(rows, 1, cols, mpi.TypeOf[int64]())
	if err != nil {
		t.Fatal(err)
	}
	eachWindow(t, 2, rows*cols, func(t *mpitest.T, x *exchange) {
		other := 1 - x.w.Rank()
		src, got := make([]int64, rows*cols), make([]int64, rows)
		for i := range src {
			src[i] = int64(100*x.w.Rank() + i)
		}
		x.run(func(to int) {
			if to == other {
				// Column 2 here becomes column 4 there, and a row of it again.
				must(t, x.win.PutBuf(mpi.BufAs(column, src[2:], 1), to, x.off(to, 4), 1, column))
			}
		})
		for r := range rows {
			if v := x.mem[r*cols+4]; v != int64(100*other+r*cols+2) {
				t.Fatalf("%s: row %d is %d", x.name, r, v)
			}
		}
		must(t, x.w.Barrier())
		x.run(func(to int) {
			if to == other {
				must(t, x.win.GetBuf(mpi.BufOf(got), to, x.off(to, 4), 1, column))
				must(t, x.win.AccumulateBuf(mpi.BufOf(src[:rows]), to, x.off(to, 0), 1, column, mpi.Sum))
				wantError(t, x.win.PutBuf(mpi.BufOf(src[:rows]), to, x.off(to, 5), 1, column), mpi.ErrRMARange)
				wantError(t, x.win.PutBuf(mpi.BufOf(src[:rows-1]), to, x.off(to, 0), 1, column), mpi.ErrCount)
			}
		})
		x.fill(t, "column", got, func(r int) int64 { return int64(100*x.w.Rank() + r*cols + 2) })
		for r := range rows {
			if v := x.mem[r*cols]; v != int64(100*other+r) {
				t.Fatalf("%s: column 0 of row %d is %d", x.name, r, v)
			}
		}
	})
}

// TestQueries: what a window tells of itself.
func TestQueries(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[float32](w, 10*w.Rank())
		must(t, err)
		for r := range w.Size() {
			if win.Bytes(r) != int64(40*r) || win.DispUnit(r) != 4 {
				t.Fatalf("rank %d: %d bytes in units of %d", r, win.Bytes(r), win.DispUnit(r))
			}
		}
		if win.Bytes(-1) != 0 || win.DispUnit(3) != 0 {
			t.Fatal("a rank that does not exist has memory")
		}
		if win.Rank() != w.Rank() || win.Size() != 3 || win.Group().Compare(w.Group()) != mpi.Ident || win.Flavor() != rma.FlavorAllocate {
			t.Fatalf("rank %d of %d, %v", win.Rank(), win.Size(), win.Flavor())
		}
		if win.Flavor().String() != "Allocate" || fmt.Sprint(rma.Flavor(77)) != "no flavor" {
			t.Fatalf("flavor %v", win.Flavor())
		}
		win.SetName("halo")
		wantError(t, rma.Put(win, []float32{1}, 0, 0), mpi.ErrRMASync, "halo", "no epoch")
		win.SetInfo(mpi.NewInfo("no_locks", "true"))
		if win.Info().Get("no_locks") != "true" {
			t.Fatal("the hint is lost")
		}
		if m := rma.Memory[float32](win); len(m) != 10*w.Rank() || len(rma.Memory[int64](win)) != 5*w.Rank() {
			t.Fatalf("memory of %d elements", len(m))
		}
		if rma.Memory[*int](win) != nil {
			t.Fatal("memory of pointers")
		}
		must(t, win.Free())
		if rma.Memory[float32](win) != nil {
			t.Fatal("memory after Free")
		}
	})
}
