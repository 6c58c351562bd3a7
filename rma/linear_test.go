// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// atomicOp is one atomic operation on a number, as its caller saw it.
type atomicOp struct {
	kind       string // "sum", "replace", "fetch", "swap"
	value, cmp int64
}

// register is what a number does under atomic operations.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		now, in := state.(int64), input.(atomicOp)
		next := now
		switch in.kind {
		case "sum":
			next = now + in.value
		case "replace":
			next = in.value
		case "swap":
			if now == in.cmp {
				next = in.value
			}
		}
		return output.(int64) == now, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v = %d", input, output) },
}

// atomicCall makes one random operation on the first number of rank 0.
func atomicCall[T int16 | int64](w *rma.Window, r *rand.Rand) (op atomicOp, was int64, err error) {
	var got T
	op.value, op.cmp = r.Int64N(100), r.Int64N(8)
	switch r.IntN(4) {
	case 0:
		op.kind = "sum"
		got, err = rma.FetchAndOp(w, T(op.value), 0, 0, mpi.Sum)
	case 1:
		op.kind, op.value = "replace", op.value%8
		got, err = rma.FetchAndOp(w, T(op.value), 0, 0, mpi.Replace)
	case 2:
		op.kind = "fetch"
		got, err = rma.FetchAndOp(w, T(0), 0, 0, mpi.NoOp)
	default:
		op.kind, op.value = "swap", op.value%8
		got, err = rma.CompareAndSwap(w, T(op.cmp), T(op.value), 0, 0)
	}
	if err == nil {
		err = w.Flush(0)
	}
	return op, int64(got), err
}

// wide is the number of elements of a window; the first is what histories are
// of.
const wide = 3000

// wideCall adds to all elements, or to the first of them, in one operation.
func wideCall[T int16 | int64](w *rma.Window, r *rand.Rand, all []T) (op atomicOp, was int64, err error) {
	op = atomicOp{kind: "sum", value: r.Int64N(100)}
	n := len(all)
	if r.IntN(3) == 0 {
		n = 1 + r.IntN(20)
	}
	for i := range n {
		all[i] = T(op.value)
	}
	got := make([]T, n)
	err = rma.GetAccumulate(w, all[:n], got, 0, 0, mpi.Sum)
	if err == nil {
		err = w.Flush(0)
	}
	return op, int64(got[0]), err
}

// history lets every rank make operations and collects what they saw.
func history[T int16 | int64](tb testing.TB, transport string, ranks, calls int, make func(c *mpi.Comm) (*rma.Window, error)) []porcupine.Operation {
	var mu sync.Mutex
	var all []porcupine.Operation
	begin := time.Now()
	mpitest.Run(tb, ranks, func(t *mpitest.T, world *mpi.Comm) {
		w, err := make(world)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.LockAll(0); err != nil {
			t.Fatal(err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(world.Rank())))
		var mine []porcupine.Operation
		many := slices.Repeat([]T{0}, wide)
		for i := range calls {
			o := porcupine.Operation{ClientId: world.Rank(), Call: int64(time.Since(begin))}
			call := func() (atomicOp, int64, error) { return atomicCall[T](w, r) }
			if world.Rank() == 1 || i%8 == 0 {
				call = func() (atomicOp, int64, error) { return wideCall(w, r, many) }
			}
			op, was, err := call()
			if err != nil {
				t.Fatal(err)
			}
			o.Input, o.Output, o.Return = op, was, int64(time.Since(begin))
			mine = append(mine, o)
		}
		if err := w.UnlockAll(); err != nil {
			t.Fatal(err)
		}
		if err := w.Free(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		all = slices.Concat(all, mine)
		mu.Unlock()
	}, mpitest.Transport(transport))
	return all
}

func linearizable[T int16 | int64](t *testing.T, make func(c *mpi.Comm) (*rma.Window, error)) {
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		t.Run(fmt.Sprintf("%T/%s", T(0), transport), func(t *testing.T) {
			h := history[T](t, transport, 4, 50, make)
			switch got, info := porcupine.CheckOperationsVerbose(register, h, 20*time.Second); got {
			case porcupine.Illegal:
				path := t.ArtifactDir() + "/history.html"
				_ = porcupine.VisualizePath(register, info, path)
				t.Errorf("no order of these %d operations explains what was seen; see %s (go test -artifacts)", len(h), path)
			case porcupine.Unknown:
				t.Errorf("%d operations take too long to check", len(h))
			}
		})
	}
}

// TestLinearizable: fetch-and-op and compare-and-swap of several ranks at a
// time, and accumulates of many elements of which the number is one, happen one
// after the other, in an order that respects real time, in
// memory of the library and of the application, with elements the processor has
// atomics for and others.
func TestLinearizable(t *testing.T) {
	t.Run("allocate", func(t *testing.T) {
		linearizable[int64](t, func(c *mpi.Comm) (*rma.Window, error) { return rma.Allocate[int64](c, wide) })
		linearizable[int16](t, func(c *mpi.Comm) (*rma.Window, error) { return rma.Allocate[int16](c, wide) })
	})
	t.Run("create", func(t *testing.T) {
		linearizable[int64](t, func(c *mpi.Comm) (*rma.Window, error) { return rma.Create(c, make([]int64, wide)) })
		linearizable[int16](t, func(c *mpi.Comm) (*rma.Window, error) { return rma.Create(c, make([]int16, wide)) })
	})
}
