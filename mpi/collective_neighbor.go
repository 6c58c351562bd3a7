// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
)

// neighbors are whom the caller exchanges blocks with in a topology. Immutable.
type neighbors struct {
	// dests are in the order of the blocks to send, -1 for ProcNull.
	dests []int32
	// sources are in the order in which messages meet their sends: the k-th
	// time a has b as a destination meets the k-th time b has a as a source.
	sources []int32
	// blocks are the blocks to receive of sources, by the topology's order;
	// nil: the i-th is that of sources[i]. A Cartesian topology lists the
	// positive neighbor of each dimension first, as what is sent in the
	// negative direction arrives from the positive one, also where both
	// are the same rank.
	blocks []int32
}

// NeighborAllgather sends send to all destinations of the caller in the
// communicator's topology, and collects what its sources send in recv, a block
// for each source in the topology's order. All blocks have one length; send may
// be empty on a rank without destinations. A neighbor that is ProcNull leaves
// its block as it is. The buffers must not overlap; they may be reused at
// return. Collective. MPI 4.1 section 8.6.1.
func NeighborAllgather[T any](c *Comm, send, recv []T) error {
	return c.Bufs().NeighborAllgather(BufOf(send), BufOf(recv))
}

// IneighborAllgather starts a NeighborAllgather; the buffers belong to the
// library until the request is complete. Collective. MPI 4.1 section 8.7.1.
func IneighborAllgather[T any](c *Comm, send, recv []T) Request {
	return c.Bufs().IneighborAllgather(BufOf(send), BufOf(recv))
}

// NeighborAllgatherInit prepares a NeighborAllgather. Collective, see
// [Comm.BarrierInit]. MPI 4.1 section 8.8.1.
func NeighborAllgatherInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.Bufs().NeighborAllgatherInit(BufOf(send), BufOf(recv))
}

// NeighborAllgather is [NeighborAllgather] for Bufs.
func (x Bufs) NeighborAllgather(send, recv Buf) error {
	return new(call).neighborAllgather(x.c, send, recv).run()
}

// IneighborAllgather is [IneighborAllgather] for Bufs.
func (x Bufs) IneighborAllgather(send, recv Buf) Request {
	return new(call).neighborAllgather(x.c, send, recv).start()
}

// NeighborAllgatherInit is [NeighborAllgatherInit] for Bufs.
func (x Bufs) NeighborAllgatherInit(send, recv Buf) *Persistent {
	return new(call).neighborAllgather(x.c, send, recv).prepare()
}

// NeighborAllgatherv is NeighborAllgather of blocks of different lengths:
// counts[i] elements of the i-th source land at displs[i] of recv (nil: side by
// side). Collective. MPI 4.1 section 8.6.1.
func NeighborAllgatherv[T any](c *Comm, send, recv []T, counts, displs []int) error {
	return c.Bufs().NeighborAllgatherv(BufOf(send), BufOf(recv), counts, displs)
}

// IneighborAllgatherv starts a NeighborAllgatherv; the buffers and vectors
// belong to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.1.
func IneighborAllgatherv[T any](c *Comm, send, recv []T, counts, displs []int) Request {
	return c.Bufs().IneighborAllgatherv(BufOf(send), BufOf(recv), counts, displs)
}

// NeighborAllgathervInit prepares a NeighborAllgatherv; the vectors belong to
// the library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.1.
func NeighborAllgathervInit[T any](c *Comm, send, recv []T, counts, displs []int) *Persistent {
	return c.Bufs().NeighborAllgathervInit(BufOf(send), BufOf(recv), counts, displs)
}

// NeighborAllgatherv is [NeighborAllgatherv] for Bufs.
func (x Bufs) NeighborAllgatherv(send, recv Buf, counts, displs []int) error {
	return new(call).neighborAllgatherv(x.c, send, recv, counts, displs).run()
}

// IneighborAllgatherv is [IneighborAllgatherv] for Bufs.
func (x Bufs) IneighborAllgatherv(send, recv Buf, counts, displs []int) Request {
	return new(call).neighborAllgatherv(x.c, send, recv, counts, displs).start()
}

// NeighborAllgathervInit is [NeighborAllgathervInit] for Bufs.
func (x Bufs) NeighborAllgathervInit(send, recv Buf, counts, displs []int) *Persistent {
	return new(call).neighborAllgatherv(x.c, send, recv, counts, displs).prepare()
}

// NeighborAlltoall sends the i-th block of send to the i-th destination of the
// caller in the communicator's topology, and receives a block of each source in
// recv, in the topology's order. All blocks have one length. What is sent in
// the negative direction of a Cartesian dimension arrives from the positive
// one. The buffers must not overlap; they may be reused at return. Collective.
// MPI 4.1 section 8.6.2.
func NeighborAlltoall[T any](c *Comm, send, recv []T) error {
	return c.Bufs().NeighborAlltoall(BufOf(send), BufOf(recv))
}

// IneighborAlltoall starts a NeighborAlltoall; the buffers belong to the
// library until the request is complete. Collective. MPI 4.1 section 8.7.2.
func IneighborAlltoall[T any](c *Comm, send, recv []T) Request {
	return c.Bufs().IneighborAlltoall(BufOf(send), BufOf(recv))
}

// NeighborAlltoallInit prepares a NeighborAlltoall. Collective, see
// [Comm.BarrierInit]. MPI 4.1 section 8.8.2.
func NeighborAlltoallInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.Bufs().NeighborAlltoallInit(BufOf(send), BufOf(recv))
}

// NeighborAlltoall is [NeighborAlltoall] for Bufs.
func (x Bufs) NeighborAlltoall(send, recv Buf) error {
	return new(call).neighborAlltoall(x.c, send, recv).run()
}

// IneighborAlltoall is [IneighborAlltoall] for Bufs.
func (x Bufs) IneighborAlltoall(send, recv Buf) Request {
	return new(call).neighborAlltoall(x.c, send, recv).start()
}

// NeighborAlltoallInit is [NeighborAlltoallInit] for Bufs.
func (x Bufs) NeighborAlltoallInit(send, recv Buf) *Persistent {
	return new(call).neighborAlltoall(x.c, send, recv).prepare()
}

// NeighborAlltoallv is NeighborAlltoall of blocks of different lengths, given
// for destinations and sources as for Alltoallv. Collective.
// MPI 4.1 section 8.6.2.
func NeighborAlltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return c.Bufs().NeighborAlltoallv(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// IneighborAlltoallv starts a NeighborAlltoallv; the buffers and vectors belong
// to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.2.
func IneighborAlltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) Request {
	return c.Bufs().IneighborAlltoallv(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// NeighborAlltoallvInit prepares a NeighborAlltoallv; the vectors belong to the
// library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.2.
func NeighborAlltoallvInit[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) *Persistent {
	return c.Bufs().NeighborAlltoallvInit(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// NeighborAlltoallv is [NeighborAlltoallv] for Bufs.
func (x Bufs) NeighborAlltoallv(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) error {
	return new(call).neighborAlltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// IneighborAlltoallv is [IneighborAlltoallv] for Bufs.
func (x Bufs) IneighborAlltoallv(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) Request {
	return new(call).neighborAlltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// NeighborAlltoallvInit is [NeighborAlltoallvInit] for Bufs.
func (x Bufs) NeighborAlltoallvInit(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) *Persistent {
	return new(call).neighborAlltoallv(x.c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).prepare()
}

// NeighborAlltoallw is NeighborAlltoall of blocks that have a Buf each: send[i]
// goes to the i-th destination, and what comes from the i-th source lands in
// recv[i]. The buffers must not overlap; they may be reused at return.
// Collective. MPI 4.1 section 8.6.2.
func (x Bufs) NeighborAlltoallw(send, recv []Buf) error {
	return new(call).neighborAlltoallw(x.c, send, recv).run()
}

// IneighborAlltoallw starts a NeighborAlltoallw; the buffers and the slices of
// them belong to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.2.
func (x Bufs) IneighborAlltoallw(send, recv []Buf) Request {
	return new(call).neighborAlltoallw(x.c, send, recv).start()
}

// NeighborAlltoallwInit prepares a NeighborAlltoallw; the slices belong to the
// library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.2.
func (x Bufs) NeighborAlltoallwInit(send, recv []Buf) *Persistent {
	return new(call).neighborAlltoallw(x.c, send, recv).prepare()
}

// near starts to build a call among neighbors.
func (a *call) near(c *Comm, kind collectives.Op) (*neighbors, bool) {
	if !a.begin(c, kind) {
		return nil, false
	}
	t := c.core.topo
	switch {
	case t == nil:
		return nil, a.bad(ErrTopology, "communicator without a topology")
	case t.near == nil:
		return nil, a.bad(ErrTopology, "the graph is not symmetric")
	}
	n := t.near
	a.Args.Dests, a.Args.Sources = n.dests, n.sources
	return n, true
}

// regular is the layout of n blocks of Count.
func (a *call) regular(n int) []int64 {
	v := a.vector(n)
	for i := range v {
		v[i] = int64(i) * a.Args.Count
	}
	return v
}

// bySource brings what is in the topology's order into that of sources.
func (a *call) bySource(n *neighbors, v []int64) []int64 {
	if n.blocks == nil {
		return v
	}
	w := a.vector(len(v))
	for i, b := range n.blocks {
		w[i] = v[b]
	}
	return w
}

func (a *call) neighborAllgather(c *Comm, send, recv Buf) *call {
	n, ok := a.near(c, collectives.OpNeighborAllgather)
	if !ok || !a.buffers(send, recv) {
		return a
	}
	if a.Args.Count = a.units(a.In); a.Args.Count == 0 && len(n.dests) == 0 {
		a.Args.Count, ok = a.share(a.Out, len(n.sources), toReceive)
	}
	if ok && a.length(a.Out, times(a.Args.Count, len(n.sources)), toReceive) && a.apart() {
		a.Args.OutDispls = a.bySource(n, a.regular(len(n.sources)))
	}
	return a
}

func (a *call) neighborAllgatherv(c *Comm, send, recv Buf, counts, displs []int) *call {
	n, ok := a.near(c, collectives.OpNeighborAllgatherv)
	if !ok || !a.buffers(send, recv) {
		return a
	}
	a.Args.Count = a.units(a.In)
	if cs, ds, ok := a.blocks(counts, displs, len(n.sources), a.Out, toReceive); ok {
		a.Args.OutCounts, a.Args.OutDispls = a.bySource(n, cs), a.bySource(n, ds)
		a.apart()
	}
	return a
}

func (a *call) neighborAlltoall(c *Comm, send, recv Buf) *call {
	n, ok := a.near(c, collectives.OpNeighborAlltoall)
	if !ok || !a.buffers(send, recv) {
		return a
	}
	in, ok := a.share(a.In, len(n.dests), toSend)
	if !ok {
		return a
	}
	out, ok := a.share(a.Out, len(n.sources), toReceive)
	if !ok || len(n.dests) > 0 && len(n.sources) > 0 && !a.length(a.Out, times(in, len(n.sources)), toReceive) || !a.apart() {
		return a
	}
	a.Args.Count = max(in, out)
	a.Args.InDispls, a.Args.OutDispls = a.regular(len(n.dests)), a.bySource(n, a.regular(len(n.sources)))
	return a
}

func (a *call) neighborAlltoallv(c *Comm, send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) *call {
	n, ok := a.near(c, collectives.OpNeighborAlltoallv)
	if ok && a.buffers(send, recv) && a.pairs(sendCounts, sendDispls, len(n.dests), recvCounts, recvDispls, len(n.sources)) && a.apart() {
		a.Args.OutCounts, a.Args.OutDispls = a.bySource(n, a.Args.OutCounts), a.bySource(n, a.Args.OutDispls)
	}
	return a
}

func (a *call) neighborAlltoallw(c *Comm, send, recv []Buf) *call {
	n, ok := a.near(c, collectives.OpNeighborAlltoallv)
	if !ok {
		return a
	}
	a.Op = opNeighborAlltoallw
	if n.blocks != nil && len(recv) == len(n.blocks) {
		ordered := a.bufs(len(recv))
		for i, b := range n.blocks {
			ordered[i] = recv[b]
		}
		recv = ordered
	}
	a.manyBuffers(send, len(n.dests), recv, len(n.sources))
	return a
}
