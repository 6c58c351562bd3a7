// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opAttach fault.Call = "rma.Attach"
	opDetach fault.Call = "Window.Detach"
)

// Address is an offset in a dynamic window: of the first byte of attached
// memory, those after it follow. The rank that attaches the memory tells the
// others the address, which is used for no other memory of the window later.
type Address = int

// Attach makes mem accessible in a dynamic window, to all ranks that learn its
// address, until Detach or Free. T holds no pointers. Local.
// MPI 4.1 section 12.2.4.
func Attach[T any](w *Window, mem []T) (Address, error) {
	c, err := w.usable(opAttach)
	if err != nil {
		return 0, err
	}
	if err := c.dynamic(opAttach); err != nil {
		return 0, err
	}
	if bad := typeError[T](); bad != nil {
		return 0, fail(c.comm, bad.class, opAttach, mpi.ProcNull, -1, -1, "", bad.why)
	}
	b := bytesOf(mem)
	at, err := c.directory.attach(c, b)
	if bad, ok := errors.AsType[*wrong](err); ok {
		return 0, fail(c.comm, bad.class, opAttach, mpi.ProcNull, int64(len(b)), -1, "bytes", bad.why)
	}
	return at, err
}

// Detach ends the access to memory that was attached at an address. No access
// to it may be under way. Local. MPI 4.1 section 12.2.4.
func (w *Window) Detach(at Address) error {
	c, err := w.usable(opDetach)
	if err != nil {
		return err
	}
	if err := c.dynamic(opDetach); err != nil {
		return err
	}
	err = c.directory.detach(c, at)
	if bad, ok := errors.AsType[*wrong](err); ok {
		return fail(c.comm, bad.class, opDetach, mpi.ProcNull, -1, -1, "", bad.why)
	}
	return err
}

// dynamic is an error in a window of another flavor.
func (c *core) dynamic(op fault.Call) error {
	if c.flavor == FlavorDynamic {
		return nil
	}
	return fail(c.comm, mpi.ErrRMAFlavor, op, mpi.ProcNull, -1, -1, "", fmt.Errorf("the window was made by %v", c.flavor))
}

// placeAttached is place in a dynamic window: bytes [lo, hi) from an address.
func (w *Window) placeAttached(op fault.Call, t *target, at, lo, hi int64, ok bool, dt *dtype.Type, count int64) (place, error) {
	c := w.core
	p, err := piece{}, error(nil)
	if ok && at > 0 && lo >= -at && hi <= maxAddress-at {
		p, ok, err = t.pieces.find(w, op, t, at+lo, at+hi)
	} else {
		ok = false
	}
	switch {
	case err != nil:
		return place{}, err
	case !ok:
		return place{}, fail(c.comm, mpi.ErrRMARange, op, t.rank, hi-lo, -1, "bytes", fmt.Errorf(
			"they begin %d bytes from address %d, where no memory of this length is attached", lo, at))
	}
	return place{p.Target, c, t, t.rank, remote.Layout{Off: at - p.at, Type: dt, Count: count}, p.Mark()}, nil
}

// flushPieces completes all accesses to a rank's attached memory.
func (w *Window) flushPieces(op fault.Call, t *target, how completion) error {
	for _, p := range t.pieces.pending(how) {
		if f := how.flush(p.Target, w.user); f != nil {
			return w.core.fault(op, t.rank, f)
		}
	}
	return nil
}
