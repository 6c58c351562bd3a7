// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/engine"
)

// BarrierInit prepares a Barrier. All ranks call the Inits of a communicator's
// persistent collectives in the same order among its collective calls; Starts
// may come in any order. Collective. MPI 4.1 section 6.13.1.
func (c *Comm) BarrierInit() *Persistent {
	return c.collInit(c.barrier(), nil)
}

// BcastInit prepares a Bcast. Collective, see BarrierInit.
// MPI 4.1 section 6.13.2.
func BcastInit[T any](c *Comm, buf []T, root int) *Persistent {
	return c.collInit(c.bcast(BufOf(buf), root))
}

// AllreduceInit prepares an Allreduce. Collective, see BarrierInit.
// MPI 4.1 section 6.13.8.
func AllreduceInit[T any](c *Comm, send, recv []T, op Op) *Persistent {
	return c.collInit(c.allreduce(BufOf(send), BufOf(recv), &op))
}

// AllgatherInit prepares an Allgather. Collective, see BarrierInit.
// MPI 4.1 section 6.13.5.
func AllgatherInit[T any](c *Comm, send, recv []T) *Persistent {
	return c.collInit(c.allgather(BufOf(send), BufOf(recv)))
}

// AllgathervInit prepares an Allgatherv; counts and displs belong to the
// library until Free. Collective, see BarrierInit. MPI 4.1 section 6.13.5.
func AllgathervInit[T any](c *Comm, send, recv []T, counts, displs []int) *Persistent {
	return c.collInit(c.allgatherv(BufOf(send), BufOf(recv), counts, displs))
}

// collInit numbers the operation even if its arguments are wrong: the other
// ranks count it too.
func (c *Comm) collInit(a engine.CollArgs, err error) *Persistent {
	p := &Persistent{c: c, op: a.Op, err: err, status: emptyStatus()}
	a.Tag = c.core.ctx.NumberPersistent()
	if err == nil && a.Tag == 0 {
		err = c.argError(ErrArg, a.Op, ProcNull, -1, -1, -1, "",
			fmt.Errorf("the communicator has no number left for a persistent collective: use Dup"))
	}
	if k := c.core.check; k != nil {
		if err == nil {
			_, err = k.agree(c, &a)
		} else {
			c.refuse(&a, err)
		}
	}
	if p.err = err; err != nil {
		return p
	}
	c.choose(&a)
	p.kind, p.coll = collKind, a
	return p
}
