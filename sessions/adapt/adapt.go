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

// Status is what a process is in an adaptation.
type Status uint8

// The states, under their published names.
const (
	New     Status = iota // Init: the process was there from the start of the program; Probe: it finds none
	Joining               // Init and Probe: it was started for the adaptation
	Staying               // Probe
	Leaving               // Probe
)

// String gives the published name.
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
	Combined            // both, and there are more or fewer than before
	Migration           // both, and there are as many
	Fault               // processes of the world have failed: it goes on without them
)

// String gives the published name.
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
	told  *Adaptation      // what it is, once it has been found out
	open  *Window          // of c; nil: Begin has not returned it
	inter *mpi.Comm        // of the latest window; nil: there was none
}

// Init begins to follow the main set. New: the process goes on with the world of
// mpi.Main. Joining: it was started for an adaptation; it enters the same loop as the
// others, where its first Probe tells of that, or calls Begin at once. Close must follow.
// All processes of the world call it. Local.
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

// Sessions is the session below. Local.
func (p *Process) Sessions() *sessions.Session { return p.s }

// Adaptation is what Probe tells.
type Adaptation struct {
	Operation Operation // None: there is nothing to be done
	Status    Status
	Failed    []int // of Fault: ranks of the old world
}

// Probe tells whether the world is to be adapted. Its calls are counted, and all
// processes find an adaptation in the call of the same number; it waits for nobody.
// Each calls it once in every round of its loop. What Probe has told is to be committed;
// until then it tells the same again, which does not count. A process that joins is told
// so, Joining, by its first call; after Commit its count goes on behind that of the others.
//
// MPI_Probe_adapt of Comprés et al., EuroMPI 2016.
func (p *Process) Probe() (Adaptation, error) {
	if p.c == nil && p.w == nil {
		return Adaptation{}, failed(mpi.ErrRolledBack, "Probe", errors.New("the process has joined no world: its main function returns"))
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
	if p.told == nil {
		a, err := p.adaptation()
		if err != nil {
			return a, err
		}
		p.told = &a
	}
	return *p.told, nil
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
	case err == nil: // who has ended before is in neither list
		for _, rank := range in.Died {
			if !slices.Contains(stay, rank) && !slices.Contains(leave, rank) {
				a.Failed = append(a.Failed, rank)
			}
		}
		_ = p.s.Release(p.c.Input) // the change holds it
	case p.c.Role != sessions.Joining || !errors.Is(err, mpi.ErrSetGone): // of a newcomer the change may be undone
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

// Window is in what data are moved between Begin and Commit.
type Window struct {
	// Inter has the processes of the old world and those that join, as the
	// intercommunicator of MPI_Comm_spawn; nil if none joins. It is the program's to free,
	// or else ends with the next Begin, or Close.
	Inter *mpi.Comm
	// Future has the processes that stay and those that join, and is the world from Commit
	// on, with what was made of it; nil on one that leaves.
	Future *mpi.Comm
	// How many there are.
	Staying, Leaving, Joining int
}

// Begin opens the window. Collective over the processes of the old world and those
// that join. What it makes is revoked if the adaptation is rolled back (ErrRevoked and
// ErrRolledBack). Until Commit it returns the same window again. ErrRolledBack: it was
// rolled back before; Commit says it, too.
//
// MPI_Comm_adapt_begin of Comprés et al., EuroMPI 2016.
func (p *Process) Begin(ctx context.Context) (w Window, err error) {
	switch {
	case p.c == nil:
		return w, failed(mpi.ErrArg, "Begin", errors.New("there is no adaptation"))
	case p.c.Result == "":
		return w, failed(mpi.ErrArg, "Begin", fmt.Errorf("a change of the kind %v makes no world", p.c.Kind()))
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
			return Window{}, p.undone(ctx, err)
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

// undone tells a newcomer that nothing comes of its change in such a way that it ends in
// order.
func (p *Process) undone(ctx context.Context, err error) error {
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

// Commit closes the window and returns the new world, which is the Future of Begin, when
// all have called it. Who leaves has cleaned up before; it gets ErrLeaving, which its main
// function returns. ErrRolledBack: there is no adaptation, the old world stays, and one
// that was to join returns the error from its main function. Collective over the processes
// of the old world and those that join.
//
// MPI_Comm_adapt_commit of Comprés et al., EuroMPI 2016.
func (p *Process) Commit(ctx context.Context) (*mpi.Comm, error) {
	if p.c == nil {
		return nil, failed(mpi.ErrArg, "Commit", errors.New("there is no adaptation"))
	}
	world, err := p.c.Commit(ctx)
	switch {
	case err == nil && p.w == nil:
		err = p.goOn(ctx)
	case errors.Is(err, sessions.ErrRolledBack):
		err = errors.Join(err, p.freeInter())
	case err != nil && !errors.Is(err, sessions.ErrLeaving):
		return nil, err
	}
	p.c, p.told, p.open = nil, nil, nil
	return world, err
}

// goOn makes a newcomer one that probes, behind the others.
func (p *Process) goOn(ctx context.Context) error {
	i, err := p.c.Iteration(ctx)
	if err != nil {
		return err
	}
	p.calls = i + 1
	p.w, err = sessions.Watch(ctx, p.c.Result, sessions.Options{})
	return err
}

// Close ends it: the world is adapted no more.
func (p *Process) Close() (err error) {
	if p.w != nil {
		err = p.w.Close()
	}
	return errors.Join(err, p.freeInter(), p.s.Close())
}

func failed(class mpi.Class, op string, err error) error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}
