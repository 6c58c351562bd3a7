// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// coming is what a watcher knows of the change that was asked for last: by Check, that
// was handed it, or by Coming, before.
type coming struct {
	asking sync.Mutex // while the head is asked; guards known
	known  *Change

	life    context.Context // of the watch: it ends when that is closed, or the process leaves
	end     context.CancelFunc
	inside  sync.RWMutex  // held by Coming for reading
	awaited atomic.Int32  // calls of Coming that wait
	turned  atomic.Uint32 // pages that the watcher has left
}

// Coming waits for the next change of the set until it is ready, before members are
// handed it, and returns what Check is going to return: for a layer that moves data
// between the members and the newcomers (Inter) while the loop goes on. Under
// Options.Hold no member is handed the change before each of them has called Release,
// and a change that was ready when Coming is called is returned as well; without Hold
// it may have been handed out already. Each change is returned once. When it is rolled
// back the intercommunicator of the layer fails, and Commit says so. It may be called
// by a goroutine beside Check, one at a time, and ends with ErrSession when the watch is
// closed or the process leaves.
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
		x, err := w.next(ctx, op, g, turn)
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

// dismiss ends calls of Coming for good, and returns when they have.
func (w *Watcher) dismiss() {
	w.end()
	w.inside.Lock()
	defer w.inside.Unlock()
}

// dismiss ends those of all watches.
func (ws *watchers) dismiss() {
	ws.mu.Lock()
	list := slices.Collect(maps.Values(ws.set))
	ws.mu.Unlock()
	for _, w := range list {
		w.dismiss()
	}
}

// next waits for the next change of a page; nil: for another page.
func (w *Watcher) next(ctx context.Context, op string, g *page, turn uint32) (*Change, error) {
	for {
		last := changepage.Change(0)
		w.asking.Lock()
		if x := w.known; x != nil && x.page == g {
			last = x.number
		}
		w.asking.Unlock()
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
		if x, err := w.ask(ctx, op, g, n, false); x != nil || err != nil {
			return x, err
		}
	}
}

// ask is a change of a page, as it stands there, or as the head tells it; nil if it was
// rolled back.
func (w *Watcher) ask(ctx context.Context, op string, g *page, n changepage.Change, handed bool) (*Change, error) {
	w.asking.Lock()
	defer w.asking.Unlock()
	if x := w.known; x != nil && x.page == g && x.number == n {
		x.handed = x.handed || handed
		return x, nil
	}
	x, gone, err := w.take(g, n)
	if err != nil {
		x, gone, err = w.askHead(ctx, op, g, n)
	}
	if gone || err != nil {
		return nil, err
	}
	x.handed = handed
	x.name()
	runtime.AddCleanup(x, (*kept).release, x.kept) // of one that is never consumed
	w.replaceKnown(x)
	return x, nil
}

// newChange is a change that a page hands to this process.
func (w *Watcher) newChange(g *page, n changepage.Change, b protocol.ChangeBody) *Change {
	g.retain()
	return &Change{
		proc: w.proc, body: b, page: g, number: n, options: w.opts, turn: make(chan struct{}, 1), kept: &kept{input: g},
	}
}

// askHead is take where the page does not say enough.
func (w *Watcher) askHead(ctx context.Context, op string, g *page, n changepage.Change) (x *Change, gone bool, err error) {
	c := w.proc.Core().Process()
	var b protocol.PageBody
	fds, err := c.Control.AskFiles(ctx, &protocol.GetChange{Set: g.set, Change: uint32(n)}, &b)
	if err != nil {
		if s, ok := g.lines.Decision(n); !ok || s == changepage.RolledBack {
			return nil, true, nil
		}
		return nil, false, controlError(ctx, op, err)
	}
	var body protocol.ChangeBody
	if err := protocol.Decode(&body, b.Rest); err != nil {
		protocol.CloseFiles(fds[:]...)
		return nil, false, newError(mpi.ErrUnreachable, op, err)
	}
	x = w.newChange(g, n, body)
	x.board = b.Area
	if b.X.Bytes > 0 {
		if x.kept.next, x.lost = openPage(c, body.Result.Number, b, fds, w.opts); x.kept.next == nil {
			leavePage(c, &b)
		}
	}
	return x, false, nil
}

// outlive gives up a change that was never handed out.
func (w *Watcher) outlive(x *Change) {
	w.asking.Lock()
	defer w.asking.Unlock()
	w.replaceKnown(x)
}

// replaceKnown is outlive with asking held.
func (w *Watcher) replaceKnown(x *Change) {
	old := w.known
	if w.known = x; old != nil && !old.handed {
		old.giveUp()
	}
}

// giveUp ends a change that was rolled back before it was handed out, or whose watch
// was closed.
func (c *Change) giveUp() {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	default:
		return // somebody waits for the decision, and ends it
	}
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if !over {
		c.end(false, nil, c.rolledBack("Check"))
	}
}

// Shown waits until members may be handed c, which Coming has returned, and reports true,
// or false if it is over before; then, of several hosts, all know the iteration at which
// they are. Who calls it does not call Check meanwhile: it is for members that have
// nothing to do before the change. Those that have checked in with one and the same
// iteration are handed it by their next Check with the next iteration.
func (w *Watcher) Shown(ctx context.Context, c *Change) (bool, error) {
	const op = "Shown"
	if c == nil || c.proc != w.proc || c.page == nil {
		return false, newError(mpi.ErrArg, op, errors.New("the change is none of this watcher"))
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

// Over reports whether the change is committed, or rolled back, as far as this process
// can know without asking. Local.
func (c *Change) Over() bool {
	if c.isOver() || c.page == nil {
		return c.isOver()
	}
	state, here := c.page.lines.Decision(c.number)
	return !here || state == changepage.Committed || state == changepage.RolledBack
}

// Release tells that the caller's layer holds c back no longer: see Options.Hold. It
// is called once for each change, by each member. Local.
func (w *Watcher) Release(c *Change) error {
	const op = "Release"
	if c == nil || c.proc != w.proc {
		return newError(mpi.ErrArg, op, errors.New("the change is none of this watcher"))
	}
	return c.tell(op, protocol.KindReleased)
}
