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
	return c.NeighborAllgatherBuf(BufOf(send), BufOf(recv))
}

// IneighborAllgather starts a NeighborAllgather; the buffers belong to the
// library until the request is complete. Collective. MPI 4.1 section 8.7.1.
func IneighborAllgather[T any](c *Comm, send, recv []T) Request {
	return c.IneighborAllgatherBuf(BufOf(send), BufOf(recv))
}

// NeighborAllgatherInit prepares a NeighborAllgather. Collective, see
// [Comm.BarrierInit]. MPI 4.1 section 8.8.1.
func NeighborAllgatherInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.NeighborAllgatherInitBuf(BufOf(send), BufOf(recv))
}

// NeighborAllgatherBuf is NeighborAllgather for Bufs.
func (c *Comm) NeighborAllgatherBuf(send, recv Buf) error {
	return new(call).neighborAllgather(c, send, recv).run()
}

// IneighborAllgatherBuf is IneighborAllgather for Bufs.
func (c *Comm) IneighborAllgatherBuf(send, recv Buf) Request {
	return new(call).neighborAllgather(c, send, recv).start()
}

// NeighborAllgatherInitBuf is NeighborAllgatherInit for Bufs.
func (c *Comm) NeighborAllgatherInitBuf(send, recv Buf) *Persistent {
	return new(call).neighborAllgather(c, send, recv).prepare()
}

// NeighborAllgatherv is NeighborAllgather of blocks of different lengths:
// counts[i] elements of the i-th source land at displs[i] of recv (nil: side by
// side). Collective. MPI 4.1 section 8.6.1.
func NeighborAllgatherv[T any](c *Comm, send, recv []T, counts, displs []int) error {
	return c.NeighborAllgathervBuf(BufOf(send), BufOf(recv), counts, displs)
}

// IneighborAllgatherv starts a NeighborAllgatherv; the buffers and vectors
// belong to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.1.
func IneighborAllgatherv[T any](c *Comm, send, recv []T, counts, displs []int) Request {
	return c.IneighborAllgathervBuf(BufOf(send), BufOf(recv), counts, displs)
}

// NeighborAllgathervInit prepares a NeighborAllgatherv; the vectors belong to
// the library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.1.
func NeighborAllgathervInit[T any](c *Comm, send, recv []T, counts, displs []int) *Persistent {
	return c.NeighborAllgathervInitBuf(BufOf(send), BufOf(recv), counts, displs)
}

// NeighborAllgathervBuf is NeighborAllgatherv for Bufs.
func (c *Comm) NeighborAllgathervBuf(send, recv Buf, counts, displs []int) error {
	return new(call).neighborAllgatherv(c, send, recv, counts, displs).run()
}

// IneighborAllgathervBuf is IneighborAllgatherv for Bufs.
func (c *Comm) IneighborAllgathervBuf(send, recv Buf, counts, displs []int) Request {
	return new(call).neighborAllgatherv(c, send, recv, counts, displs).start()
}

// NeighborAllgathervInitBuf is NeighborAllgathervInit for Bufs.
func (c *Comm) NeighborAllgathervInitBuf(send, recv Buf, counts, displs []int) *Persistent {
	return new(call).neighborAllgatherv(c, send, recv, counts, displs).prepare()
}

// NeighborAlltoall sends the i-th block of send to the i-th destination of the
// caller in the communicator's topology, and receives a block of each source in
// recv, in the topology's order. All blocks have one length. What is sent in
// the negative direction of a Cartesian dimension arrives from the positive
// one. The buffers must not overlap; they may be reused at return. Collective.
// MPI 4.1 section 8.6.2.
func NeighborAlltoall[T any](c *Comm, send, recv []T) error {
	return c.NeighborAlltoallBuf(BufOf(send), BufOf(recv))
}

// IneighborAlltoall starts a NeighborAlltoall; the buffers belong to the
// library until the request is complete. Collective. MPI 4.1 section 8.7.2.
func IneighborAlltoall[T any](c *Comm, send, recv []T) Request {
	return c.IneighborAlltoallBuf(BufOf(send), BufOf(recv))
}

// NeighborAlltoallInit prepares a NeighborAlltoall. Collective, see
// [Comm.BarrierInit]. MPI 4.1 section 8.8.2.
func NeighborAlltoallInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.NeighborAlltoallInitBuf(BufOf(send), BufOf(recv))
}

// NeighborAlltoallBuf is NeighborAlltoall for Bufs.
func (c *Comm) NeighborAlltoallBuf(send, recv Buf) error {
	return new(call).neighborAlltoall(c, send, recv).run()
}

// IneighborAlltoallBuf is IneighborAlltoall for Bufs.
func (c *Comm) IneighborAlltoallBuf(send, recv Buf) Request {
	return new(call).neighborAlltoall(c, send, recv).start()
}

// NeighborAlltoallInitBuf is NeighborAlltoallInit for Bufs.
func (c *Comm) NeighborAlltoallInitBuf(send, recv Buf) *Persistent {
	return new(call).neighborAlltoall(c, send, recv).prepare()
}

// NeighborAlltoallv is NeighborAlltoall of blocks of different lengths, given
// for destinations and sources as for Alltoallv. Collective.
// MPI 4.1 section 8.6.2.
func NeighborAlltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return c.NeighborAlltoallvBuf(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// IneighborAlltoallv starts a NeighborAlltoallv; the buffers and vectors belong
// to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.2.
func IneighborAlltoallv[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) Request {
	return c.IneighborAlltoallvBuf(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// NeighborAlltoallvInit prepares a NeighborAlltoallv; the vectors belong to the
// library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.2.
func NeighborAlltoallvInit[T any](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) *Persistent {
	return c.NeighborAlltoallvInitBuf(BufOf(send), sendCounts, sendDispls, BufOf(recv), recvCounts, recvDispls)
}

// NeighborAlltoallvBuf is NeighborAlltoallv for Bufs.
func (c *Comm) NeighborAlltoallvBuf(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) error {
	return new(call).neighborAlltoallv(c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// IneighborAlltoallvBuf is IneighborAlltoallv for Bufs.
func (c *Comm) IneighborAlltoallvBuf(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) Request {
	return new(call).neighborAlltoallv(c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// NeighborAlltoallvInitBuf is NeighborAlltoallvInit for Bufs.
func (c *Comm) NeighborAlltoallvInitBuf(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) *Persistent {
	return new(call).neighborAlltoallv(c, send, sendCounts, sendDispls, recv, recvCounts, recvDispls).prepare()
}

// NeighborAlltoallw is NeighborAlltoall of blocks that have a Buf each: send[i]
// goes to the i-th destination, and what comes from the i-th source lands in
// recv[i]. The buffers must not overlap; they may be reused at return.
// Collective. MPI 4.1 section 8.6.2.
func (c *Comm) NeighborAlltoallw(send, recv []Buf) error {
	return new(call).neighborAlltoallw(c, send, recv).run()
}

// IneighborAlltoallw starts a NeighborAlltoallw; the buffers and the slices of
// them belong to the library until the request is complete. Collective.
// MPI 4.1 section 8.7.2.
func (c *Comm) IneighborAlltoallw(send, recv []Buf) Request {
	return new(call).neighborAlltoallw(c, send, recv).start()
}

// NeighborAlltoallwInit prepares a NeighborAlltoallw; the slices belong to the
// library until Free. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 8.8.2.
func (c *Comm) NeighborAlltoallwInit(send, recv []Buf) *Persistent {
	return new(call).neighborAlltoallw(c, send, recv).prepare()
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
	if cs, ds, ok := a.blocks(counts, displs, len(n.sources), a.Out, toReceive); ok && a.apart() {
		a.Args.OutCounts, a.Args.OutDispls = a.bySource(n, cs), a.bySource(n, ds)
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
