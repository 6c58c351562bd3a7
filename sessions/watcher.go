// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// Watcher follows the changes of a set. One goroutine at a time calls Check, Query and
// Close.
type Watcher struct {
	// What every Check uses.
	member *changepage.Member
	last   int // iteration
	calls  int // of Check until the next pause

	page    *page
	pending *Change // the delivered change, while it is not over as far as is known here
	undone  *Change // the change that was delivered last, if it was rolled back; else nil
	// results follow the Results of this set's changes, where w stays with the set,
	// until the session takes them over.
	results []*Watcher
	source  *Change // the change that made the set, for a watcher in results
	ended   error   // why there is no page any more
	every   int     // calls from one look at the clock to the next, a power of two
	looked  time.Time
	since   int // iteration at that time; -1: none

	ctx  context.Context // of Watch
	proc *mpi.Process
	opts protocol.Options
	set0 *setRef // the set that Watch looked up; nil: the watcher follows a Result
	open bool

	forget func() // removes unfollow from what Main calls when its function has returned

	mu  sync.Mutex
	set uint32   // that the head counts as watched; 0: none
	of  wire.Set // whose page it is

	delivery
	queries
}

// watchers are the sets that a process watches.
type watchers struct {
	mu  sync.Mutex
	set map[uint32]*Watcher
}

type watchersKey struct{}

func watchersOf(p *mpi.Process) *watchers {
	return p.Core().Process().Keep(watchersKey{}, func() any { return &watchers{set: map[uint32]*Watcher{}} }).(*watchers)
}

// enter notes the watcher of a set, and reports false if there is one already.
func (ws *watchers) enter(set uint32, w *Watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.set[set] != nil {
		return false
	}
	ws.set[set] = w
	return true
}

func (ws *watchers) leave(set uint32, w *Watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.set[set] == w {
		delete(ws.set, set)
	}
}

// has reports whether the process watches a set.
func (ws *watchers) has(set uint32) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.set[set] != nil
}

// Watch follows the changes of a set until Close; Check returns them.
//
// Every member of the set calls it, in any order and at any time. The set takes changes
// from the first call on. Its members get a change when the last member has called. A
// process watches a set once at a time. "gompi://main" is the main set at the time of the
// call. After a commit the watcher follows the Result, with the same options.
//
// Newcomers call Watch themselves, before their Commit or after it. Before it they watch
// the Result, which "gompi://main" then stands for if the main set is the input.
//
// Errors: mpi.ErrArg if the caller is not a member, watches the set already, or the
// options are out of range; ErrSet or ErrSetGone if there is no such set.
func Watch(ctx context.Context, set string, o Options) (*Watcher, error) {
	const op = "Watch"
	opts, err := o.wire()
	if err != nil {
		return nil, newError(mpi.ErrArg, op, err)
	}
	return watch(ctx, set, opts)
}

func watch(ctx context.Context, set string, o protocol.Options) (*Watcher, error) {
	w, err := newWatcher(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := w.follow(ctx, set); err != nil {
		w.end()
		_ = w.proc.Release(ctx)
		return nil, err
	}
	return w, nil
}

// newWatcher returns a watcher without a page.
func newWatcher(ctx context.Context, o protocol.Options) (*Watcher, error) {
	p, err := mpi.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	w := &Watcher{ctx: ctx, proc: p, opts: o, open: true, every: 1, calls: 1, looked: time.Now(), since: -1}
	w.life, w.end = context.WithCancel(context.Background())
	return w, nil
}

// followResult starts a watcher of the Result of a change, on its page, while w stays
// with the input.
func (w *Watcher) followResult(next *page, c *Change) {
	n, err := newWatcher(w.ctx, w.opts)
	if err != nil { // the process has ended
		next.release()
		return
	}
	n.page, n.member, n.set, n.of = next, next.member, next.set, c.body.Result
	n.source = c
	watchersOf(n.proc).enter(next.set, n)
	n.forget = n.proc.Core().Process().OnReturn(n.unfollow)
	w.results = append(w.results, n)
}

// follow subscribes to a set at the head and opens its page.
func (w *Watcher) follow(ctx context.Context, name string) error {
	const op = "Watch"
	c, ws := w.proc.Core().Process(), watchersOf(w.proc)
	ref, err := registryOf(c).hold(ctx, name)
	if x := c.Change; err == nil && x != nil && name == protocol.MainURI && x.Result.Number != 0 && ref.set.Members.Index(c.Self) < 0 &&
		slices.ContainsFunc(x.Inputs, func(s wire.Set) bool { return s.Number == ref.set.Number }) {
		ref.drop() // a newcomer, before the commit
		ref, err = registryOf(c).hold(ctx, x.Result.URI)
	}
	if err != nil {
		return controlError(ctx, op, err)
	}
	set := ref.set
	if set.Members.Index(c.Self) < 0 {
		ref.drop()
		return newError(mpi.ErrArg, op, fmt.Errorf("process %v is not in %s", c.Self, name))
	}
	if !ws.enter(set.Number, w) {
		ref.drop()
		return newError(mpi.ErrArg, op, fmt.Errorf("this process watches %s already", name))
	}
	var b protocol.PageBody
	fds, err := c.Control.AskFiles(ctx, &protocol.Subscribe{Set: set.Number, Options: w.opts}, &b)
	if err == nil {
		if w.page, err = openPage(c, set.Number, b, fds, w.opts); err != nil {
			leavePage(c, &b)
			_ = c.Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: set.Number}) // a lost connection ends the subscription as well
		}
	}
	if err != nil {
		ws.leave(set.Number, w)
		ref.drop()
		return controlError(ctx, op, err)
	}
	w.page.member.Join()
	w.member, w.set0, w.set, w.of, w.main = w.page.member, ref, set.Number, set, name == protocol.MainURI
	w.forget = c.OnReturn(w.unfollow)
	return nil
}

// unfollow tells the head that the watch is over.
func (w *Watcher) unfollow() {
	w.dismiss()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set != 0 {
		// A lost connection ends the subscription as well.
		_ = w.proc.Core().Process().Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: w.set})
		w.set = 0
	}
}

// usable returns why the watch has no page. It goes on to the page of the Result if the
// delivered change is over.
func (w *Watcher) usable(op string) error {
	if !w.open {
		return newError(ErrSession, op, errors.New("the watch was closed"))
	}
	if w.pending != nil {
		w.settle()
	}
	if w.ended != nil {
		return w.ended
	}
	if ctx := w.proc.Context(); ctx.Err() != nil {
		return newError(mpi.ErrFinalized, op, context.Cause(ctx))
	}
	return nil
}

// settle looks whether the delivered change is over, and goes on with its outcome.
func (w *Watcher) settle() {
	c := w.pending
	over, next, err := c.ended()
	if !over {
		return
	}
	w.pending, w.looked, w.since = nil, time.Now(), w.last
	if next != nil && err == nil && w.opts.Stay {
		w.followResult(next, c)
		next = nil
	}
	if next == nil && err == nil {
		if s, ok := c.page.lines.Decision(c.number); ok && s == changepage.RolledBack {
			c.discard() // a later Commit returns that it was rolled back
		}
		if c.endedRolledBack() {
			w.undone = c
		}
		return // the set is what it was
	}
	w.replacePage(next)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set = 0; err != nil {
		w.ended = err
		return
	}
	w.member, w.set, w.of = next.member, next.set, c.body.Result
	watchersOf(w.proc).enter(next.set, w)
}

// replacePage releases the page and the set that Watch looked up. next is the page from
// then on; nil: none.
func (w *Watcher) replacePage(next *page) {
	w.mu.Lock()
	g := w.page
	w.page = next
	w.mu.Unlock()
	if g != nil {
		g.returnUndelivered()
		watchersOf(w.proc).leave(g.set, w)
		w.turned.Add(1)
		if w.awaited.Load() > 0 {
			g.ring()
		}
		w.endCrossQueries(g.set)
		g.release()
	}
	if w.set0 != nil {
		w.set0.drop()
		w.set0 = nil
	}
}

// Set returns the name of the set that is followed now: after a commit that has a
// Result, the Result. Local.
func (w *Watcher) Set() (string, error) {
	if err := w.usable("Set"); err != nil {
		return "", err
	}
	return protocol.SetURI(w.page.proc.Self.Job, w.page.set), nil
}

// Close ends the watch. While a member's watch is closed the set takes no change, and a
// change that no member got yet is rolled back. A change that the caller got is still
// to be committed. Local. To close it again is ErrSession.
func (w *Watcher) Close() error {
	if !w.open {
		return newError(ErrSession, "Close", errors.New("the watch was closed"))
	}
	if w.pending != nil {
		w.settle()
	}
	w.open, w.calls = false, 0
	w.forget()
	w.unfollow()
	w.replacePage(nil)
	w.endCrossQueries(0)
	w.forgetKnown()
	return w.proc.Release(w.ctx)
}
