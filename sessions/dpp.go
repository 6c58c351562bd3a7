// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"slices"
	"sync"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// dppState is what the DPP calls of a session (PSetOp, QueryPSetOp, FinalizePSetOp) have
// followed and submitted. One call at a time uses it, in the order of the calls.
type dppState struct {
	mu   sync.Mutex
	last chan struct{} // closed at the end of the latest call; nil: there was none

	// What follows belongs to the call whose turn it is.
	watchers    []*Watcher
	submitted   []submission
	joined      *Change // the change of a newcomer, until it is over
	joinedKnown bool
}

// enter waits for the caller's turn; the result ends the turn.
func (f *dppState) enter() (leave func()) { return f.enqueue()() }

// enqueue takes the next place in the queue of calls; enter waits for its turn.
func (f *dppState) enqueue() (enter func() (leave func())) {
	done := make(chan struct{})
	f.mu.Lock()
	before := f.last
	f.last = done
	f.mu.Unlock()
	return func() func() {
		if before != nil {
			<-before
		}
		return func() { close(done) }
	}
}

// forget frees the operations for which which holds.
func (f *dppState) forget(which func(submission) bool) {
	f.submitted = slices.DeleteFunc(f.submitted, func(a submission) bool {
		if which(a) {
			a.Free()
			return true
		}
		return false
	})
}

// setNamed looks a set up that has members.
func (s *Session) setNamed(op, name string) (*setRef, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = canonical(name)
	if name == protocol.EmptyURI {
		return nil, s.fail(mpi.ErrSet, op, errors.New("the empty set has no members"))
	}
	return s.find(op, name)
}

// follow returns the watcher of a set that has the process as a member, or of the set
// whose delivered change has it as the Result. It starts a watch if there is none.
func (s *Session) follow(ctx context.Context, op string, h *setRef) (*Watcher, error) {
	for _, w := range s.dpp.watchers {
		if err := w.usable(op); err != nil {
			continue
		}
		if w.page.set == h.set.Number || w.resultPage(h.set.Number) != nil {
			return w, nil
		}
	}
	w, err := watch(s.ctx, h.set.URI, protocol.Options{Step: 1, Lookahead: 1, Stay: true})
	if err == nil {
		s.dpp.watchers = append(s.dpp.watchers, w)
	}
	return w, err
}

// settle finishes the changes that others have completed. The caller has the turn.
func (s *Session) settle(ctx context.Context, op string) error {
	s.mu.Lock()
	err := s.open(op)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if !s.dpp.joinedKnown {
		if s.dpp.joined, err = Joined(s.ctx); err != nil {
			return err
		}
		s.dpp.joinedKnown = true
	}
	for _, w := range slices.Clone(s.dpp.watchers) {
		if err := s.settleWatcher(ctx, w); err != nil {
			return err
		}
	}
	c := s.dpp.joined
	if c == nil {
		return nil
	}
	if !c.isOver() {
		state, err := c.await(ctx, op, change.Queued)
		if err != nil || !state.Over() && state != change.Committed {
			return err
		}
	}
	s.dpp.joined = nil
	if err := c.finish(ctx); err != nil {
		return err
	}
	return s.retain(c)
}

// settleWatcher finishes the changes of a watcher that others have completed, and takes over the
// watchers of their Results.
func (s *Session) settleWatcher(ctx context.Context, w *Watcher) error {
	if x := w.pending; x != nil && x.Role != Leaving && x.committedByOthers() {
		if err := x.finish(ctx); err != nil {
			return err
		}
	}
	if x := w.pending; x != nil {
		if w.settle(); w.pending == nil && x.Result == "" && x.isOver() && x.err == nil {
			if err := s.retain(x); err != nil {
				return err
			}
		}
	}
	if err := s.takeOver(w); err != nil {
		return err
	}
	for _, a := range w.cross {
		if x := a.known; x != nil && x.committedByOthers() {
			if err := x.finish(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOver takes over the watchers of the Results of a watcher's set.
func (s *Session) takeOver(w *Watcher) error {
	results := w.results
	w.results = nil
	s.dpp.watchers = append(s.dpp.watchers, results...)
	for _, r := range results {
		if err := s.retain(r.source); err != nil {
			return err
		}
	}
	return nil
}

// unfollowSets ends the watches of some sets, except where a change is not finished.
func (s *Session) unfollowSets(sets map[uint32]bool) (err error) {
	s.dpp.watchers = slices.DeleteFunc(s.dpp.watchers, func(w *Watcher) bool {
		if w.page == nil || !sets[w.page.set] || w.pending != nil || len(w.results) > 0 {
			return false
		}
		err = errors.Join(err, w.Close())
		return true
	})
	return err
}

func (c *Change) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// endedRolledBack reports whether a change is over here, and was rolled back.
func (c *Change) endedRolledBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && errors.Is(c.err, ErrRolledBack)
}

// committedByOthers reports whether a change is committed, while this process has not
// called Commit.
func (c *Change) committedByOthers() bool {
	if c.isOver() {
		return false
	}
	state, here := c.page.lines.Decision(c.number)
	return !here || state == changepage.Committed
}

// rolledBackOnPage reports whether the page says that a change was rolled back.
func (c *Change) rolledBackOnPage() bool {
	state, here := c.page.lines.Decision(c.number)
	return here && state == changepage.RolledBack
}

// finish commits a change that is decided. A program of DPP makes its communicators
// itself.
func (c *Change) finish(ctx context.Context) error {
	if c.isOver() {
		return nil // the program has committed it
	}
	comm, err := c.Commit(ctx)
	if comm != nil {
		err = errors.Join(err, comm.Free())
	}
	return err
}

// unfollow ends all watches of a session.
func (s *Session) unfollow() (err error) {
	defer s.dpp.enter()()
	for i := 0; i < len(s.dpp.watchers); i++ {
		w := s.dpp.watchers[i]
		if x := w.pending; x != nil && x.committedByOthers() {
			if lost := x.finish(s.ctx); !errors.Is(lost, ErrLeaving) {
				err = errors.Join(err, lost)
			}
		}
		err = errors.Join(err, w.Close())
		s.dpp.watchers = append(s.dpp.watchers, w.results...)
	}
	s.dpp.watchers = nil
	s.dpp.forget(func(submission) bool { return true })
	return err
}
