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

// Session is a session with the sets whose changes this process follows. Any goroutine
// may call its methods.
type Session struct {
	s    *sessions.Session
	proc *mpi.Process

	mu     sync.Mutex
	list   []*subscription
	joined *sessions.Change // not integrated yet
	begun  map[*sessions.Change]*integration
	failed error         // of integrations without waiting, for the next call
	behind int           // integrations without waiting that are under way
	idle   chan struct{} // closed when there are none any more; nil: there are none
	end    context.CancelFunc
	life   context.Context
	closed bool
}

// subscription is a set whose changes the process follows.
type subscription struct {
	name string // gompi://main stands for all its Results
	w    *sessions.Watcher
}

// Open begins a session, as sessions.Open does, and follows these sets: see Follow. A
// newcomer follows none of them; it follows the set that it integrates. Close must follow.
// Local. Errors: those of sessions.Open and Follow.
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

// Sessions returns the session of package sessions, for groups, communicators, stores and
// names. Local.
func (d *Session) Sessions() *sessions.Session { return d.s }

// Follow follows the changes of a set, of which this process is a member. The set takes
// changes when all its members follow it. After a change with a new set the process follows
// the new one. Local. Errors: those of sessions.Watch.
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
	d.list = append(d.list, &subscription{set, w})
	return nil
}

// Close ends the session, as Close of sessions.Session does. The sets that it followed take
// no more changes. It waits for the decision of changes that were integrated without
// waiting, until the context of Open ends, and returns their errors.
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
		return newError(mpi.ErrSession, "Close", errClosed)
	}
	d.closed = true
	err := d.failed
	for _, f := range d.list {
		err = errors.Join(err, f.w.Close())
	}
	d.list = nil
	d.end()
	return errors.Join(err, d.s.Close())
}

// beginBehind notes an integration without waiting. endBehind must follow. An error: the
// session was closed.
func (d *Session) beginBehind(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return newError(mpi.ErrSession, op, errClosed)
	}
	if d.behind++; d.idle == nil {
		d.idle = make(chan struct{})
	}
	return nil
}

// endBehind notes the end and the error of an integration without waiting.
func (d *Session) endBehind(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = errors.Join(d.failed, err)
	if d.behind--; d.behind == 0 {
		close(d.idle)
		d.idle = nil
	}
}

// awaitIdle waits until no integration without waiting is under way.
func (d *Session) awaitIdle(ctx context.Context, op string) error {
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
		return newError(mpi.ErrCancelled, op, context.Cause(ctx))
	}
}

// open returns an error if d was closed, or if an integration without waiting has failed
// since the last call; mu is held.
func (d *Session) open(op string) error {
	if d.closed {
		return newError(mpi.ErrSession, op, errClosed)
	}
	err := d.failed
	d.failed = nil
	return err
}

// subscriptionOf returns the subscription of a set under one of its names; mu is held.
func (d *Session) subscriptionOf(op, set string) (*subscription, error) {
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
	return nil, newError(mpi.ErrNoWatch, op, fmt.Errorf("this process does not follow %s", set))
}

// unfollow ends a subscription; mu is held.
func (d *Session) unfollow(f *subscription) error {
	d.list = slices.DeleteFunc(d.list, func(g *subscription) bool { return g == f })
	return f.w.Close()
}

var errClosed = errors.New("the session was closed")

// newError returns the error of a call.
func newError(class mpi.Class, op string, err error) error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}

// start runs f beside the caller, as a request.
func (d *Session) start(op fault.Call, f func() error) (r mpi.Request) {
	*r.Core() = d.proc.Core().Beside(op, f)
	return r
}
