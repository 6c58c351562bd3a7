// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels get addresses.

import (
	"context"
	"sync"
	"testing"
	"unsafe"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
)

// read64 is call64 with the algorithm that reads.
func (n *node) read64(t testing.TB, op collectives.Op, in, out []uint64, count int) *CollArgs {
	a := n.call64(op, in, out, count, 0)
	g, err := selection.ByName(op, "read")
	if err != nil {
		t.Fatal(err)
	}
	a.Alg, a.Args.InPlace = g, a.In.Overlaps(a.Out)
	return a
}

var scans = []collectives.Op{collectives.OpScan, collectives.OpExscan}

// Vectors around the lengths of pieces, each rank of the chain asleep before the
// one below it comes, or there long before the one above.
func TestScanChain(t *testing.T) {
	// The pieces: at least 16 KiB, and at most 128, eight of them if the vector is short.
	const minPieces, least, most = 8, 16 << 10 / 8, 8 * 128 << 10 / 8
	for _, size := range []int{2, 3, 5, 8} {
		ns := areaJob(t, size, nil)
		k := 0
		for _, count := range []int{0, 1, least - 1, least + 1, 2 * least, minPieces*least + 3, most - 1, most + 1} {
			for _, op := range scans {
				for _, upwards := range []bool{false, true} {
					k++
					faults, outs := make([]*fault.Fault, size), make([][]uint64, size)
					wants := make([]func(i int) uint64, size)
					soon(t, "scan", func() error {
						var wg sync.WaitGroup
						for i := range size {
							rank := i
							if !upwards {
								rank = size - 1 - i
							}
							in, out, want := areaCase(op, k, rank, size, count, 0, k%3 == 0)
							outs[rank], wants[rank] = out, want
							a := ns[rank].read64(t, op, in, out, count)
							wg.Go(func() { faults[rank] = ns[rank].Collective(ns[rank].ctx, a) })
							if i < size-1 && count > 0 && k%2 == 0 {
								ns[rank].asleep(t)
							}
						}
						wg.Wait()
						return nil
					})
					for rank, f := range faults {
						if f != nil {
							t.Fatalf("%v of %d, rank %d of %d: %+v", op, count, rank, size, f)
						}
						for i, v := range outs[rank] {
							if want := wants[rank](i); v != want {
								t.Fatalf("%v of %d, rank %d of %d: element %d is %x, want %x", op, count, rank, size, i, v, want)
							}
						}
					}
				}
			}
		}
	}
}

// A rank that dies before it has done its part fails those beside it.
func TestScanDeath(t *testing.T) {
	for _, op := range scans {
		ns := areaJob(t, 3, nil)
		const count = 20_000
		done := make(chan *fault.Fault, 2)
		for _, rank := range []int{0, 2} {
			in, out, _ := areaCase(op, 1, rank, 3, count, 0, false)
			a := ns[rank].read64(t, op, in, out, count)
			go func() { done <- ns[rank].Collective(ns[rank].ctx, a) }()
			ns[rank].asleep(t)
		}
		for _, rank := range []int{0, 2} {
			ns[rank].ProcFailed(proc(2), "was killed")
		}
		for range 2 {
			wantClass(t, op.String(), soon(t, "scan", func() *fault.Fault { return <-done }), fault.ProcFailed)
		}
	}
}

// A rank gives up in the middle of the chain: whoever succeeds nevertheless has
// the right result.
func TestScanGivenUp(t *testing.T) {
	const size, count = 3, 200_000
	for k := range 6 {
		op := scans[k%2]
		ns := areaJob(t, size, nil)
		ctx, cancel := context.WithCancel(context.Background())
		outs, wants := make([][]uint64, size), make([]func(i int) uint64, size)
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			in, out, want := areaCase(op, k, rank, size, count, 0, false)
			outs[rank], wants[rank] = out, want
			a := ns[rank].read64(t, op, in, out, count)
			if rank == 1+k/2%2 {
				pieces := 0
				a.User, a.Kernel = ctx, func(dst, x, y unsafe.Pointer, n int64) {
					if pieces++; pieces == 1+k {
						cancel()
					}
					join64(dst, x, y, n)
				}
			}
			return a
		})
		cancel()
		for rank, f := range faults {
			if f != nil {
				if f.Class != fault.Cancelled && f.Class != fault.Revoked {
					t.Errorf("%v, rank %d: %+v", op, rank, f)
				}
				continue
			}
			for i, v := range outs[rank] {
				if want := wants[rank](i); v != want {
					t.Fatalf("%v, rank %d: element %d is %x, want %x", op, rank, i, v, want)
				}
			}
		}
	}
}
