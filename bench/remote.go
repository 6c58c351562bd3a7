// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"gompi/mpi"
	"gompi/rma"
)

// access has the buffers of rank 0 for a one-sided benchmark, and a window in which each
// rank has as many bytes.
type access struct {
	win      *rma.Window
	rank     int // the target
	buf      []byte
	sum, was []float64
}

// oneSided makes the benchmark of an operation of rank 0 on rank 1's memory, each complete
// there before the next begins. Rank 1 waits for the end.
func oneSided(name, help string, s shape, sizes []int, call func(a *access) error) Benchmark {
	return Benchmark{Name: name, Help: help, Bytes: sizes, shape: s, pair: true, targets: true, prepare: func(world *mpi.Comm, o *Options, bytes int) loop {
		a, err := newAccess(world, s, bytes, o.Given)
		to := func(rank int) company {
			return timed(func(n int) error {
				if err != nil || world.Rank() != 0 {
					return err
				}
				a.rank = rank
				for range n {
					if err := call(a); err != nil {
						return err
					}
					if err := a.win.Flush(rank); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return loop{ops: 1, close: a.close, run: to(1), own: to(0)}
	}}
}

func newAccess(world *mpi.Comm, s shape, bytes int, given bool) (*access, error) {
	a := new(access)
	var err error
	if s&sums != 0 {
		a.sum, a.was = make([]float64, bytes/8), make([]float64, bytes/8)
		clear(a.sum) // touched: page faults are not measured
		clear(a.was)
		a.win, err = newWindow[float64](world, max(bytes/8, 1), given)
	} else {
		a.buf = make([]byte, bytes)
		clear(a.buf)
		a.win, err = newWindow[byte](world, bytes, given)
	}
	if err == nil {
		err = a.win.LockAll(0)
	}
	return a, err
}

// newWindow makes a window of memory that was written before.
func newWindow[T any](world *mpi.Comm, n int, given bool) (*rma.Window, error) {
	if given {
		mem := make([]T, n)
		clear(mem)
		return rma.Create(world, mem)
	}
	win, err := rma.Allocate[T](world, n)
	if err == nil {
		clear(rma.Memory[T](win))
	}
	return win, err
}

func (a *access) close() error {
	if a.win == nil {
		return nil
	}
	if err := a.win.UnlockAll(); err != nil {
		return err
	}
	return a.win.Free()
}

func oneSidedBenchmarks() []Benchmark {
	word := []int{8}
	window := windows("win", "a window of memory that is there, made and freed", []int{8, 4 << 20}, func(world *mpi.Comm, bytes int) func() (*rma.Window, error) {
		mem := make([]byte, bytes)
		return func() (*rma.Window, error) { return rma.Create(world, mem) }
	})
	allocated := windows("winalloc", "a window of new memory, made and freed", []int{8, 64 << 10, 1 << 20, 64 << 20}, func(world *mpi.Comm, bytes int) func() (*rma.Window, error) {
		return func() (*rma.Window, error) { return rma.Allocate[byte](world, bytes) }
	})
	return []Benchmark{
		oneSided("put", "put into rank 1's memory, and flush", 0, collectiveSizes, func(a *access) error { return rma.Put(a.win, a.buf, a.rank, 0) }),
		oneSided("get", "get from rank 1's memory, and flush", 0, collectiveSizes, func(a *access) error { return rma.Get(a.win, a.buf, a.rank, 0) }),
		oneSided("acc", "add float64 to rank 1's memory, and flush", sums, collectiveSizes, func(a *access) error {
			return rma.Accumulate(a.win, a.sum, a.rank, 0, mpi.Sum)
		}),
		oneSided("getacc", "as acc, and fetch what was there", sums, collectiveSizes, func(a *access) error {
			return rma.GetAccumulate(a.win, a.sum, a.was, a.rank, 0, mpi.Sum)
		}),
		oneSided("fao", "fetch and add an int64 of rank 1, and flush", sums, word, func(a *access) error {
			_, err := rma.FetchAndOp[int64](a.win, 1, a.rank, 0, mpi.Sum)
			return err
		}),
		oneSided("cas", "compare and swap an int64 of rank 1, and flush", sums, word, func(a *access) error {
			_, err := rma.CompareAndSwap[int64](a.win, 0, 0, a.rank, 0)
			return err
		}),
		window, allocated,
	}
}

// windows makes the benchmark of a window's creation and end.
func windows(name, help string, sizes []int, prepare func(world *mpi.Comm, bytes int) func() (*rma.Window, error)) Benchmark {
	return Benchmark{Name: name, Help: help, Bytes: sizes, prepare: func(world *mpi.Comm, _ *Options, bytes int) loop {
		one := prepare(world, bytes)
		return loop{ops: 1, run: timed(func(n int) error {
			for range n {
				w, err := one()
				if err != nil {
					return err
				}
				if err := w.Free(); err != nil {
					return err
				}
			}
			return nil
		})}
	}}
}
