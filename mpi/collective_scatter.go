// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
)

// Scatter gives each rank its block of send of rank root: there len(send) is
// Size times len(recv), which is one length on all ranks; elsewhere send is not
// used and may be nil. In place, at the root: recv is the root's block of send.
// The buffers may be reused at return. Collective. MPI 4.1 section 6.6.
func Scatter[T any](c *Comm, send, recv []T, root int) error {
	return c.Bufs().Scatter(BufOf(send), BufOf(recv), root)
}

// Iscatter starts a Scatter; the buffers belong to the library until the
// request is complete. Collective. MPI 4.1 section 6.12.4.
func Iscatter[T any](c *Comm, send, recv []T, root int) Request {
	return c.Bufs().Iscatter(BufOf(send), BufOf(recv), root)
}

// ScatterInit prepares a Scatter. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.4.
func ScatterInit[T any](c *Comm, send, recv []T, root int) *Persistent {
	return c.Bufs().ScatterInit(BufOf(send), BufOf(recv), root)
}

// Scatter is [Scatter] for Bufs.
func (x Bufs) Scatter(send, recv Buf, root int) error {
	return new(call).scatter(x.c, send, recv, root).run()
}

// Iscatter is [Iscatter] for Bufs.
func (x Bufs) Iscatter(send, recv Buf, root int) Request {
	return new(call).scatter(x.c, send, recv, root).start()
}

// ScatterInit is [ScatterInit] for Bufs.
func (x Bufs) ScatterInit(send, recv Buf, root int) *Persistent {
	return new(call).scatter(x.c, send, recv, root).prepare()
}

// Scatterv is Scatter of blocks of different lengths: at the root, the block of
// rank i is the counts[i] elements at displs[i] of send (nil: side by side).
// Elsewhere send, counts and displs are not used and may be nil. Collective.
// MPI 4.1 section 6.6.
func Scatterv[T any](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return c.Bufs().Scatterv(BufOf(send), counts, displs, BufOf(recv), root)
}

// Iscatterv starts a Scatterv; the buffers and vectors belong to the library
// until the request is complete. Collective. MPI 4.1 section 6.12.4.
func Iscatterv[T any](c *Comm, send []T, counts, displs []int, recv []T, root int) Request {
	return c.Bufs().Iscatterv(BufOf(send), counts, displs, BufOf(recv), root)
}

// ScattervInit prepares a Scatterv; the vectors belong to the library until
// Free. Collective, see [Comm.BarrierInit]. MPI 4.1 section 6.13.4.
func ScattervInit[T any](c *Comm, send []T, counts, displs []int, recv []T, root int) *Persistent {
	return c.Bufs().ScattervInit(BufOf(send), counts, displs, BufOf(recv), root)
}

// Scatterv is [Scatterv] for Bufs.
func (x Bufs) Scatterv(send Buf, counts, displs []int, recv Buf, root int) error {
	return new(call).scatterv(x.c, send, counts, displs, recv, root).run()
}

// Iscatterv is [Iscatterv] for Bufs.
func (x Bufs) Iscatterv(send Buf, counts, displs []int, recv Buf, root int) Request {
	return new(call).scatterv(x.c, send, counts, displs, recv, root).start()
}

// ScattervInit is [ScattervInit] for Bufs.
func (x Bufs) ScattervInit(send Buf, counts, displs []int, recv Buf, root int) *Persistent {
	return new(call).scatterv(x.c, send, counts, displs, recv, root).prepare()
}

func (a *call) scatter(c *Comm, send, recv Buf, root int) *call {
	if a.begin(c, collectives.OpScatter) && a.root(root) && a.buffers(send.at(a.isRoot()), recv.at(a.isLeaf())) {
		a.rootShares(a.Out, a.In, toSend)
	}
	return a
}

func (a *call) scatterv(c *Comm, send Buf, counts, displs []int, recv Buf, root int) *call {
	if a.begin(c, collectives.OpScatterv) && a.root(root) && a.buffers(send.at(a.isRoot()), recv.at(a.isLeaf())) {
		a.rootBlocks(counts, displs, a.Out, a.In, toReceive, toSend)
	}
	return a
}
