// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/mpi"
)

// usable is the window of a call that may go on, or why it may not.
func (w *Window) usable(op fault.Call) (*core, error) {
	c, err := w.alive(op)
	if err == nil {
		err = w.expired(op)
	}
	return c, err
}

// alive is the window of a call, or why it has none.
func (w *Window) alive(op fault.Call) (*core, error) {
	var none *mpi.Comm
	switch {
	case w == nil:
		return nil, fail(none, mpi.ErrWin, op, mpi.ProcNull, -1, -1, "", errors.New("window is nil"))
	case w.core.freed.Load():
		return nil, w.core.gone(op)
	}
	return w.core, nil
}

// expired is the error of a call whose context has ended before it began.
func (w *Window) expired(op fault.Call) error {
	if w.user == nil || w.user.Err() == nil {
		return nil
	}
	return fail(w.core.comm, mpi.ErrCancelled, op, mpi.ProcNull, -1, -1, "", context.Cause(w.user))
}

var errFreed = errors.New("it was freed")

// gone is the error of a call on a window that was freed.
func (c *core) gone(op fault.Call) error {
	return fail(c.comm, mpi.ErrWin, op, mpi.ProcNull, -1, -1, "", errFreed)
}

func (c *core) checkRank(op fault.Call, rank int) error {
	if rank >= 0 && rank < c.size {
		return nil
	}
	return fail(c.comm, mpi.ErrRank, op, mpi.ProcNull, -1, -1, "", fmt.Errorf("rank %d of %d", rank, c.size))
}

// fail is an error of a call on comm, which may be nil. Numbers that say nothing
// are -1.
func fail(comm *mpi.Comm, class mpi.Class, op fault.Call, peer int, got, want int64, unit string, why error) error {
	return comm.Core().Fail(fault.Class(class), op, peer, got, want, unit, why)
}

// fault is the error of a call that the layers below could not do; nil if they
// could.
func (c *core) fault(op fault.Call, rank int, f *fault.Fault) error {
	if f == nil {
		return nil
	}
	return c.comm.Core().Fault(op, rank, f)
}
