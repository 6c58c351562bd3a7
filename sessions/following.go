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

// following is what a session follows, and has asked for, by the calls of DPP. One call
// at a time uses it, in the order in which they were made.
type following struct {
	mu   sync.Mutex
	last chan struct{} // closed at the end of the call that came last; nil: there was none

	// What follows is of the call whose turn it is.
	list   []*Watcher
	asked  []requested
	joined *Change // of a newcomer, until it is over
	looked bool    // joined is what it is
}

// enter waits for the caller's turn; the result ends that.
func (f *following) enter() (leave func()) { return f.ticket()() }

// ticket is a place in the row, that is to be taken.
func (f *following) ticket() (enter func() (leave func())) {
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

// forget frees operations.
func (f *following) forget(which func(requested) bool) {
	f.asked = slices.DeleteFunc(f.asked, func(a requested) bool {
		if which(a) {
			a.Free()
			return true
		}
		return false
	})
}

// named is a set by its name.
func (s *Session) named(op, name string) (*held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = canonical(name)
	if name == protocol.EmptyURI {
		return nil, s.fail(mpi.ErrSet, op, errors.New("the empty set has no members"))
	}
	return s.find(op, name)
}

// has reports whether the process watches a set.
func (ws *watchers) has(set uint32) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.set[set] != nil
}

// follow is who follows a set, of which the process is a member, or that it becomes.
func (s *Session) follow(ctx context.Context, op string, h *held) (*Watcher, error) {
	for _, w := range s.dpp.list {
		if err := w.openHere(op); err != nil {
			continue
		}
		if w.page.set == h.set.Number || w.ahead(h.set.Number) != nil {
			return w, nil
		}
	}
	w, err := watch(s.ctx, h.set.URI, protocol.Options{Step: 1, Lookahead: 1, Stay: true})
	if err == nil {
		s.dpp.list = append(s.dpp.list, w)
	}
	return w, err
}

// settle goes on with changes that others have completed. The caller has the turn.
func (s *Session) settle(ctx context.Context, op string) error {
	s.mu.Lock()
	err := s.open(op)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if !s.dpp.looked {
		if s.dpp.joined, err = Joined(s.ctx); err != nil {
			return err
		}
		s.dpp.looked = true
	}
	for _, w := range slices.Clone(s.dpp.list) {
		if err := s.goOn(ctx, w); err != nil {
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
	if err := c.adopt(ctx); err != nil {
		return err
	}
	return s.adopted(c)
}

// goOn goes on with what others have completed of a watcher's changes, and takes over who
// follows what came of them.
func (s *Session) goOn(ctx context.Context, w *Watcher) error {
	if x := w.pending; x != nil && x.Role != Leaving && x.committed() {
		if err := x.adopt(ctx); err != nil {
			return err
		}
	}
	if x := w.pending; x != nil {
		if w.settle(); w.pending == nil && x.Result == "" && x.isOver() && x.err == nil {
			if err := s.adopted(x); err != nil {
				return err
			}
		}
	}
	if err := s.takeOver(w); err != nil {
		return err
	}
	for _, a := range w.askings {
		if x := a.known; x != nil && x.committed() {
			if err := x.adopt(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOver takes over who follows what came of a watcher's set.
func (s *Session) takeOver(w *Watcher) error {
	results := w.results
	w.results = nil
	s.dpp.list = append(s.dpp.list, results...)
	for _, r := range results {
		if err := s.adopted(r.came); err != nil {
			return err
		}
	}
	return nil
}

// unfollowSets ends the watches of some sets, but where a change is to be adopted.
func (s *Session) unfollowSets(sets map[uint32]bool) (err error) {
	s.dpp.list = slices.DeleteFunc(s.dpp.list, func(w *Watcher) bool {
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

// committed reports whether a change that is not over here was committed.
func (c *Change) committed() bool {
	if c.isOver() {
		return false
	}
	state, here := c.page.lines.Decision(c.number)
	return !here || state == changepage.Committed
}

// undone reports whether a change was rolled back.
func (c *Change) undone() bool {
	state, here := c.page.lines.Decision(c.number)
	return here && state == changepage.RolledBack
}

// adopt ends a change that is decided. The program makes its communicators itself.
func (c *Change) adopt(ctx context.Context) error {
	if c.isOver() {
		return nil // by the program
	}
	comm, err := c.Commit(ctx)
	if comm != nil {
		err = errors.Join(err, comm.Free())
	}
	return err
}

// unfollow ends what a session follows.
func (s *Session) unfollow() (err error) {
	defer s.dpp.enter()()
	for i := 0; i < len(s.dpp.list); i++ {
		w := s.dpp.list[i]
		if x := w.pending; x != nil && x.committed() {
			if lost := x.adopt(s.ctx); !errors.Is(lost, ErrLeaving) {
				err = errors.Join(err, lost)
			}
		}
		err = errors.Join(err, w.Close())
		s.dpp.list = append(s.dpp.list, w.results...)
	}
	s.dpp.list = nil
	s.dpp.forget(func(requested) bool { return true })
	return err
}
