// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"sync"

	"gompi/internal/core"
)

// program is the process of this program, where it is one of the operating
// system's: what has joined the job, for all who use it.
var program struct { //archtest:global a program joins its job once, however many of its parts use it
	sync.Mutex
	proc  *Process // nil: it has not joined, or has left
	users int      // Init and Acquire without their Finalize and Release
	rests bool     // there were users: see Process.rest
	over  bool     // Finalize was the last use of Init: sessions alone may be opened
}

type processKey struct{}

// FromContext is the process that ctx carries: that of Main, of package mpitest
// (T.Context), or of another Process.Context. Local.
func FromContext(ctx context.Context) (p *Process, ok bool) {
	p, ok = ctx.Value(processKey{}).(*Process)
	return p, ok
}

// Acquire is for packages of this module: the process that ctx carries, or else
// that of the program, which joins the job if nobody in it has. Release follows.
func Acquire(ctx context.Context) (*Process, error) {
	if p, ok := FromContext(ctx); ok {
		if p.core.Ended() {
			return nil, finalized("Open")
		}
		return p, nil
	}
	program.Lock()
	defer program.Unlock()
	return join()
}

// Release ends the use of a process that began with Acquire(ctx). After the last Release
// the program may end at any moment, or acquire the process again.
func (p *Process) Release(ctx context.Context) error {
	if _, ok := FromContext(ctx); ok {
		return nil
	}
	return p.leave((*Process).rest)
}

// Init joins the job that gompirun has started this program in; without
// gompirun the process is rank 0 of 1. Where a session has joined before, it is
// the same process. MPI 4.1 section 11.2.1.
func Init() (*Process, error) {
	program.Lock()
	defer program.Unlock()
	if program.over {
		return nil, finalized("Init")
	}
	return join()
}

// join is a new use of the program's process, which is locked.
func join() (*Process, error) {
	if program.proc == nil {
		b, err := core.Join()
		if err != nil {
			return nil, err
		}
		p := new(Process)
		if err := p.start(b); err != nil {
			b.GiveUp(err)
			return nil, err
		}
		program.proc = p
	}
	if program.rests {
		if program.proc.core.Ended() {
			return nil, finalized("Init")
		}
		if err := program.proc.core.Wake(); err != nil {
			return nil, err
		}
		program.rests = false
	}
	program.users++
	return program.proc, nil
}

// leave ends one use of p. The last one of the program's process is told to end, as is
// the only one of any other.
func (p *Process) leave(end func(*Process) error) error {
	program.Lock()
	defer program.Unlock()
	switch {
	case program.proc != p: // many of these may be leaving at the same time
		program.Unlock()
		defer program.Lock()
		return p.finalize()
	case program.users == 0:
		return finalized("Finalize")
	case program.users > 1:
		program.users--
		return nil
	}
	program.users = 0
	return end(p)
}
