// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/internal/host/mem"
)

// Bcast copies buf of rank root to buf of all others; lengths are equal on all
// ranks. buf may be reused at return. Collective. MPI 4.1 section 6.4.
func Bcast[T any](c *Comm, buf []T, root int) error {
	return c.Bufs().Bcast(BufOf(buf), root)
}

// Ibcast starts a Bcast; the buffers belong to the library until the request is
// complete. Collective. MPI 4.1 section 6.12.2.
func Ibcast[T any](c *Comm, buf []T, root int) Request {
	return c.Bufs().Ibcast(BufOf(buf), root)
}

// BcastInit prepares a Bcast. Collective, see [Comm.BarrierInit].
// MPI 4.1 section 6.13.2.
func BcastInit[T any](c *Comm, buf []T, root int) *Persistent {
	return c.Bufs().BcastInit(BufOf(buf), root)
}

// Bcast is [Bcast] for Bufs.
func (x Bufs) Bcast(buf Buf, root int) error {
	if made, err := x.c.briefBcast(buf, root); made {
		return err
	}
	return new(call).bcast(x.c, buf, root).run()
}

// Ibcast is [Ibcast] for Bufs.
func (x Bufs) Ibcast(buf Buf, root int) Request {
	return new(call).bcast(x.c, buf, root).start()
}

// BcastInit is [BcastInit] for Bufs.
func (x Bufs) BcastInit(buf Buf, root int) *Persistent {
	return new(call).bcast(x.c, buf, root).prepare()
}

// BcastOne returns root's x on every rank, and keeps it off the heap.
// Collective. MPI 4.1 section 6.4.
func BcastOne[T any](c *Comm, x T, root int) (T, error) {
	return one(c, x, func(in, out Buf) error {
		if in.Err() == nil {
			mem.Copy(out.b.Slice(), in.b.Slice())
		}
		return c.Bufs().Bcast(out, root)
	})
}

func (a *call) bcast(c *Comm, buf Buf, root int) *call {
	if a.begin(c, collectives.OpBcast) && a.root(root) && a.buffers(Buf{}, buf.at(a.isRoot() || a.isLeaf())) {
		a.Args.Count = a.units(a.Out)
	}
	return a
}
