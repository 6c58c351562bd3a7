// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// Now is an iteration for loops whose iterations cannot be compared: all members call
// Check with it, and are handed a change by their next Check. Members must not wait for
// each other's messages between two such Checks: one may have been handed the change,
// and be in Commit, while another has not and waits for it.
const Now = math.MaxInt

// Options are how a set is watched. They must be the same on all its members, and
// stand for every change of that set and of those that follow it, whoever asked for
// the change.
type Options struct {
	// Step is by how much iterations grow at most from one Check to the next; 0
	// means 1. Lookahead is how many steps after the farthest member all are handed
	// a change; 0 means 1.
	Step, Lookahead int
	// Prepare: members see a change only when each newcomer has called Ready.
	Prepare bool
	// Hold: members are handed a change only when each of them has called Release.
	Hold bool
	// Deadlines of a change of which its request said nothing. Whole is not used.
	Deadlines Deadlines
}

// Deadlines are how long a change may take; 0 means as the job has it, a minute each
// for Ready, Accept and Commit (gompirun --resize-timeout, --commit-timeout). A change that
// is late is rolled back, and the reason names the processes for which it has waited. Ready,
// Accept and Commit begin anew while data moves or a process reports: see
// Change.Progress, Change.AddBytes and Watcher.AddBytes.
type Deadlines struct {
	Ready  time.Duration // from the grant until all newcomers are ready
	Accept time.Duration // from then until the first member was handed it
	Commit time.Duration // from then until all have called Commit, or one Complete
	Whole  time.Duration // from the submission to the decision, whatever moves; 0: none
}

const maxStep = protocol.MaxStep

func (o *Options) wire() (protocol.Options, error) {
	if o.Step < 0 || o.Step > maxStep || o.Lookahead < 0 || o.Lookahead > maxStep {
		return protocol.Options{}, fmt.Errorf("step %d, lookahead %d, at most %d allowed", o.Step, o.Lookahead, maxStep)
	}
	if d := o.Deadlines; d.Ready < 0 || d.Accept < 0 || d.Commit < 0 {
		return protocol.Options{}, fmt.Errorf("deadlines %v, %v and %v", d.Ready, d.Accept, d.Commit)
	}
	return protocol.Options{
		Step: uint32(max(1, o.Step)), Lookahead: uint32(max(1, o.Lookahead)),
		Prepare: o.Prepare, Hold: o.Hold,
		ToReady: o.Deadlines.Ready, ToAccept: o.Deadlines.Accept, ToCommit: o.Deadlines.Commit,
	}, nil
}

// Watcher follows the changes of a set. One goroutine at a time calls Check, Query and
// Close.
type Watcher struct {
	// What every Check uses.
	member *changepage.Member
	last   int // iteration
	calls  int // of Check until there is more to do than to look

	page    *page
	pending *Change // was handed out, and is not over as far as is known here
	undone  *Change // was handed out last, and was rolled back; nil: there is none
	// results follow what came of the set, where w stays with it, until they are taken over.
	results []*Watcher
	came    *Change // the change of which the set came that is followed so
	ended   error   // why there is no page any more
	every   int     // calls from one look at the clock to the next, a power of two
	looked  time.Time
	since   int // iteration then; -1: none

	ctx  context.Context // of Watch
	proc *mpi.Process
	opts protocol.Options
	held *held // the set that Watch has looked up; nil: the watcher has gone on
	open bool

	forget func() // of what Main calls when its function has returned

	mu  sync.Mutex
	set uint32   // that the head counts as watched; 0: none
	of  wire.Set // whose page there is

	coming
	asked
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

// enter notes who watches a set: one of a process.
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

// Watch follows the changes of a set, of which the process is a member, until Close:
// Check tells of them. After a commit the watcher follows the Result, with the same
// options; newcomers call Watch themselves, before their Commit or after: before it they
// watch its Result, which "gompi://main" then stands for if the main set is the input. Every member of the set must call it, in
// any order and at any time: the set takes changes from the first call on, and its
// members are handed one when the last has called. A process watches a set once at a
// time. "gompi://main" is the main set as it is when Watch is called.
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

// newWatcher is one that has no page yet.
func newWatcher(ctx context.Context, o protocol.Options) (*Watcher, error) {
	p, err := mpi.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	w := &Watcher{ctx: ctx, proc: p, opts: o, open: true, every: 1, calls: 1, looked: time.Now(), since: -1}
	w.life, w.end = context.WithCancel(context.Background())
	return w, nil
}

// follows follows the Result of a change of w's set, on its page, while w stays with the set.
func (w *Watcher) follows(next *page, c *Change) {
	n, err := newWatcher(w.ctx, w.opts)
	if err != nil { // the process has ended
		next.release()
		return
	}
	n.page, n.member, n.set, n.of = next, next.member, next.set, c.body.Result
	n.came = c
	watchersOf(n.proc).enter(next.set, n)
	n.forget = n.proc.Core().Process().OnReturn(n.unfollow)
	w.results = append(w.results, n)
}

func (w *Watcher) follow(ctx context.Context, name string) error {
	const op = "Watch"
	c, ws := w.proc.Core().Process(), watchersOf(w.proc)
	held, err := registryOf(c).hold(ctx, name)
	if x := c.Change; err == nil && x != nil && name == protocol.MainURI && x.Result.Number != 0 && held.set.Members.Index(c.Self) < 0 &&
		slices.ContainsFunc(x.Inputs, func(s wire.Set) bool { return s.Number == held.set.Number }) {
		held.drop() // a newcomer, before the commit
		held, err = registryOf(c).hold(ctx, x.Result.URI)
	}
	if err != nil {
		return controlError(ctx, op, err)
	}
	set := held.set
	if set.Members.Index(c.Self) < 0 {
		held.drop()
		return newError(mpi.ErrArg, op, fmt.Errorf("process %v is not in %s", c.Self, name))
	}
	if !ws.enter(set.Number, w) {
		held.drop()
		return newError(mpi.ErrArg, op, fmt.Errorf("this process watches %s already", name))
	}
	var b protocol.PageBody
	fds, err := c.Control.AskFiles(ctx, &protocol.Subscribe{Set: set.Number, Options: w.opts}, &b)
	if err == nil {
		if w.page, err = openPage(c, set.Number, b, fds, w.opts); err != nil {
			leavePage(c, &b)
			_ = c.Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: set.Number}) // who has no connection any more watches nothing
		}
	}
	if err != nil {
		ws.leave(set.Number, w)
		held.drop()
		return controlError(ctx, op, err)
	}
	w.page.member.Join()
	w.member, w.held, w.set, w.of, w.main = w.page.member, held, set.Number, set, name == protocol.MainURI
	w.forget = c.OnReturn(w.unfollow)
	return nil
}

// unfollow tells the head that the watch is over.
func (w *Watcher) unfollow() {
	w.dismiss()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set != 0 {
		// Who has no connection any more watches nothing.
		_ = w.proc.Core().Process().Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: w.set})
		w.set = 0
	}
}

// Check tells in which iteration the caller is, and returns a change of the set in the
// iteration at which all members are handed it, else nil. It waits for no member, so
// members may wait for each other's messages between their Checks: who is handed a
// change sends what others wait for before it calls Commit. All members, newcomers
// too, continue behind the iteration of the change. Iterations do not shrink, and are
// at most 2^44. When the caller has left by a change the error is ErrLeaving.
func (w *Watcher) Check(iteration int) (*Change, error) {
	if w.calls--; w.calls <= 0 || iteration < w.last {
		return w.checkAfter(w.pause(iteration), iteration)
	}
	w.last = iteration
	if w.member.Quiet(uint64(iteration)) {
		runtime.KeepAlive(w) // and with it the page
		return nil, nil
	}
	return w.look(iteration)
}

// checkAfter is the rest of a Check that had more to do than to look.
func (w *Watcher) checkAfter(err error, iteration int) (*Change, error) {
	if err != nil {
		return nil, err
	}
	w.last = iteration
	if w.member.Quiet(uint64(iteration)) {
		return nil, nil
	}
	return w.look(iteration)
}

func (w *Watcher) look(iteration int) (*Change, error) {
	c := w.member.Look(uint64(iteration))
	runtime.KeepAlive(w)
	if c == 0 {
		return nil, nil
	}
	return w.found(c, iteration)
}

// found goes on with what the page says.
func (w *Watcher) found(c changepage.Change, iteration int) (*Change, error) {
	for c == changepage.Paused {
		if f := w.page.awaitAsked(w.proc.Context(), "Check"); f != nil {
			return nil, faultError("Check", f)
		}
		c = w.member.Check(uint64(iteration))
	}
	if c == 0 || w.pending != nil && w.pending.page == w.page && w.pending.number == c {
		return nil, nil // a Query has returned it
	}
	return w.handed("Check", c, w.member.First())
}

const (
	tellEvery = 10 * time.Millisecond
	mostCalls = 1 << 12 // between looks at the clock
)

// pause is what only some of the calls of Check do.
func (w *Watcher) pause(iteration int) error {
	const op = "Check"
	w.calls = 1
	if err := w.openHere(op); err != nil {
		return err
	}
	if iteration < w.last || iteration < 0 {
		e := newError(mpi.ErrArg, op, errors.New("iterations do not shrink"))
		e.Got, e.Want, e.Unit = int64(iteration), int64(w.last), "iterations"
		return e
	}
	if w.pending != nil {
		return nil // each call looks whether it is over
	}
	now := time.Now()
	took := now.Sub(w.looked)
	if n := iteration - w.since; n > 0 && w.since >= 0 && iteration != Now {
		w.member.SetIterationTime(uint64(took) / uint64(n))
	}
	switch {
	case took < tellEvery && w.every < mostCalls:
		w.every *= 2
	case took >= 2*tellEvery && w.every > 1:
		w.every /= 2
	}
	w.looked, w.since, w.calls = now, iteration, w.every
	return nil
}

// settle goes on with what came of the change that was handed out.
func (w *Watcher) settle() {
	c := w.pending
	over, next, err := c.ended()
	if !over {
		return
	}
	w.pending, w.looked, w.since = nil, time.Now(), w.last
	if next != nil && err == nil && w.opts.Stay {
		w.follows(next, c)
		next = nil
	}
	if next == nil && err == nil {
		if s, ok := c.page.lines.Decision(c.number); ok && s == changepage.RolledBack {
			c.giveUp() // who has not consumed it finds it rolled back
		}
		if c.endedRolledBack() {
			w.undone = c
		}
		return // the set is what it was
	}
	w.drop(next)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set = 0; err != nil {
		w.ended = err
		return
	}
	w.member, w.set, w.of = next.member, next.set, c.body.Result
	watchersOf(w.proc).enter(next.set, w)
}

// drop lets go of the page, in place of which there is the next one, or none, and of
// the set that Watch has looked up.
func (w *Watcher) drop(next *page) {
	w.mu.Lock()
	g := w.page
	w.page = next
	w.mu.Unlock()
	if g != nil {
		g.forgo()
		watchersOf(w.proc).leave(g.set, w)
		w.turned.Add(1)
		if w.awaited.Load() > 0 {
			g.ring()
		}
		w.endAskings(g.set)
		g.release()
	}
	if w.held != nil {
		w.held.drop()
		w.held = nil
	}
}

// handed is the change that the page has handed to this process, nil if it was rolled
// back meanwhile.
func (w *Watcher) handed(op string, n changepage.Change, first bool) (*Change, error) {
	g := w.page
	if first {
		g.tell(n)
	}
	w.calls = 0
	agreed, ok := g.lines.Agreed(n) // the next change may be on the page when it is known what this one is
	x, err := w.ask(w.proc.Context(), op, g, n, true)
	if x == nil || err != nil {
		return nil, err
	}
	if g.member.SetDelivered(n) {
		g.tell(n)
	}
	if ok {
		x.setAgreed(agreed)
	}
	if next := x.kept.next; ok && next != nil && agreed < changepage.MaxNumber {
		// Before anybody can see the next change: none of its iterations is one that
		// lies behind.
		next.member.Begin(agreed)
	}
	w.pending, w.undone = x, nil
	return x, nil
}

// Close ends the watch. While it is closed on a member the set takes no change: one
// that nobody was handed yet is rolled back. A change that the caller was handed is
// still to be committed. Local.
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
	w.drop(nil)
	w.endAskings(0)
	w.outlive(nil)
	return w.proc.Release(w.ctx)
}
