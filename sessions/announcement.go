// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"maps"
	"slices"

	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// errOtherWatcher is the error of a call with a change of another watcher.
var errOtherWatcher = errors.New("the change belongs to another watcher")

// Coming waits until the next change of the set is announced, before members get it,
// and returns the change that Check is going to return. It is for a layer that moves
// data between the members and the newcomers (Inter) while the loop goes on.
//
// One goroutine at a time calls it, beside the one that calls Check. Local. Each change
// is returned once. Under Options.Hold no member gets the change before each of them has
// called Release, and Coming also returns a change that was ready before the call. Without
// Hold members may have got the change already. If it is rolled back the
// intercommunicator of the layer fails, and Commit returns the error.
//
// Errors: ErrSession when the watch is closed or the process leaves; mpi.ErrCancelled
// when ctx ends.
func (w *Watcher) Coming(ctx context.Context) (*Change, error) {
	const op = "Coming"
	w.inside.RLock()
	defer w.inside.RUnlock()
	ctx, cancel := whileJob(ctx, w.proc)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	w.awaited.Add(1)
	defer w.awaited.Add(-1)
	for {
		w.mu.Lock()
		g, turn := w.page, w.turned.Load()
		if g != nil {
			g.retain()
		}
		w.mu.Unlock()
		if g == nil {
			if err := ctx.Err(); err != nil && w.life.Err() == nil {
				return nil, newError(mpi.ErrCancelled, op, context.Cause(ctx))
			}
			return nil, newError(ErrSession, op, errWatchOver)
		}
		x, err := w.awaitAnnounced(ctx, op, g, turn)
		g.release()
		if err != nil && w.life.Err() != nil {
			return nil, newError(ErrSession, op, errWatchOver)
		}
		if x != nil || err != nil {
			return x, err
		}
	}
}

var errWatchOver = errors.New("the watch was closed, or the process leaves")

// dismiss ends all calls of Coming for good, and returns when they have returned.
func (w *Watcher) dismiss() {
	w.end()
	w.inside.Lock()
	defer w.inside.Unlock()
}

// dismiss ends the calls of Coming of all watches.
func (ws *watchers) dismiss() {
	ws.mu.Lock()
	list := slices.Collect(maps.Values(ws.set))
	ws.mu.Unlock()
	for _, w := range list {
		w.dismiss()
	}
}

// awaitAnnounced waits for the next change of a page; nil: the watcher has another page.
func (w *Watcher) awaitAnnounced(ctx context.Context, op string, g *page, turn uint32) (*Change, error) {
	for {
		last := changepage.Change(0)
		w.fetching.Lock()
		if x := w.known; x != nil && x.page == g {
			last = x.number
		}
		w.fetching.Unlock()
		var n changepage.Change
		f := g.awaitAside(ctx, func() bool {
			of, s := g.lines.Last()
			n = of
			return of > last && s <= changepage.Accepted || w.turned.Load() != turn
		})
		switch {
		case f != nil:
			return nil, faultError(op, f)
		case w.turned.Load() != turn:
			return nil, nil
		}
		if x, err := w.pendingChange(ctx, op, g, n, false); x != nil || err != nil {
			return x, err
		}
	}
}

// Pending returns the change of the followed set that members may get now, nil if there
// is none. It is for interfaces in which one member looks and tells the others.
//
// Local; with several hosts it may wait for one round trip to the head. It accepts
// nothing: the change may still be cancelled until Accept, Check or Query delivers it to
// a member. Each call returns the same value while the change is there. Members that learn
// of changes in this way must not wait for each other's Checks, as with Query.
//
// Errors: as Check.
func (w *Watcher) Pending() (*Change, error) {
	const op = "Pending"
	if err := w.usable(op); err != nil {
		return nil, err
	}
	g := w.page
	if f := g.awaitIteration(w.proc.Context(), op); f != nil {
		return nil, faultError(op, f)
	}
	n := g.lines.Announced()
	if n == 0 {
		return nil, nil
	}
	if s, ok := g.lines.Decision(n); !ok || s == changepage.RolledBack {
		return nil, nil
	}
	x, err := w.pendingChange(w.proc.Context(), op, g, n, false)
	if x == nil || err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, nil
	}
	return x, nil
}

// Accept delivers a change that Pending has returned, as Check does: from then on it
// cannot be cancelled, and the caller has to commit it. Local.
//
// Errors: ErrRolledBack if the change was withdrawn before; mpi.ErrArg for a change of
// another watcher.
func (w *Watcher) Accept(c *Change) error {
	const op = "Accept"
	if err := w.usable(op); err != nil {
		return err
	}
	switch {
	case c == nil || c.page == nil || c.proc != w.proc || c.Role == Beside:
		return newError(mpi.ErrArg, op, errOtherWatcher)
	case w.pending == c:
		return nil
	case c.page != w.page:
		return c.rolledBack(op) // another change has replaced the set
	}
	ok, first := c.page.lines.Accept(c.number)
	if !ok {
		return c.rolledBack(op)
	}
	x, err := w.deliver(op, c.number, first)
	if x == nil && err == nil {
		err = c.rolledBack(op)
	}
	return err
}

// Shown waits until members may get c, which Coming has returned. It reports true, or
// false if c is over before. With several hosts the members then also know the
// iteration of the change.
//
// It is for members that have nothing to do before the change. The caller does not call
// Check meanwhile. Members that have checked in with one and the same iteration get the
// change from their next Check with the next iteration.
//
// Errors: mpi.ErrArg for a change of another watcher; mpi.ErrCancelled when ctx ends.
func (w *Watcher) Shown(ctx context.Context, c *Change) (bool, error) {
	const op = "Shown"
	if c == nil || c.proc != w.proc || c.page == nil {
		return false, newError(mpi.ErrArg, op, errOtherWatcher)
	}
	g := c.page
	g.retain()
	defer g.release()
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	shown := false
	f := g.await(ctx, op, func() bool {
		shown = g.lines.Announced() == c.number
		return shown || c.Over()
	})
	if f != nil {
		return false, faultError(op, f)
	}
	return shown, nil
}

// Over reports whether the change is committed or rolled back, as far as this process
// knows without asking. Local.
func (c *Change) Over() bool {
	if c.isOver() || c.page == nil {
		return c.isOver()
	}
	state, here := c.page.lines.Decision(c.number)
	return !here || state == changepage.Committed || state == changepage.RolledBack
}

// Release says that the caller's layer does not hold c back any more: see Options.Hold.
// Each member calls it once for each change. Local. Error: mpi.ErrArg for a change of
// another watcher.
func (w *Watcher) Release(c *Change) error {
	const op = "Release"
	if c == nil || c.proc != w.proc {
		return newError(mpi.ErrArg, op, errOtherWatcher)
	}
	return c.tell(op, protocol.KindReleased)
}
