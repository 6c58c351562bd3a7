// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// delivery is the one path on which a change reaches the program. Every call of a
// Watcher that returns a change of the watched set uses it:
//
//  1. The page announces a change by its number. Check, Query, Pending, Accept and Coming
//     find the number there.
//  2. pendingChange returns the *Change of the number. It remembers the last one, so that
//     all calls return the same value.
//  3. The first call for a number reads the change from the page (readFromPage). Where
//     the page does not hold it for this process, fetchFromHead asks the head.
//  4. deliver hands the change to the program. It notes the delivery on the page and
//     tells the page of the Result in which iteration the members go on.
//
// Coming and Pending stop after step 3. A change that they returned, and that was never
// delivered, is discarded when another one takes its place (remember).
//
// Invariant: pending, the delivered change, came through pendingChange, and its
// delivered flag is set before another goroutine can discard it.
type delivery struct {
	fetching sync.Mutex // held while a change is fetched; guards known
	known    *Change    // that pendingChange returned last

	life    context.Context // of the watch: it ends when that is closed, or the process leaves
	end     context.CancelFunc
	inside  sync.RWMutex  // held by Coming for reading
	awaited atomic.Int32  // calls of Coming that wait
	turned  atomic.Uint32 // pages that the watcher has left
}

// delivered reports whether change n of the page was delivered and is not over.
func (w *Watcher) delivered(n changepage.Change) bool {
	x := w.pending
	return x != nil && x.page == w.page && x.number == n
}

// deliver hands change n of the page to the program. It returns nil if the change was
// rolled back meanwhile, and the same value as before if it was delivered already. first:
// this process is the first to accept the change.
func (w *Watcher) deliver(op string, n changepage.Change, first bool) (*Change, error) {
	if w.delivered(n) {
		return w.pending, nil
	}
	g := w.page
	if first {
		g.tell(n)
	}
	w.calls = 0
	agreed, ok := g.lines.Agreed(n) // read it before fetching: the next change may be on the page afterwards
	x, err := w.pendingChange(w.proc.Context(), op, g, n, true)
	if x == nil || err != nil {
		return nil, err
	}
	if g.member.SetDelivered(n) {
		g.tell(n)
	}
	if ok {
		x.setIteration(agreed)
	}
	if next := x.pages.next; ok && next != nil && agreed < changepage.MaxNumber {
		// Before any member can see the next change: its iteration lies behind this one.
		next.member.Begin(agreed)
	}
	w.pending, w.undone = x, nil
	return x, nil
}

// pendingChange returns change n of a page, nil if it was rolled back. deliver: the
// caller delivers the change, so nothing may discard it from now on.
func (w *Watcher) pendingChange(ctx context.Context, op string, g *page, n changepage.Change, deliver bool) (*Change, error) {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	if x := w.known; x != nil && x.page == g && x.number == n {
		x.delivered = x.delivered || deliver
		return x, nil
	}
	x, gone, err := w.readFromPage(g, n)
	if err != nil {
		x, gone, err = w.fetchFromHead(ctx, op, g, n)
	}
	if gone || err != nil {
		return nil, err
	}
	x.delivered = deliver
	x.name()
	runtime.AddCleanup(x, (*changePages).release, x.pages) // of one that is never consumed
	w.remember(x)
	return x, nil
}

// readFromPage reads change n, and opens the page of its Result. gone: it was rolled
// back. An error: the head knows more than the page.
func (w *Watcher) readFromPage(g *page, n changepage.Change) (x *Change, gone bool, err error) {
	b, c, err := g.changeBody(n)
	if err != nil {
		return nil, false, err
	}
	switch ok, again := g.member.Take(n); {
	case !ok:
		return nil, true, nil
	case again:
		return nil, false, errNotOnPage // the first attempt failed
	}
	x = w.newChange(g, n, c)
	x.board = b.Area
	if b.X.Bytes > 0 {
		if x.pages.next, err = openPage(g.proc, c.Result.Number, b, [protocol.FrameFDs]int{-1, -1}, w.opts); err != nil {
			x.pages.release()
			return nil, false, err
		}
	}
	return x, false, nil
}

// fetchFromHead asks the head for change n. gone: it was rolled back.
func (w *Watcher) fetchFromHead(ctx context.Context, op string, g *page, n changepage.Change) (x *Change, gone bool, err error) {
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
		if x.pages.next, x.noPage = openPage(c, body.Result.Number, b, fds, w.opts); x.pages.next == nil {
			leavePage(c, &b)
		}
	}
	return x, false, nil
}

// newChange returns change n of a page, which it retains.
func (w *Watcher) newChange(g *page, n changepage.Change, b protocol.ChangeBody) *Change {
	g.retain()
	return &Change{
		proc: w.proc, body: b, page: g, number: n, options: w.opts, turn: make(chan struct{}, 1), pages: &changePages{input: g},
	}
}

// remember makes x the known change, and discards the one before if it was never
// delivered. The caller holds fetching.
func (w *Watcher) remember(x *Change) {
	old := w.known
	if w.known = x; old != nil && !old.delivered {
		old.discard()
	}
}

// forgetKnown discards the known change if it was never delivered.
func (w *Watcher) forgetKnown() {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	w.remember(nil)
}

// rolledBackChange returns a change that was rolled back after other members got it: it
// has its Input, and its Commit returns the error.
func (w *Watcher) rolledBackChange(g *page, n changepage.Change) *Change {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	if x := w.known; x != nil && x.page == g && x.number == n {
		x.delivered = true
		w.undone = x
		return x
	}
	x := &Change{
		Input: protocol.SetURI(g.proc.Self.Job, g.set), Role: Staying,
		proc: w.proc, page: g, number: n, options: w.opts, delivered: true, turn: make(chan struct{}, 1), over: true, pages: new(changePages),
	}
	x.err = x.rolledBack("Commit")
	x.body.Inputs = []wire.Set{{URI: x.Input, Number: g.set}}
	w.undone = x
	w.remember(x)
	return x
}

// discard ends a change that was rolled back before its delivery, or whose watch was
// closed.
func (c *Change) discard() {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	default:
		return // a call waits for the decision, and ends the change
	}
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if !over {
		c.end(false, nil, c.rolledBack("Check"))
	}
}

// errNotOnPage means that the page does not hold the change for this process, or holds
// something impossible. The head is asked.
var errNotOnPage = errors.New("the change is not on the page")

// changeBody decodes what the page says of change n to this process: the page of the
// Result, with 0 bytes for a process that is not in the Result, and the change.
func (g *page) changeBody(n changepage.Change) (b protocol.PageBody, c protocol.ChangeBody, err error) {
	raw, ok := g.lines.Body(n)
	if !ok {
		return b, c, errNotOnPage
	}
	if err := protocol.Decode(&b, raw); err != nil {
		return b, c, err
	}
	if err := protocol.Decode(&c, b.Rest); err != nil {
		return b, c, err
	}
	b.Rest = nil
	self, in := g.proc.Self, false
	for i := range c.Inputs {
		in = in || c.Inputs[i].Number == g.set && c.Inputs[i].Members.Index(self) >= 0
	}
	if !in {
		return b, c, errNotOnPage
	}
	if c.Role = protocol.RoleStaying; c.Leaving.Members.Index(self) >= 0 {
		c.Role = protocol.RoleLeaving
	}
	at := c.Result.Members.Index(self)
	if at < 0 {
		b = protocol.PageBody{}
		return b, c, nil
	}
	place, members := onHost(&c.Result, at)
	if b.X.Bytes < int64(changepage.Bytes(members)) || b.Members != members {
		return b, c, errNotOnPage
	}
	b.Place = place
	return b, c, nil
}

// onHost returns the index of the i-th member of a set among the members on its host,
// and how many members that host has.
func onHost(s *wire.Set, i int) (index, members int) {
	host, at := s.Hosts.At(i), 0
	for _, r := range s.Hosts {
		if r.Host == host {
			index += min(r.Count, max(0, i-at))
			members += r.Count
		}
		at += r.Count
	}
	return index, members
}

// returnUndelivered gives back the page of a Result that the page offers to this
// process, which does not look at it any more.
func (g *page) returnUndelivered() {
	n, s := g.lines.Last()
	if s == changepage.RolledBack {
		return
	}
	if b, _, err := g.changeBody(n); err == nil && b.X.Bytes > 0 {
		if ok, again := g.member.Take(n); ok && !again {
			leavePage(g.proc, &b)
		}
	}
}

// changePages are the pages that a change retains: that of its input, and that of its
// Result until the watcher goes on with it.
type changePages struct {
	mu          sync.Mutex
	input, next *page
}

// end releases the pages, but that of the Result of a committed change.
func (k *changePages) end(committed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(&k.input)
	if !committed {
		k.drop(&k.next)
	}
}

func (k *changePages) release() { k.end(false) }

func (k *changePages) drop(g **page) {
	if *g != nil {
		(*g).release()
		*g = nil
	}
}

// result returns the page of the Result, which stays with the change; nil: none.
func (k *changePages) result() *page {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next
}

// takeResult returns the page of the Result, which is the caller's from then on; nil:
// none.
func (k *changePages) takeResult() *page {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.next
	k.next = nil
	return g
}
