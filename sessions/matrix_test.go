// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// rows are some rows of a sparse matrix.
type rows struct {
	count    []int32 // entries of each row
	col      []int32
	val      []float64
	diagonal []float64
}

// matrix has no zeros on its diagonal, and as many entries in a row as chance will have.
func matrix(n int) (m rows) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		m.count = append(m.count, rng.Int32N(12))
		for range m.count[len(m.count)-1] {
			m.col, m.val = append(m.col, rng.Int32N(int32(n))), append(m.val, rng.Float64()-0.5)
		}
		m.diagonal = append(m.diagonal, 4+rng.Float64())
	}
	return m
}

// step is one of Jacobi's: each element comes of the whole x in one order, so that the
// result is the same to the last bit, whoever has the row.
func (m *rows) step(x, next []float64) {
	k := 0
	for i, n := range m.count {
		sum := 1.0
		for range n {
			sum -= m.val[k] * x[m.col[k]]
			k++
		}
		next[i] = sum / m.diagonal[i]
	}
}

// block is the part of n rows of one of some ranks; of others nothing.
func block(n int, ranks []int, rank int) (from, to int) {
	i := slices.Index(ranks, rank)
	if i < 0 {
		return 0, 0
	}
	return n * i / len(ranks), n * (i + 1) / len(ranks)
}

// move takes n rows from the blocks of some ranks of comm to those of others.
func (m *rows) move(comm *mpi.Comm, n int, have, want []int) (moved rows, err error) {
	send, recv := make([]int, comm.Size()), make([]int, comm.Size())
	common := func(a, b int) int {
		from, to := block(n, have, a)
		from2, to2 := block(n, want, b)
		return max(0, min(to, to2)-max(from, from2))
	}
	for rank := range send {
		send[rank], recv[rank] = common(comm.Rank(), rank), common(rank, comm.Rank())
	}
	if moved.count, err = alltoall(comm, m.count, send, recv); err == nil {
		moved.diagonal, err = alltoall(comm, m.diagonal, send, recv)
	}
	if err != nil {
		return moved, err
	}
	entries := func(of []int32, each []int) (list []int) {
		for _, n := range each {
			sum := 0
			for _, c := range of[:n] {
				sum += int(c)
			}
			list, of = append(list, sum), of[n:]
		}
		return list
	}
	send, recv = entries(m.count, send), entries(moved.count, recv)
	if moved.col, err = alltoall(comm, m.col, send, recv); err == nil {
		moved.val, err = alltoall(comm, m.val, send, recv)
	}
	return moved, err
}

func alltoall[T int32 | float64](comm *mpi.Comm, mine []T, send, recv []int) ([]T, error) {
	sum := 0
	for _, n := range recv {
		sum += n
	}
	got := make([]T, sum)
	return got, mpi.Alltoallv(comm, mine, send, nil, got, recv, nil)
}

// upTo are the numbers below n.
func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// iteration is a rank of a computation whose number of ranks changes all the time.
type iteration struct {
	n, steps int
	sizes    []int // how many ranks there are to be, one after the other

	comm    *mpi.Comm
	x       []float64
	mine    rows
	changes int
}

// adopt moves the rows: from those who leave before the commit, to newcomers after it.
func (j *iteration) adopt(ctx context.Context, c *sessions.Change, i int) (int, error) {
	have, old := j.mine, j.comm
	stay, leave := c.Ranks()
	var err error
	if len(leave) > 0 && c.Role != sessions.Joining {
		if have, err = j.mine.move(old, j.n, upTo(old.Size()), stay); err != nil {
			return 0, err
		}
	}
	comm, err := c.Commit(ctx)
	if err != nil {
		return 0, err
	}
	if j.mine, err = have.move(comm, j.n, upTo(len(stay)), upTo(comm.Size())); err != nil {
		return 0, err
	}
	j.comm = comm
	if c.Role != sessions.Joining {
		old.Free()
	}
	if j.changes, err = mpi.BcastOne(comm, j.changes+1, 0); err == nil {
		err = mpi.Bcast(comm, j.x, 0)
	}
	if c.Role == sessions.Joining && err == nil {
		i, err = c.Iteration(ctx)
	}
	return i, err
}

func (j *iteration) run(ctx context.Context, world *mpi.Comm) error {
	i := 0
	j.comm, j.x = world, make([]float64, j.n)
	c, err := sessions.Joined(ctx)
	switch {
	case err != nil:
	case c != nil:
		i, err = j.adopt(ctx, c, 0)
		i++
	default:
		var all rows
		if world.Rank() == 0 {
			all = matrix(j.n)
		}
		j.mine, err = all.move(world, j.n, []int{0}, upTo(world.Size()))
	}
	if err != nil {
		return err
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	if err != nil {
		return err
	}
	asked := -1
	for ; i < j.steps || j.changes < len(j.sizes); i++ {
		if j.comm.Rank() == 0 && j.changes < len(j.sizes) && asked < j.changes {
			asked = j.changes
			op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: toMain, Size: j.sizes[j.changes]})
			if err != nil {
				return err
			}
			op.Free()
		}
		counts := make([]int, j.comm.Size())
		for rank := range counts {
			from, to := block(j.n, upTo(len(counts)), rank)
			counts[rank] = to - from
		}
		next := make([]float64, len(j.mine.count))
		j.mine.step(j.x, next)
		if err := mpi.Allgatherv(j.comm, next, j.x, counts, nil); err != nil {
			return err
		}
		c, err := w.Check(i)
		if err == nil && c != nil {
			i, err = j.adopt(ctx, c, i)
		}
		if err != nil {
			return err
		}
	}
	if j.comm.Rank() == 0 {
		all, x, next := matrix(j.n), make([]float64, j.n), make([]float64, j.n)
		for range i {
			all.step(x, next)
			x, next = next, x
		}
		if !slices.Equal(x, j.x) {
			return fmt.Errorf("after %d steps and %d changes the result is another one", i, j.changes)
		}
	}
	return w.Close()
}

// An iteration whose matrix moves between as many ranks as there are just now gives
// what one rank computes, to the last bit.
func TestDataMove(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		sizes := []int{3, 1, 6, 2, 5, 4, 7, 1, 2, 3, 5, 6, 4, 2, 3, 7, 6, 1, 4, 3}
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			j := iteration{n: 101, steps: 100, sizes: sizes}
			if err := j.run(t.Context(), world); err != nil && !errors.Is(err, sessions.ErrLeaving) {
				t.Fatal(err)
			}
		}, over(transport)...)
	})
}
