// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

// composition is Affine.Then as an operation.
var composition = mpi.NewOp(func(in, inout []testlab.Affine) {
	for i := range in {
		inout[i] = in[i].Then(inout[i])
	}
}).Ordered()

// greatest is Max as an operation of the user.
var greatest = mpi.NewOp(func(in, inout []int64) {
	for i := range in {
		inout[i] = max(inout[i], in[i])
	}
})

// collBuffers are the buffers of one collective call.
type collBuffers interface {
	fill(key int)
	// result is what the call has left in the receive buffer; an error if
	// anything else has changed.
	result() ([]byte, error)
	forms(c *mpi.Comm, e *testlab.Event) forms
}

// forms are the three forms of a call.
type forms struct {
	run     func() error
	start   func() mpi.Request
	prepare func() *mpi.Persistent
}

func (pl *player) collective(c *mpi.Comm, e *testlab.Event) error {
	b, err := pl.buffers(e)
	if err != nil {
		return err
	}
	b.fill(testlab.CallKey(e, 0))
	f := b.forms(c, e)
	switch e.Form {
	case testlab.Nonblocking:
		pl.finishLater(e.RecvDue, f.start(), e.ID, 0, b)
		return nil
	case testlab.Persistent:
		pl.prepared[e.ID] = &ready{f.prepare(), b, e.Comm}
		return nil
	}
	return pl.finish(f.run(), e.ID, 0, b)
}

// starts starts persistent collectives, in an order of this rank's own.
func (pl *player) starts(e *testlab.Event) error {
	rnd := rand.New(rand.NewPCG(pl.p.Seed, uint64(e.ID<<8|pl.rank)))
	var all []*mpi.Persistent
	for _, k := range rnd.Perm(len(e.Of)) {
		r := pl.prepared[e.Of[k]]
		if r == nil {
			continue // not in that communicator
		}
		r.fill(testlab.CallKey(e, k))
		all = append(all, r.Persistent)
	}
	if rnd.IntN(2) == 0 {
		if err := mpi.Startall(all); err != nil {
			return err
		}
	} else {
		for _, p := range all {
			if err := p.Start(); err != nil {
				return err
			}
		}
	}
	for k, id := range e.Of {
		if r := pl.prepared[id]; r != nil {
			pl.finishLater(e.RecvDue, r.Request(), e.ID, k, r)
		}
	}
	return nil
}

func (pl *player) finishLater(due int, r mpi.Request, id, index int, b collBuffers) {
	pl.add(due, r, func(_ mpi.Status, err error) error {
		return pl.finish(err, id, index, b)
	})
}

func (pl *player) finish(err error, id, index int, b collBuffers) error {
	if err != nil {
		return err
	}
	result, err := b.result()
	if err != nil {
		return fmt.Errorf("event %d: %w", id, err)
	}
	pl.out = append(pl.out, testlab.Result{ID: id, Index: index, Bytes: int64(len(result)), Sum: testlab.Sum(result)})
	return nil
}

func (pl *player) buffers(e *testlab.Event) (collBuffers, error) {
	switch e.Elem {
	case testlab.Int64Sum:
		return newTyped(pl, e, mpi.Sum, func(w uint64) int64 { return int64(w) })
	case testlab.Float64Sum:
		return newTyped(pl, e, mpi.Sum, math.Float64frombits)
	case testlab.Uint32Xor:
		return newTyped(pl, e, mpi.BitXor, func(w uint64) uint32 { return uint32(w) })
	case testlab.Uint8Or:
		return newTyped(pl, e, mpi.BitOr, func(w uint64) uint8 { return uint8(w) })
	case testlab.Int64Max:
		return newTyped(pl, e, greatest, func(w uint64) int64 { return int64(w) })
	case testlab.AffineThen:
		return newTyped(pl, e, composition, testlab.AffineOf)
	}
	return nil, fmt.Errorf("unknown elements")
}

// typed is collBuffers of elements of T.
type typed[T comparable] struct {
	pl         *player
	e          *testlab.Event
	shape      testlab.Shape
	op         mpi.Op
	of         func(word uint64) T
	send, recv spread[T]
	sent       []T // what send is filled with
}

func newTyped[T comparable](pl *player, e *testlab.Event, op mpi.Op, of func(uint64) T) (*typed[T], error) {
	b := &typed[T]{pl: pl, e: e, op: op, of: of, shape: pl.p.Shape(e, pl.place(e))}
	s := &b.shape
	outer, inner := &s.Send, &s.Recv
	if s.Recv.Len >= s.Send.Len {
		outer, inner = inner, outer
	}
	kinds := [2]arrangement{}
	if e.Derived {
		rnd := rand.New(rand.NewPCG(pl.p.Seed, uint64(e.ID<<8|pl.rank)))
		kinds = [...]arrangement{arrangement(rnd.IntN(int(numArrangements))), arrangement(rnd.IntN(int(numArrangements)))}
	}
	if s.InPlace {
		kinds[1] = kinds[0]
		if !kinds[0].fits(*outer) || !kinds[0].fits(*inner) || s.At%2 > 0 {
			kinds[0], kinds[1] = everyOther, everyOther
		}
	}
	for i, blocks := range []testlab.Blocks{s.Send, s.Recv} {
		if !kinds[i].fits(blocks) {
			kinds[i] = everyOther
		}
	}
	var err error
	if b.send, err = newSpread[T](kinds[0], s.Send.Len); err != nil {
		return nil, err
	}
	if b.recv, err = newSpread[T](kinds[1], s.Recv.Len); err != nil {
		return nil, err
	}
	switch {
	case !s.InPlace:
	case outer == &s.Recv:
		b.send = b.recv.part(s.At, s.Send.Len)
	default:
		b.recv = b.send.part(s.At, s.Recv.Len)
	}
	return b, nil
}

func (b *typed[T]) fill(key int) {
	gap := b.of(b.e.Elem.Gap())
	b.recv.wipe(gap)
	b.send.wipe(gap)
	b.sent = make([]T, b.shape.Send.Len)
	for i := range b.sent {
		b.sent[i] = b.of(b.e.Elem.Word(b.pl.p.Seed, key, b.pl.rank, i))
		b.send.set(i, b.sent[i])
	}
}

func (b *typed[T]) result() ([]byte, error) {
	gap := b.of(b.e.Elem.Gap())
	if err := b.recv.intact(gap); err != nil {
		return nil, fmt.Errorf("receive buffer: %w", err)
	}
	if err := b.send.intact(gap); err != nil {
		return nil, fmt.Errorf("send buffer: %w", err)
	}
	if !b.shape.InPlace {
		for i, v := range b.sent {
			if b.send.get(i) != v {
				return nil, fmt.Errorf("element %d to send has changed", i)
			}
		}
	}
	if b.e.Coll == testlab.Exscan && b.pl.place(b.e).Rank == 0 {
		return nil, nil
	}
	out := make([]T, b.recv.n)
	for i := range out {
		out[i] = b.recv.get(i)
	}
	return bytesOf(out), nil
}

func (b *typed[T]) root() int {
	switch r := b.shape.Root; r {
	case testlab.RootMe:
		return mpi.Root
	case testlab.RootNobody:
		return mpi.ProcNull
	default:
		return r
	}
}

// forms are the forms of the call.
func (b *typed[T]) forms(c *mpi.Comm, e *testlab.Event) forms {
	root, op := b.root(), b.op
	in, out := b.send.buf(), b.recv.buf()
	sc, sd := b.send.layout(b.shape.Send)
	rc, rd := b.recv.layout(b.shape.Recv)
	switch e.Coll {
	case testlab.Barrier:
		return forms{c.Barrier, c.Ibarrier, c.BarrierInit}
	case testlab.Bcast:
		buf := out
		if b.shape.Root == testlab.RootMe {
			buf = in
		}
		return forms{func() error { return c.Bufs().Bcast(buf, root) },
			func() mpi.Request { return c.Bufs().Ibcast(buf, root) }, func() *mpi.Persistent { return c.Bufs().BcastInit(buf, root) }}
	case testlab.Gather:
		return forms{func() error { return c.Bufs().Gather(in, out, root) },
			func() mpi.Request { return c.Bufs().Igather(in, out, root) }, func() *mpi.Persistent { return c.Bufs().GatherInit(in, out, root) }}
	case testlab.Gatherv:
		return forms{func() error { return c.Bufs().Gatherv(in, out, rc, rd, root) },
			func() mpi.Request { return c.Bufs().Igatherv(in, out, rc, rd, root) },
			func() *mpi.Persistent { return c.Bufs().GathervInit(in, out, rc, rd, root) }}
	case testlab.Scatter:
		return forms{func() error { return c.Bufs().Scatter(in, out, root) },
			func() mpi.Request { return c.Bufs().Iscatter(in, out, root) }, func() *mpi.Persistent { return c.Bufs().ScatterInit(in, out, root) }}
	case testlab.Scatterv:
		return forms{func() error { return c.Bufs().Scatterv(in, sc, sd, out, root) },
			func() mpi.Request { return c.Bufs().Iscatterv(in, sc, sd, out, root) },
			func() *mpi.Persistent { return c.Bufs().ScattervInit(in, sc, sd, out, root) }}
	case testlab.Allgather:
		return forms{func() error { return c.Bufs().Allgather(in, out) },
			func() mpi.Request { return c.Bufs().Iallgather(in, out) }, func() *mpi.Persistent { return c.Bufs().AllgatherInit(in, out) }}
	case testlab.Allgatherv:
		return forms{func() error { return c.Bufs().Allgatherv(in, out, rc, rd) },
			func() mpi.Request { return c.Bufs().Iallgatherv(in, out, rc, rd) },
			func() *mpi.Persistent { return c.Bufs().AllgathervInit(in, out, rc, rd) }}
	case testlab.Alltoall:
		return forms{func() error { return c.Bufs().Alltoall(in, out) },
			func() mpi.Request { return c.Bufs().Ialltoall(in, out) }, func() *mpi.Persistent { return c.Bufs().AlltoallInit(in, out) }}
	case testlab.Alltoallv:
		return forms{func() error { return c.Bufs().Alltoallv(in, sc, sd, out, rc, rd) },
			func() mpi.Request { return c.Bufs().Ialltoallv(in, sc, sd, out, rc, rd) },
			func() *mpi.Persistent { return c.Bufs().AlltoallvInit(in, sc, sd, out, rc, rd) }}
	case testlab.Alltoallw:
		ins, outs := b.send.blocks(b.shape.Send), b.recv.blocks(b.shape.Recv)
		return forms{func() error { return c.Bufs().Alltoallw(ins, outs) },
			func() mpi.Request { return c.Bufs().Ialltoallw(ins, outs) }, func() *mpi.Persistent { return c.Bufs().AlltoallwInit(ins, outs) }}
	case testlab.Reduce:
		return forms{func() error { return c.Bufs().Reduce(in, out, op, root) },
			func() mpi.Request { return c.Bufs().Ireduce(in, out, op, root) }, func() *mpi.Persistent { return c.Bufs().ReduceInit(in, out, op, root) }}
	case testlab.Allreduce:
		return forms{func() error { return c.Bufs().Allreduce(in, out, op) },
			func() mpi.Request { return c.Bufs().Iallreduce(in, out, op) }, func() *mpi.Persistent { return c.Bufs().AllreduceInit(in, out, op) }}
	case testlab.ReduceScatterBlock:
		return forms{func() error { return c.Bufs().ReduceScatterBlock(in, out, op) },
			func() mpi.Request { return c.Bufs().IreduceScatterBlock(in, out, op) },
			func() *mpi.Persistent { return c.Bufs().ReduceScatterBlockInit(in, out, op) }}
	case testlab.ReduceScatter:
		return forms{func() error { return c.Bufs().ReduceScatter(in, out, sc, op) },
			func() mpi.Request { return c.Bufs().IreduceScatter(in, out, sc, op) },
			func() *mpi.Persistent { return c.Bufs().ReduceScatterInit(in, out, sc, op) }}
	case testlab.Scan:
		return forms{func() error { return c.Bufs().Scan(in, out, op) },
			func() mpi.Request { return c.Bufs().Iscan(in, out, op) }, func() *mpi.Persistent { return c.Bufs().ScanInit(in, out, op) }}
	case testlab.Exscan:
		return forms{func() error { return c.Bufs().Exscan(in, out, op) },
			func() mpi.Request { return c.Bufs().Iexscan(in, out, op) }, func() *mpi.Persistent { return c.Bufs().ExscanInit(in, out, op) }}
	case testlab.NeighborAllgather:
		return forms{func() error { return c.Bufs().NeighborAllgather(in, out) },
			func() mpi.Request { return c.Bufs().IneighborAllgather(in, out) },
			func() *mpi.Persistent { return c.Bufs().NeighborAllgatherInit(in, out) }}
	case testlab.NeighborAllgatherv:
		return forms{func() error { return c.Bufs().NeighborAllgatherv(in, out, rc, rd) },
			func() mpi.Request { return c.Bufs().IneighborAllgatherv(in, out, rc, rd) },
			func() *mpi.Persistent { return c.Bufs().NeighborAllgathervInit(in, out, rc, rd) }}
	case testlab.NeighborAlltoall:
		return forms{func() error { return c.Bufs().NeighborAlltoall(in, out) },
			func() mpi.Request { return c.Bufs().IneighborAlltoall(in, out) },
			func() *mpi.Persistent { return c.Bufs().NeighborAlltoallInit(in, out) }}
	case testlab.NeighborAlltoallv:
		return forms{func() error { return c.Bufs().NeighborAlltoallv(in, sc, sd, out, rc, rd) },
			func() mpi.Request { return c.Bufs().IneighborAlltoallv(in, sc, sd, out, rc, rd) },
			func() *mpi.Persistent { return c.Bufs().NeighborAlltoallvInit(in, sc, sd, out, rc, rd) }}
	case testlab.NeighborAlltoallw:
		ins, outs := b.send.blocks(b.shape.Send), b.recv.blocks(b.shape.Recv)
		return forms{func() error { return c.Bufs().NeighborAlltoallw(ins, outs) },
			func() mpi.Request { return c.Bufs().IneighborAlltoallw(ins, outs) },
			func() *mpi.Persistent { return c.Bufs().NeighborAlltoallwInit(ins, outs) }}
	}
	panic("unknown collective")
}
