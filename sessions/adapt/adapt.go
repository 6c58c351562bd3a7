// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
)

// Status is what a process is in an adaptation.
type Status uint8

// The states, under their published names.
const (
	New     Status = iota // Init: the process was there from the start of the program
	Joining               // Init: it was started for an adaptation, and calls Begin at once
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

	c      *sessions.Change // that is to be committed
	future *mpi.Comm
	inter  *mpi.Comm
}

// Init begins to follow the main set. New: the process goes on with the world of
// mpi.Main. Joining: it was started for an adaptation, whose window it enters by Begin.
// Close must follow. All processes of the world call it. Local.
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
// Each calls it once in every round of its loop; newcomers, whose count goes on behind
// that of the others, too. What Probe has told is to be committed.
//
// MPI_Probe_adapt of Comprés et al., EuroMPI 2016.
func (p *Process) Probe() (Adaptation, error) {
	const op = "Probe"
	switch {
	case p.w == nil:
		return Adaptation{}, failed(mpi.ErrArg, op, errors.New("a process that joins commits first"))
	case p.c != nil:
		return Adaptation{}, failed(mpi.ErrArg, op, errors.New("an adaptation is to be committed"))
	}
	c, err := p.w.Check(p.calls)
	if err != nil {
		return Adaptation{}, err
	}
	p.calls++
	if c == nil {
		return Adaptation{}, nil
	}
	p.c = c
	return p.adaptation()
}

func (p *Process) adaptation() (Adaptation, error) {
	a := Adaptation{Status: Staying}
	if p.c.Role == sessions.Leaving {
		a.Status = Leaving
	}
	in, err := p.s.Info(p.c.Input)
	if err != nil {
		return a, err
	}
	_ = p.s.Release(p.c.Input) // the change holds it
	_, leave := p.c.Ranks()
	come := p.c.Newcomers()
	switch {
	case len(in.Died) > 0:
		a.Operation, a.Failed = Fault, in.Died
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
	// intercommunicator of MPI_Comm_spawn; nil if none joins.
	Inter *mpi.Comm
	// Future has the processes that stay and those that join; nil on one that leaves.
	Future *mpi.Comm
	// How many there are.
	Staying, Leaving, Joining int
}

// Begin opens the window. Collective over the processes of the old world and those
// that join. What it makes ends with Commit, and is revoked if the adaptation is rolled
// back (ErrRevoked and ErrRolledBack). ErrRolledBack: it was before; Commit says it, too.
//
// MPI_Comm_adapt_begin of Comprés et al., EuroMPI 2016.
func (p *Process) Begin(ctx context.Context) (w Window, err error) {
	switch {
	case p.c == nil:
		return w, failed(mpi.ErrArg, "Begin", errors.New("there is no adaptation"))
	case p.c.Result == "":
		return w, failed(mpi.ErrArg, "Begin", fmt.Errorf("a change of the kind %v makes no world", p.c.Kind()))
	}
	stay, leave := p.c.Ranks()
	w.Staying, w.Leaving, w.Joining = len(stay), len(leave), p.c.Newcomers()
	if w.Joining > 0 {
		if p.inter, err = p.c.Inter(ctx); err != nil {
			return w, err
		}
	}
	if p.c.Role != sessions.Leaving {
		if p.future, err = p.s.Comm(p.c.Result); err != nil {
			return w, p.undone(ctx, err)
		}
	}
	w.Inter, w.Future = p.inter, p.future
	return w, nil
}

// undone is why the Result has no communicator: the set goes with a change that is rolled
// back, and nobody commits one before this process.
func (p *Process) undone(ctx context.Context, err error) error {
	if !errors.Is(err, mpi.ErrSetGone) {
		return err
	}
	committed, asked := p.c.Decided(ctx)
	if asked != nil || committed {
		return errors.Join(err, asked)
	}
	_, err = p.c.Commit(ctx) // tells a newcomer so that it ends in order
	return err
}

// Commit closes the window and returns the new world, when all have called it. Who
// leaves has cleaned up before; it gets ErrLeaving, which its main function returns.
// ErrRolledBack: there is no adaptation, the old world stays, and one that was to join
// returns the error from its main function. Collective over the processes of the old
// world and those that join.
//
// MPI_Comm_adapt_commit of Comprés et al., EuroMPI 2016.
func (p *Process) Commit(ctx context.Context) (*mpi.Comm, error) {
	if p.c == nil {
		return nil, failed(mpi.ErrArg, "Commit", errors.New("there is no adaptation"))
	}
	world, err := p.c.Commit(ctx)
	over := err == nil || errors.Is(err, sessions.ErrLeaving) || errors.Is(err, sessions.ErrRolledBack)
	if !over {
		return nil, err
	}
	for _, c := range []*mpi.Comm{p.inter, p.future} {
		if c != nil {
			lost := c.Free()
			err = cmp.Or(err, lost)
		}
	}
	if err == nil && p.w == nil {
		err = p.goOn(ctx)
	}
	p.c, p.inter, p.future = nil, nil, nil
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
	return errors.Join(err, p.s.Close())
}

func failed(class mpi.Class, op string, err error) error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}
