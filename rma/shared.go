// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"
	"fmt"
	"math"

	"gompi/internal/base/fault"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opAllocateShared fault.Call = "rma.AllocateShared"
	opSharedQuery    fault.Call = "rma.SharedQuery"
)

// shared is the memory of all ranks of a window of AllocateShared.
type shared struct {
	whole *remote.Region // of rank 0
	part  *remote.Target // in which the caller's memory is
}

func (s *shared) close(lost bool) {
	if s.part != nil {
		s.part.Close()
	}
	drop(s.whole, lost)
}

// AllocateShared makes a window of n elements, all zero, on each rank; n may
// differ. The ranks are on one host, or it is ErrRMAShared; each can use the
// memory of all directly (SharedQuery). The parts of the ranks lie side by
// side, in their order. Collective over comm, an intracommunicator: what one
// rank cannot do is an error on all. MPI 4.1 section 12.2.3.
func AllocateShared[T any](comm *mpi.Comm, n int) (*Window, error) {
	return AllocateSharedWithInfo[T](comm, n, nil)
}

// AllocateSharedWithInfo is AllocateShared with hints, which the window keeps;
// see SetInfo. If all ranks give alloc_shared_noncontig as "true", the parts of
// the ranks do not lie side by side: each begins on a cache line of its own, so
// that ranks which store in their parts do not disturb each other. The first
// part, and then each, begins at a multiple of the largest of the ranks'
// mpi_minimum_memory_alignment, powers of two up to 4096.
// MPI 4.1 section 12.2.3.
func AllocateSharedWithInfo[T any](comm *mpi.Comm, n int, info *mpi.Info) (*Window, error) {
	bad := typeError[T]()
	if bad == nil {
		bad = sizeError(n, sizeOf[T]())
	}
	if err := comm.Core().Intra(opAllocateShared); err != nil {
		return nil, err
	}
	if comm.Size() == 1 {
		return create(comm, opAllocateShared, FlavorShared, sizeOf[T](), bad, info, nil, func(space *remote.Space, words int) (*remote.Region, error) {
			return space.AllocateAligned(int64(n)*sizeOf[T](), words, alignment(info, sharedAlignment))
		})
	}
	s := new(shared)
	mine := int64(0)
	if bad == nil {
		mine = int64(n) * sizeOf[T]()
	}
	at, desc, none, err := s.agree(comm, part{mine, int64(alignment(info, sharedAlignment)), info.Get(hintNoncontig) == "true"})
	if err == nil && none != nil {
		if bad == nil {
			bad = none
		}
		return nil, fail(comm, bad.class, opAllocateShared, mpi.ProcNull, -1, -1, "", bad.why)
	}
	if err != nil {
		s.close(true)
		return nil, err
	}
	return create(comm, opAllocateShared, FlavorShared, sizeOf[T](), bad, info, s, func(space *remote.Space, words int) (*remote.Region, error) {
		ctx := comm.Core().Comm().Ctx
		var f *fault.Fault
		if s.part, f = space.Reach(ctx.Members.At(0), desc); f != nil {
			return nil, &wrong{mpi.ErrRMAShared, fmt.Errorf("rank 0 has no memory to share: %w", comm.Core().Fault(opAllocateShared, 0, f))}
		}
		r, err := space.Within(s.part, at, mine, words)
		if err != nil {
			return nil, &wrong{mpi.ErrRMAShared, err}
		}
		return r, nil
	})
}

// agree allocates memory for all ranks on rank 0. It returns where the caller's
// part begins, and what there is to know of the whole; or, on all ranks, why
// there is none.
func (s *shared) agree(comm *mpi.Comm, mine part) (at int64, desc *remote.Desc, none *wrong, err error) {
	parts := make([]part, comm.Size())
	parts[comm.Rank()] = mine
	if err := mpi.Allgather(comm, parts[comm.Rank():][:1], parts); err != nil {
		return 0, nil, nil, err
	}
	at, total, align := layParts(parts, comm.Rank())
	if total < 0 {
		return 0, nil, &wrong{mpi.ErrNoMemory, errors.New("the parts of all ranks together are longer than any memory")}, nil
	}
	told := make([]byte, 1+remote.DescBytes) // class of the error, description
	if comm.Rank() == 0 {
		e := comm.Core().Comm().Engine
		var failed error
		if s.whole, failed = remote.Of(e).AllocateAligned(total, 0, int(align)); failed == nil {
			d := s.whole.Desc()
			copy(told[1:], d[:])
		} else {
			none = wrongOf(failed)
			told[0] = byte(none.class)
		}
	}
	err = mpi.Bcast(comm, told, 0)
	if class := mpi.Class(told[0]); none == nil && class != 0 {
		none = &wrong{mpi.ErrAborted, fmt.Errorf("rank 0 cannot allocate %d bytes for all ranks: %w", total, class)}
	}
	return at, (*remote.Desc)(told[1:]), none, err
}

// part is what a rank says of its part of the memory.
type part struct {
	bytes int64
	align int64 // of where it begins
	apart bool  // it may lie apart from the others
}

// layParts says where the part of a rank begins, how long the whole is, -1 if no
// memory is so long, and how it is aligned.
func layParts(parts []part, rank int) (at, total, align int64) {
	apart := true
	for _, p := range parts {
		if p.align < remote.Line || p.align > sharedAlignment || p.align&(p.align-1) != 0 {
			return 0, -1, remote.Line
		}
		apart = apart && p.apart
		align = max(align, p.align)
	}
	for r, p := range parts {
		if apart {
			total = (total + align - 1) &^ (align - 1)
		}
		if p.bytes < 0 || p.bytes > math.MaxInt64-align-total {
			return 0, -1, align
		}
		if r == rank {
			at = total
		}
		total += p.bytes
	}
	return at, total, align
}

// SharedQuery is the memory of a rank as elements of T, as Memory gives it, if
// the caller can load and store there: in a window of AllocateShared, and often in
// others, that of Allocate on one host. Where it cannot the result is empty.
// mpi.ProcNull stands for the first rank that has memory which the caller can
// use. Loads and stores need the synchronisation of all shared memory: Fence, or
// in a LockAll that begins after the first SharedQuery, Sync and a Barrier. A
// dynamic window is ErrRMAFlavor. Not to be used after Free. Local.
// MPI 4.1 section 12.2.3.
func SharedQuery[T any](w *Window, rank int) ([]T, error) {
	c, err := w.usable(opSharedQuery)
	if err != nil {
		return nil, err
	}
	if c.flavor == FlavorDynamic {
		return nil, fail(c.comm, mpi.ErrRMAFlavor, opSharedQuery, rank, -1, -1, "", fmt.Errorf("the window was made by %v", c.flavor))
	}
	if bad := typeError[T](); bad != nil {
		return nil, fail(c.comm, bad.class, opSharedQuery, rank, -1, -1, "", bad.why)
	}
	first, last := rank, rank
	if rank == mpi.ProcNull {
		first, last = 0, c.size-1
	}
	for r := first; r <= last; r++ {
		t, err := c.reach(opSharedQuery, r)
		if err != nil {
			return nil, err
		}
		if len(t.mem) > 0 {
			c.queried.Store(true)
			return elementsOf[T](t.mem), nil
		}
		if t.size > 0 && c.flavor == FlavorShared {
			return nil, fail(c.comm, mpi.ErrRMAShared, opSharedQuery, r, -1, -1, "", fmt.Errorf("it is not mapped here"))
		}
	}
	return nil, nil
}
