// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gompi/internal/base/fault"
	"gompi/mpi"
	"gompi/sessions"
)

const (
	mainSet = "gompi://main"
	latest  = "mpi://self" // in just this spelling: see Receive
)

// Session is a session with the sets whose changes this process follows. Its methods
// may be called from any goroutine.
type Session struct {
	s    *sessions.Session
	proc *mpi.Process

	mu     sync.Mutex
	list   []*followed
	joined *sessions.Change // not integrated yet
	begun  map[*sessions.Change]*integration
	late   error         // of what was integrated without waiting, for the next call
	going  int           // what is integrated without waiting
	idle   chan struct{} // closed when nothing is any more; nil: nothing is
	end    context.CancelFunc
	life   context.Context
	closed bool
}

// followed is a set whose changes the process follows.
type followed struct {
	name string // gompi://main stands for all that follow it
	w    *sessions.Watcher
}

// Open begins a session, as sessions.Open, and follows these sets: see Follow. A
// process that a change has started follows none of them, but what its integration
// gives it. Close must follow. Local.
func Open(ctx context.Context, sets ...string) (*Session, error) {
	s, err := sessions.Open(ctx)
	if err != nil {
		return nil, err
	}
	d := &Session{s: s, proc: s.Process(), begun: map[*sessions.Change]*integration{}}
	d.life, d.end = context.WithCancel(ctx)
	if d.joined, err = sessions.Joined(ctx); err == nil && d.joined == nil {
		for _, name := range sets {
			if err = d.Follow(name); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Sessions is the session below, for groups, communicators, stores and names. Local.
func (d *Session) Sessions() *sessions.Session { return d.s }

// Follow makes this process one that can be told of the changes of a set, of which it
// is a member. The set takes changes when all members have said so. After a change that
// makes a new set of it, the new one is followed. Local.
func (d *Session) Follow(set string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open("Follow"); err != nil {
		return err
	}
	return d.follow(set)
}

// follow is Follow with mu held.
func (d *Session) follow(set string) error {
	w, err := sessions.Watch(d.life, set, sessions.Options{})
	if err != nil {
		return err
	}
	d.list = append(d.list, &followed{set, w})
	return nil
}

// Close ends the session, as that of package sessions does: the sets that it followed
// take no more changes. It waits for the decision of what was integrated without
// waiting, until the context of Open ends.
func (d *Session) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.idle != nil {
		idle := d.idle
		d.mu.Unlock()
		<-idle
		d.mu.Lock()
	}
	if d.closed {
		return failed(mpi.ErrSession, "Close", errClosed)
	}
	d.closed = true
	err := d.late
	for _, f := range d.list {
		err = errors.Join(err, f.w.Close())
	}
	d.list = nil
	d.end()
	return errors.Join(err, d.s.Close())
}

// begins notes that something is integrated without waiting. ends must follow. An error: the
// session was closed.
func (d *Session) begins(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return failed(mpi.ErrSession, op, errClosed)
	}
	if d.going++; d.idle == nil {
		d.idle = make(chan struct{})
	}
	return nil
}

// ends notes how that ended.
func (d *Session) ends(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = errors.Join(d.late, err)
	if d.going--; d.going == 0 {
		close(d.idle)
		d.idle = nil
	}
}

// settled waits until nothing is integrated any more that nobody waits for.
func (d *Session) settled(ctx context.Context, op string) error {
	d.mu.Lock()
	idle := d.idle
	d.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return failed(mpi.ErrCancelled, op, context.Cause(ctx))
	}
}

// open is an error if d was closed, or if what was integrated without waiting has
// failed since; mu is held.
func (d *Session) open(op string) error {
	if d.closed {
		return failed(mpi.ErrSession, op, errClosed)
	}
	err := d.late
	d.late = nil
	return err
}

// of is the one who follows a set under one of its names; mu is held.
func (d *Session) of(op, set string) (*followed, error) {
	for _, f := range d.list {
		if f.name == set {
			return f, nil
		}
	}
	own, err := d.s.Name(set)
	if err != nil {
		return nil, err
	}
	for _, f := range d.list {
		if name, err := f.w.Set(); err == nil && name == own {
			return f, nil
		}
	}
	return nil, failed(mpi.ErrNoWatch, op, fmt.Errorf("this process does not follow %s", set))
}

// drop ends following; mu is held.
func (d *Session) drop(f *followed) error {
	d.list = slices.DeleteFunc(d.list, func(g *followed) bool { return g == f })
	return f.w.Close()
}

var errClosed = errors.New("the session was closed")

// failed is an error of a call.
func failed(class mpi.Class, op string, err error) error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}

// start does something as a request.
func (d *Session) start(op fault.Call, f func() error) (r mpi.Request) {
	*r.Core() = d.proc.Core().Beside(op, f)
	return r
}
