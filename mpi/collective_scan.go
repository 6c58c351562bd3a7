// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
)

// Scan combines, element by element with op, the send buffers of the ranks up
// to the caller into its recv. Both have one length, equal on all ranks. In
// place: send and recv are the same slice. The buffers may be reused at return.
// Collective. MPI 4.1 section 6.11.1.
func Scan[T any](c *Comm, send, recv []T, op Op) error {
	return c.Bufs().Scan(BufOf(send), BufOf(recv), op)
}

// Iscan starts a Scan; the buffers belong to the library until the request is
// complete. Collective. MPI 4.1 section 6.12.11.
func Iscan[T any](c *Comm, send, recv []T, op Op) Request {
	return c.Bufs().Iscan(BufOf(send), BufOf(recv), op)
}

// ScanInit prepares a Scan. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.11.
func ScanInit[T any](c *Comm, send, recv []T, op Op) *Persistent {
	return c.Bufs().ScanInit(BufOf(send), BufOf(recv), op)
}

// Scan is [Scan] for Bufs.
func (x Bufs) Scan(send, recv Buf, op Op) error {
	return new(call).scan(x.c, send, recv, &op).run()
}

// Iscan is [Iscan] for Bufs.
func (x Bufs) Iscan(send, recv Buf, op Op) Request {
	return new(call).scan(x.c, send, recv, &op).start()
}

// ScanInit is [ScanInit] for Bufs.
func (x Bufs) ScanInit(send, recv Buf, op Op) *Persistent {
	return new(call).scan(x.c, send, recv, &op).prepare()
}

// Exscan is Scan without the caller's own contribution; on rank 0 recv is left
// as it is. Collective. MPI 4.1 section 6.11.2.
func Exscan[T any](c *Comm, send, recv []T, op Op) error {
	return c.Bufs().Exscan(BufOf(send), BufOf(recv), op)
}

// Iexscan starts an Exscan; the buffers belong to the library until the request
// is complete. Collective. MPI 4.1 section 6.12.12.
func Iexscan[T any](c *Comm, send, recv []T, op Op) Request {
	return c.Bufs().Iexscan(BufOf(send), BufOf(recv), op)
}

// ExscanInit prepares an Exscan. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.12.
func ExscanInit[T any](c *Comm, send, recv []T, op Op) *Persistent {
	return c.Bufs().ExscanInit(BufOf(send), BufOf(recv), op)
}

// Exscan is [Exscan] for Bufs.
func (x Bufs) Exscan(send, recv Buf, op Op) error {
	return new(call).exscan(x.c, send, recv, &op).run()
}

// Iexscan is [Iexscan] for Bufs.
func (x Bufs) Iexscan(send, recv Buf, op Op) Request {
	return new(call).exscan(x.c, send, recv, &op).start()
}

// ExscanInit is [ExscanInit] for Bufs.
func (x Bufs) ExscanInit(send, recv Buf, op Op) *Persistent {
	return new(call).exscan(x.c, send, recv, &op).prepare()
}

// ScanOne is Scan of one element, which stays off the heap. Collective.
// MPI 4.1 section 6.11.1.
func ScanOne[T any](c *Comm, x T, op Op) (T, error) {
	return one(c, x, func(in, out Buf) error { return c.Bufs().Scan(in, out, op) })
}

// ExscanOne is Exscan of one element, which stays off the heap: the zero value
// on rank 0. Collective. MPI 4.1 section 6.11.2.
func ExscanOne[T any](c *Comm, x T, op Op) (T, error) {
	return one(c, x, func(in, out Buf) error { return c.Bufs().Exscan(in, out, op) })
}

func (a *call) scan(c *Comm, send, recv Buf, op *Op) *call {
	return a.alike(c, collectives.OpScan, send, recv, op)
}

func (a *call) exscan(c *Comm, send, recv Buf, op *Op) *call {
	return a.alike(c, collectives.OpExscan, send, recv, op)
}
