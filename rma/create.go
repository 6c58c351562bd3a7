// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opCreate        fault.Call = "rma.Create"
	opAllocate      fault.Call = "rma.Allocate"
	opCreateDynamic fault.Call = "rma.CreateDynamic"
	opFree          fault.Call = "Window.Free"
)

// Create makes a window of mem, which every rank gives of its own length and
// element type; T holds no pointers. mem must be used as a window's memory
// until Free. Memory that Allocate gives is reached faster. Collective over
// comm, an intracommunicator: what one rank cannot do is an error on all.
// MPI 4.1 section 12.2.1.
func Create[T any](comm *mpi.Comm, mem []T) (*Window, error) {
	return CreateWithInfo(comm, mem, nil)
}

// CreateWithInfo is Create with hints, which the window keeps; see SetInfo.
// MPI 4.1 section 12.2.1.
func CreateWithInfo[T any](comm *mpi.Comm, mem []T, info *mpi.Info) (*Window, error) {
	return create(comm, opCreate, FlavorCreate, sizeOf[T](), typeError[T](), info, nil, func(s *remote.Space, words int) (*remote.Region, error) {
		return s.Expose(bytesOf(mem), words)
	})
}

// Allocate makes a window of n elements, all zero, on each rank; n may differ.
// Memory returns the caller's, which begins at a multiple of 128 bytes. It is
// gone after Free. Collective over comm, an intracommunicator: what one rank
// cannot do is an error on all.
// MPI 4.1 section 12.2.2.
func Allocate[T any](comm *mpi.Comm, n int) (*Window, error) {
	return AllocateWithInfo[T](comm, n, nil)
}

// AllocateWithInfo is Allocate with hints, which the window keeps; see SetInfo.
// The memory begins at a multiple of mpi_minimum_memory_alignment, a power of
// two up to 2 MiB; beyond a page it is not mapped by others, but copied from and
// to. MPI 4.1 section 12.2.2.
func AllocateWithInfo[T any](comm *mpi.Comm, n int, info *mpi.Info) (*Window, error) {
	unit := sizeOf[T]()
	return create(comm, opAllocate, FlavorAllocate, unit, cmp.Or(typeError[T](), sizeError(n, unit)), info, nil, func(s *remote.Space, words int) (*remote.Region, error) {
		return s.AllocateAligned(int64(n)*unit, words, alignment(info, maxAlignment))
	})
}

// CreateDynamic makes a window without memory, see Attach. Collective over
// comm, an intracommunicator. MPI 4.1 section 12.2.4.
func CreateDynamic(comm *mpi.Comm) (*Window, error) {
	return CreateDynamicWithInfo(comm, nil)
}

// CreateDynamicWithInfo is CreateDynamic with hints, which the window keeps; see
// SetInfo. MPI 4.1 section 12.2.4.
func CreateDynamicWithInfo(comm *mpi.Comm, info *mpi.Info) (*Window, error) {
	return create(comm, opCreateDynamic, FlavorDynamic, 1, nil, info, nil, func(s *remote.Space, words int) (*remote.Region, error) {
		return s.Allocate(directoryBytes, words)
	})
}

// wrong is an error in the arguments of one rank.
type wrong struct {
	class mpi.Class
	why   error
}

func (x *wrong) Error() string { return x.why.Error() }

// wrongOf is the error of one rank that could not make its part.
func wrongOf(err error) *wrong {
	if x, ok := errors.AsType[*wrong](err); ok {
		return x
	}
	return &wrong{mpi.ErrNoMemory, err}
}

func sizeError(n int, unit int64) *wrong {
	if n < 0 || unit > 0 && int64(n) > math.MaxInt64/unit {
		return &wrong{mpi.ErrSize, fmt.Errorf("%d elements of %d bytes", n, unit)}
	}
	return nil
}

func typeError[T any]() *wrong {
	t := mpi.TypeOf[T]().Core()
	switch {
	case t.Err != nil:
		return &wrong{mpi.ErrType, t.Err}
	case t.Size == 0 || t.Size > math.MaxInt32:
		return &wrong{mpi.ErrType, fmt.Errorf("elements of type %s have %d bytes", t.Name, t.Size)}
	}
	return nil
}

// create makes a window, with the memory of all its ranks if it is one of
// AllocateShared: one exchange among all ranks.
func create(comm *mpi.Comm, op fault.Call, flavor Flavor, unit int64, bad *wrong, info *mpi.Info, all *shared, alloc func(*remote.Space, int) (*remote.Region, error)) (*Window, error) {
	if err := comm.Core().Intra(op); err != nil {
		return nil, err
	}
	e, ctx := comm.Core().Comm().Engine, comm.Core().Comm().Ctx
	c := &core{engine: e, space: remote.Of(e), flavor: flavor, unit: unit, rank: comm.Rank(), size: comm.Size(), words: layWords(comm.Size()), shared: all}
	c.window.core = c
	mine := entry{flavor: flavor, offer: comm.Core().Comm().OfferID(), unit: unit}
	var desc remote.Desc
	if bad == nil {
		var err error
		if c.region, err = alloc(c.space, c.words.total); err != nil {
			bad = wrongOf(err)
		} else {
			c.region.SetMembers(ctx.Members)
			desc, mine.bytes = c.region.Desc(), int64(len(c.region.Mem()))
		}
	}
	if bad != nil {
		mine.wrong = bad.class
	}
	if flavor == FlavorDynamic {
		mine.bytes = 0
		c.directory = new(directory)
	}
	if err := c.exchange(comm, op, &mine, desc); err != nil {
		c.discard(true)
		return nil, err
	}
	if err := c.check(comm, op, bad); err != nil {
		c.discard(false)
		// What others have allocated is there for the next window only when they
		// have given it back.
		_ = comm.Barrier()
		return nil, err
	}
	if c.targets = c.few[:]; c.size > len(c.few) {
		c.targets = make([]atomic.Pointer[target], c.size)
	}
	c.targets = c.targets[:c.size]
	if info.Len() > 0 {
		c.comm.SetInfo(info)
	}
	return &c.window, nil
}

// exchange tells the others of the caller's part, and makes the window's
// communicator.
func (c *core) exchange(comm *mpi.Comm, op fault.Call, mine *entry, desc remote.Desc) error {
	c.table = newTable(c.space, c.size)
	at := c.table.of(c.rank)
	mine.put(at, desc)
	err := mpi.Allgather(comm, at, c.table.b)
	if err != nil {
		return err
	}
	first, err := parseEntry(c.table.of(0))
	if err != nil {
		return fail(comm, mpi.ErrMismatch, op, 0, -1, -1, "", err)
	}
	in := comm.Core().Comm()
	agreed, f := in.AgreeOn(op, first.offer)
	if f != nil {
		return comm.Core().Fault(op, mpi.ProcNull, f)
	}
	made, err := comm.Core().Make(agreed, in.Groups(), comm.Name()+"/window")
	if err != nil {
		return err
	}
	c.comm = made.(*mpi.Comm)
	if c.comm.ErrorHandler() != nil {
		c.comm.SetErrorHandler(nil)
	}
	c.ctx = c.comm.Core().Comm().Ctx
	return nil
}

// check compares what the ranks have said.
func (c *core) check(comm *mpi.Comm, op fault.Call, bad *wrong) error {
	if bad != nil {
		return fail(comm, bad.class, op, mpi.ProcNull, -1, -1, "", bad.why)
	}
	for r := range c.size {
		e, err := parseEntry(c.table.of(r))
		switch {
		case err != nil:
			return fail(comm, mpi.ErrMismatch, op, r, -1, -1, "", err)
		case e.wrong != 0:
			return fail(comm, mpi.ErrAborted, op, r, -1, -1, "", e.wrong)
		case e.flavor != c.flavor:
			return fail(comm, mpi.ErrMismatch, op, r, -1, -1, "", fmt.Errorf("rank %d calls %v, rank %d %v", c.rank, c.flavor, r, e.flavor))
		}
	}
	return nil
}

// discard gives up what a window was to consist of. lost: others may think that
// there is one; those who have seen what all ranks said agree that there is none.
func (c *core) discard(lost bool) {
	drop(c.region, lost)
	if c.shared != nil {
		c.shared.close(lost)
	}
	if c.comm != nil {
		c.comm.Free()
	}
}

// drop gives up memory of the caller, if there is any. lost: others may still
// use it.
func drop(r *remote.Region, lost bool) {
	switch {
	case r == nil:
	case lost:
		r.Abandon()
	default:
		r.Close()
	}
}

// Free ends the window on all ranks: it completes what was started, waits until
// every rank has called it, and gives up the memory that the window was made
// with; slices that Memory and SharedQuery gave must not be used any more. An
// epoch of the caller that is open, but for one of Fence, is ErrRMASync, and the
// window stays, as it does on the other ranks, where Free is ErrAborted; so it does if w's
// context ends while accesses of the caller's other goroutines are under way. Attributes are deleted first. With another error the window is
// freed nevertheless; if a rank has failed, or w's context ends before all
// have called Free, memory that the window allocated is never used again.
// Collective. MPI 4.1 section 12.2.5.
func (w *Window) Free() error {
	c, err := w.alive(opFree)
	if err != nil {
		return err
	}
	if err := c.epochs.collective(w, opFree, nil); err != nil {
		return err
	}
	if err := w.quiesce(opFree); err != nil {
		w.refuse(opFree)
		c.epochs.over()
		return err
	}
	err = w.settle(opFree, atTarget)
	if errors.Is(err, mpi.ErrClosed) { // who closed it knows why
		err = nil
	}
	ends, err := w.meet(opFree, err)
	if err != nil && !ends {
		c.resume()
		c.epochs.over()
		return err
	}
	return errors.Join(err, c.end(err != nil))
}

// end gives up a window. lost: others may still use its memory.
func (c *core) end(lost bool) error {
	c.reachMu.Lock()
	c.freed.Store(true)
	for r := range c.targets {
		if t := c.targets[r].Swap(nil); t != nil {
			if t.pieces != nil {
				t.pieces.close()
			}
			t.Close()
		}
	}
	c.distant = nil
	c.reachMu.Unlock()
	c.space.Tables.Put(c.table)
	if c.directory != nil {
		c.directory.close(lost)
	}
	drop(c.region, lost)
	if c.shared != nil {
		c.shared.close(lost)
	}
	return c.comm.Free()
}
