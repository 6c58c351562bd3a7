// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

// accepted is a change of the main set that somebody was handed after 5 s, what the book
// asks for it, and why it has ended.
type accepted struct {
	*world
	n   uint32
	why error
}

func newAccepted(t *testing.T, r Request) *accepted {
	w := watchedWorld(t, 3)
	r.Kind, r.In, r.Join = Grow, []uint32{0}, []int{1}
	n, err := w.b.Submit(0, r)
	if err != nil {
		t.Fatal(err)
	}
	a := &accepted{world: w, n: n}
	w.b.Launched(0, n, nil)
	w.b.Joined(0, a.newcomer())
	a.asks()
	w.b.Decided(5*time.Second, n, IsAccepted)
	a.asks()
	return a
}

func (a *accepted) newcomer() wire.ProcID { return a.b.ops[a.n].parts[0].join[0][0] }

// asks is the last that the book asks for of looks and swaps.
func (a *accepted) asks() (last Action) {
	a.b.Flush(func(e *Effect) {
		switch {
		case e.Do == CheckProgress || e.Do == Withdraw || e.Do == Break:
			last = e.Do
		case e.Do == StateChanged && e.Why != nil:
			a.why = e.Why
		}
	})
	return last
}

func (a *accepted) at(t *testing.T, sec int, want Action) {
	t.Helper()
	a.b.Tick(time.Duration(sec) * time.Second)
	if got := a.asks(); got != want {
		t.Errorf("after %d s: %d, want %d", sec, got, want)
	}
}

// A change that was accepted is broken when it is late, is looked at before, and has as
// long again whenever its data move or a process reports.
func TestDecisionIsLate(t *testing.T) {
	sec := func(n int) time.Duration { return time.Duration(n) * time.Second }
	a := newAccepted(t, Request{ToCommit: 10 * time.Second})
	a.b.Decided(sec(9), a.n, IsAccepted) // told once more
	a.at(t, 14, 0)
	a.at(t, 15, CheckProgress)
	a.b.Progress(sec(15), a.n) // a member
	a.at(t, 24, 0)
	a.b.NewcomerProgress(sec(24), a.newcomer())
	a.at(t, 33, 0)
	a.at(t, 34, CheckProgress)
	a.b.NoProgress(sec(34), a.n)
	if got := a.asks(); got != Break {
		t.Errorf("nothing has moved: %d", got)
	}
	a.b.NoProgress(sec(34), a.n)
	a.b.Decided(sec(35), a.n, IsAccepted) // it was read before
	if s, _ := a.b.State(a.n); s != Adopting {
		t.Errorf("while it is broken it is %v", s)
	}
	a.b.Decided(sec(35), a.n, IsRolledBack)
	if a.asks(); !errors.Is(a.why, ErrDeadline) {
		t.Error(a.why)
	}

	a = newAccepted(t, Request{ToCommit: 10 * time.Second})
	a.at(t, 15, CheckProgress)
	a.at(t, 17, Break) // the answer does not come
	a.b.Decided(sec(18), a.n, IsCommitted)
	if a.asks(); a.why != nil || a.b.ops[a.n] != nil {
		t.Errorf("the last vote was before the break: %v", a.why)
	}

	a = newAccepted(t, Request{ToCommit: 10 * time.Second, Whole: 18 * time.Second})
	for n := 6; n < 18; n += 4 {
		a.at(t, n, 0)
		a.b.Progress(sec(n), a.n)
	}
	a.at(t, 18, Break) // whatever moves

	a = newAccepted(t, Request{})
	if at, ok := a.b.Next(); ok {
		t.Errorf("without a deadline there is one at %v", at)
	}
}

// Break ends what is not decided, Cancel only what nobody was handed.
func TestBreak(t *testing.T) {
	a := newAccepted(t, Request{})
	if err := a.b.Cancel(6*time.Second, a.n); !errors.Is(err, ErrTooLate) || a.asks() != 0 {
		t.Errorf("Cancel: %v", err)
	}
	if err := a.b.Break(6*time.Second, a.n); err != nil || a.asks() != Break {
		t.Errorf("Break: %v", err)
	}
	next, err := a.b.Submit(6*time.Second, Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	a.b.Decided(7*time.Second, a.n, IsRolledBack)
	if a.asks(); !errors.Is(a.why, ErrCancelled) {
		t.Error(a.why)
	}
	if s, err := a.b.State(next); s != Granted {
		t.Errorf("what has waited behind it is %v, %v", s, err)
	}
	if err := a.b.Break(8*time.Second, next); err != nil {
		t.Error(err)
	}
	if err := a.b.Break(8*time.Second, next); !errors.Is(err, ErrNoOp) {
		t.Errorf("twice: %v", err)
	}
	a = newAccepted(t, Request{})
	a.b.Decided(7*time.Second, a.n, IsCommitted)
	if a.asks(); !errors.Is(a.b.Break(8*time.Second, a.n), ErrNoOp) {
		t.Error("a committed one is broken")
	}
}

// A process that takes no part ends what is not committed, whatever its state, and with its
// reason; of a decision that comes at the same time the word says what holds.
func TestDecline(t *testing.T) {
	sec := time.Second
	no := fmt.Errorf("%w: rank 2: no room", ErrDeclined)
	a := newAccepted(t, Request{})
	a.b.Decline(6*sec, a.n, no)
	if got := a.asks(); got != Break {
		t.Errorf("an accepted one: %d", got)
	}
	a.b.Decline(6*sec, a.n, errors.New("another"))
	a.b.Decided(7*sec, a.n, IsAccepted) // it was read before
	a.b.Decided(7*sec, a.n, IsRolledBack)
	if a.asks(); a.why != no {
		t.Error(a.why)
	}
	a.b.Decline(8*sec, a.n, no)

	a = newAccepted(t, Request{})
	a.b.Decline(6*sec, a.n, no)
	a.asks()
	a.b.Decided(7*sec, a.n, IsCommitted)
	if a.asks(); a.why != nil || a.b.ops[a.n] != nil {
		t.Errorf("one that was committed before: %v", a.why)
	}

	w := watchedWorld(t, 3)
	n, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{0}, Join: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	a = &accepted{world: w, n: n}
	b, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{0}, Join: []int{1}}) // behind it
	if err != nil {
		t.Fatal(err)
	}
	w.b.Decline(sec, b, no)
	if s, _ := w.b.State(b); s != Queued {
		t.Errorf("one that waits for its turn is %v", s)
	}
	w.b.Launched(0, n, nil)
	w.b.Decline(sec, n, no) // a newcomer, before the others are there
	if a.asks(); a.why != no {
		t.Error(a.why)
	}
	if s, _ := w.b.State(b); s != Granted {
		t.Errorf("what has waited behind it is %v", s)
	}

	a = newAccepted(t, Request{Whole: 9 * sec})
	if err := a.b.Cancel(0, a.n); !errors.Is(err, ErrTooLate) {
		t.Error(err)
	}
	a.b.Decline(9*sec, a.n, no)
	a.at(t, 9, Break)
	a.b.Decided(9*sec, a.n, IsRolledBack)
	if a.asks(); a.why != no {
		t.Errorf("it was declined, then late: %v", a.why)
	}
}
