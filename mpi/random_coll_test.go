// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"

	"gompi/internal/testlab"
	"gompi/mpi"
)

// composition is Affine.Then as an operation.
var composition = mpi.NewOp(func(in, inout []testlab.Affine) {
	for i := range in {
		inout[i] = in[i].Then(inout[i])
	}
}, false)

func (pl *player) collective(c *mpi.Comm, e *testlab.Event) error {
	input := func(i int) int64 { return testlab.Input(pl.p.Seed, e.ID, pl.rank, i) }
	switch e.Coll {
	case testlab.Barrier:
		if e.Nonblock {
			return pl.later(e, c.Ibarrier(), []byte(nil))
		}
		return finishColl(pl, e, c.Barrier(), []byte(nil))
	case testlab.Bcast:
		buf := make([]int64, e.Count)
		if pl.rank == e.Root {
			fillWith(buf, input)
		}
		if e.Nonblock {
			return pl.later(e, mpi.Ibcast(c, buf, e.Root), bytesOf(buf))
		}
		return finishColl(pl, e, mpi.Bcast(c, buf, e.Root), bytesOf(buf))
	case testlab.Allgather:
		recv := make([]int64, e.Count*c.Size())
		send := recv[pl.rank*e.Count:][:e.Count]
		if !e.InPlace {
			send = make([]int64, e.Count)
		}
		fillWith(send, input)
		if e.Nonblock {
			return pl.later(e, mpi.Iallgather(c, send, recv), bytesOf(recv))
		}
		return finishColl(pl, e, mpi.Allgather(c, send, recv), bytesOf(recv))
	case testlab.Allgatherv:
		counts, before, total := make([]int, c.Size()), 0, 0
		for r := range counts {
			counts[r] = testlab.Contribution(e.Count, r)
			total += counts[r]
			if r < pl.rank {
				before += counts[r]
			}
		}
		recv := make([]int64, total)
		send := recv[before:][:counts[pl.rank]]
		if !e.InPlace {
			send = make([]int64, counts[pl.rank])
		}
		fillWith(send, input)
		if e.Nonblock {
			return pl.later(e, mpi.Iallgatherv(c, send, recv, counts, nil), bytesOf(recv))
		}
		return finishColl(pl, e, mpi.Allgatherv(c, send, recv, counts, nil), bytesOf(recv))
	case testlab.AllreduceSum:
		return allreduce(pl, c, e, input, mpi.Sum)
	case testlab.AllreduceFloat:
		return allreduce(pl, c, e, func(i int) float64 { return float64(input(i)) }, mpi.Sum)
	case testlab.AllreduceXor:
		return allreduce(pl, c, e, func(i int) uint32 { return uint32(input(i)) }, mpi.BitXor)
	case testlab.AllreduceUser:
		return allreduce(pl, c, e, func(i int) testlab.Affine { return testlab.AffineInput(pl.p.Seed, e.ID, pl.rank, i) }, composition)
	}
	return fmt.Errorf("unknown collective")
}

func fillWith[T any](s []T, f func(i int) T) {
	for i := range s {
		s[i] = f(i)
	}
}

func allreduce[T any](pl *player, c *mpi.Comm, e *testlab.Event, input func(i int) T, op mpi.Op) error {
	recv := make([]T, e.Count)
	send := recv
	if !e.InPlace {
		send = make([]T, e.Count)
	}
	fillWith(send, input)
	if e.Nonblock {
		return pl.later(e, mpi.Iallreduce(c, send, recv, op), bytesOf(recv))
	}
	return finishColl(pl, e, mpi.Allreduce(c, send, recv, op), bytesOf(recv))
}

func (pl *player) later(e *testlab.Event, r mpi.Request, result []byte) error {
	pl.add(e.RecvDue, r, func(_ mpi.Status, err error) error {
		if err == errUnknown {
			err = nil
		}
		return finishColl(pl, e, err, result)
	})
	return nil
}

func finishColl(pl *player, e *testlab.Event, err error, result []byte) error {
	if err == nil {
		pl.out = append(pl.out, testlab.Result{ID: e.ID, Bytes: int64(len(result)), Sum: testlab.Sum(result)})
	}
	return err
}
