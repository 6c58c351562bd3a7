// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/mpi"
	"gompi/sessions"
)

// Status is the part of a process in an adaptation.
type Status uint8

// The states, under their published names.
const (
	New     Status = iota // Init: the process started with the program; Probe: there is no adaptation
	Joining               // Init and Probe: the process was started for the adaptation
	Staying               // Probe: it is in the old world and in the new one
	Leaving               // Probe: it is in the old world only
)

// String returns the published name.
func (s Status) String() string {
	return [...]string{"New", "Joining", "Staying", "Leaving"}[s&3]
}

// Operation is what an adaptation does.
type Operation uint8

// The operations, under their published names.
const (
	None      Operation = iota
	Expansion           // processes come
	Reduction           // processes leave
	Combined            // processes come and leave, and their number changes
	Migration           // processes come and leave, and their number stays
	Fault               // processes of the world have failed: the new world is without them
)

// String returns the published name.
func (o Operation) String() string {
	if names := [...]string{"None", "Expansion", "Reduction", "Combined", "Migration", "Fault"}; int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Process is a process of a program that adapts. One goroutine at a time calls its
// methods.
type Process struct {
	s     *sessions.Session
	w     *sessions.Watcher // nil: a newcomer that has not committed
	calls int               // of Probe

	c     *sessions.Change // that is to be committed
	found *Adaptation      // what Probe returns of c
	open  *Window          // of c; nil: Begin has not returned it
	inter *mpi.Comm        // of the latest window; nil: there was none
}

// Init begins to follow the main set, and returns the status of the process:
//   - New: it goes on with the world of mpi.Main.
//   - Joining: it was started for an adaptation. It enters the loop, where its first Probe
//     returns the adaptation, or calls Begin at once.
//
// All processes of the world call it. Local. Close must follow. Errors: those of
// sessions.Open and sessions.Watch.
//
// MPI_Init_adapt of Comprés et al., EuroMPI 2016.
func Init(ctx context.Context) (*Process, Status, error) {
	s, err := sessions.Open(ctx)
	if err != nil {
		return nil, New, err
	}
	p := &Process{s: s}
	if p.c, err = sessions.Joined(ctx); err == nil && p.c == nil {
		p.w, err = sessions.Watch(ctx, "gompi://main", sessions.Options{})
	}
	if err != nil {
		return nil, New, errors.Join(err, s.Close())
	}
	if p.c != nil {
		return p, Joining, nil
	}
	return p, New, nil
}

// Sessions returns the session of package sessions. Local.
func (p *Process) Sessions() *sessions.Session { return p.s }

// Adaptation is what Probe returns.
type Adaptation struct {
	Operation Operation // None: there is no adaptation
	Status    Status    // of the calling process
	Failed    []int     // Fault: ranks of the old world
}

// Probe returns the pending adaptation of the world, of operation None if there is none.
//
// Every process calls it once in each round of its loop. Local: it waits for no process.
// Calls are counted, and all processes find an adaptation in the call of the same number.
// The program has to commit it; until then Probe returns it again, without counting. The
// first call of a process that joins returns Joining; after Commit its count goes on behind
// that of the others.
//
// Errors: sessions.ErrRolledBack in a process whose adaptation was rolled back before it
// joined; sessions.ErrLeaving in one that has left.
//
// MPI_Probe_adapt of Comprés et al., EuroMPI 2016.
func (p *Process) Probe() (Adaptation, error) {
	if p.c == nil && p.w == nil {
		return Adaptation{}, newError(mpi.ErrRolledBack, "Probe", errors.New("the process has joined no world: its main function returns"))
	}
	if p.c == nil {
		c, err := p.w.Check(p.calls)
		if err != nil {
			return Adaptation{}, err
		}
		p.calls++
		if c == nil {
			return Adaptation{}, nil
		}
		p.c = c
	}
	if p.found == nil {
		a, err := p.adaptation()
		if err != nil {
			return a, err
		}
		p.found = &a
	}
	return *p.found, nil
}

func (p *Process) adaptation() (a Adaptation, err error) {
	switch p.c.Role {
	case sessions.Joining:
		a.Status = Joining
	case sessions.Leaving:
		a.Status = Leaving
	default:
		a.Status = Staying
	}
	stay, leave := p.c.Ranks()
	come := p.c.Newcomers()
	switch in, err := p.s.Info(p.c.Input); {
	case err == nil: // members that ended before are in neither list
		for _, rank := range in.Died {
			if !slices.Contains(stay, rank) && !slices.Contains(leave, rank) {
				a.Failed = append(a.Failed, rank)
			}
		}
		_ = p.s.Release(p.c.Input) // the change holds it
	case p.c.Role != sessions.Joining || !errors.Is(err, mpi.ErrSetGone): // a newcomer's change may be rolled back
		return a, err
	}
	switch {
	case len(a.Failed) > 0:
		a.Operation = Fault
	case come > 0 && come == len(leave):
		a.Operation = Migration
	case come > 0 && len(leave) > 0:
		a.Operation = Combined
	case come > 0:
		a.Operation = Expansion
	default:
		a.Operation = Reduction
	}
	return a, nil
}

// Window has the communicators on which data move between Begin and Commit.
type Window struct {
	// Inter is the intercommunicator between the old world and the processes that join, as
	// that of MPI_Comm_spawn; nil if none joins. The program may free it; else the next Begin
	// or Close does.
	Inter *mpi.Comm
	// Future is the communicator of the processes that stay and those that join. It is the
	// world from Commit on; windows and communicators made of it stay. nil in a process that
	// leaves.
	Future *mpi.Comm
	// Staying, Leaving and Joining are how many processes do so.
	Staying, Leaving, Joining int
}

// Begin opens the window. Collective over the processes of the old world and those that
// join. Until Commit further calls return the same window. If the adaptation is rolled back
// its communicators are revoked (ErrRevoked and ErrRolledBack).
//
// Errors: sessions.ErrRolledBack if the adaptation was rolled back before, which Commit
// returns as well; mpi.ErrArg if there is no adaptation.
//
// MPI_Comm_adapt_begin of Comprés et al., EuroMPI 2016.
func (p *Process) Begin(ctx context.Context) (w Window, err error) {
	switch {
	case p.c == nil:
		return w, newError(mpi.ErrArg, "Begin", errors.New("there is no adaptation"))
	case p.c.Result == "":
		return w, newError(mpi.ErrArg, "Begin", fmt.Errorf("a change of the kind %v makes no world", p.c.Kind()))
	case p.open != nil:
		return *p.open, nil
	}
	if err := p.freeInter(); err != nil {
		return w, err
	}
	stay, leave := p.c.Ranks()
	w.Staying, w.Leaving, w.Joining = len(stay), len(leave), p.c.Newcomers()
	if p.c.Role != sessions.Leaving {
		if w.Future, err = p.c.Comm(ctx); err != nil {
			return Window{}, p.joinError(ctx, err)
		}
	}
	if w.Joining > 0 {
		if p.inter, err = p.c.Inter(ctx); err != nil {
			return Window{}, err
		}
	}
	w.Inter = p.inter
	p.open = &w
	return w, nil
}

// Decline takes this process out of the adaptation, in place of its Begin or Commit, because its
// part failed for this reason. The adaptation ends for all processes at once: Commit, and what
// they do in the communicators of the window, return ErrRolledBack (sessions.Change.Decline).
// Commit must follow, and returns ErrRolledBack. In a process that joins, the main function
// returns the error of Decline instead: ErrRolledBack, which wraps the reason. In the others
// Decline returns nil. Local. Error: mpi.ErrArg if there is no adaptation.
func (p *Process) Decline(reason error) error {
	if p.c == nil {
		return newError(mpi.ErrArg, "Decline", errors.New("there is no adaptation"))
	}
	return p.c.Decline(reason)
}

// joinError returns the error of Begin. If the change was rolled back it is that of Commit,
// with which a newcomer ends in order.
func (p *Process) joinError(ctx context.Context, err error) error {
	if errors.Is(err, sessions.ErrRolledBack) {
		_, err = p.c.Commit(ctx)
	}
	return err
}

// freeInter frees the intercommunicator of the latest window, if the program has not.
func (p *Process) freeInter() error {
	if p.inter == nil {
		return nil
	}
	err := p.inter.Free()
	if p.inter = nil; errors.Is(err, mpi.ErrComm) {
		return nil
	}
	return err
}

// Commit closes the window and returns the new world, which is the Future of Begin.
// Collective over the processes of the old world and those that join: it returns when all
// have called it.
//
// Errors:
//   - sessions.ErrLeaving, in a process that leaves: its main function returns the error.
//   - sessions.ErrRolledBack: there is no adaptation, and the old world stays. The main
//     function of a process that was to join returns the error.
//   - mpi.ErrArg: there is no adaptation.
//
// MPI_Comm_adapt_commit of Comprés et al., EuroMPI 2016.
func (p *Process) Commit(ctx context.Context) (*mpi.Comm, error) {
	if p.c == nil {
		return nil, newError(mpi.ErrArg, "Commit", errors.New("there is no adaptation"))
	}
	world, err := p.c.Commit(ctx)
	switch {
	case err == nil && p.w == nil:
		err = p.enterLoop(ctx)
	case errors.Is(err, sessions.ErrRolledBack):
		err = errors.Join(err, p.freeInter())
	case err != nil && !errors.Is(err, sessions.ErrLeaving):
		return nil, err
	}
	p.c, p.found, p.open = nil, nil, nil
	return world, err
}

// enterLoop makes a newcomer follow the new world, with a count of Probe behind that of the
// others.
func (p *Process) enterLoop(ctx context.Context) error {
	i, err := p.c.Iteration(ctx)
	if err != nil {
		return err
	}
	p.calls = i + 1
	p.w, err = sessions.Watch(ctx, p.c.Result, sessions.Options{})
	return err
}

// Close ends the adaptations of this process's world: the main set takes no more changes.
// It frees the intercommunicator of the latest window. Local, but for the end of that.
func (p *Process) Close() (err error) {
	if p.w != nil {
		err = p.w.Close()
	}
	return errors.Join(err, p.freeInter(), p.s.Close())
}

// newError returns the error of a call.
func newError(class mpi.Class, op string, err error) error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}
