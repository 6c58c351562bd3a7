// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"errors"
	"math"
	"runtime"
	"time"

	"gompi/internal/control/changepage"
	"gompi/mpi"
)

// Now is an iteration for loops whose iterations cannot be compared: all members call
// Check with it, and get a change from their next Check. Members must not wait for
// each other's messages between two such Checks: one member may have got the change and
// be in Commit, while another has not got it and waits for the first.
const Now = math.MaxInt

// Check reports the caller's iteration, and returns a change of the set in the
// iteration in which all members get it, else nil.
//
// Every member calls it, in each iteration of its loop; it is local and waits for no
// member. So members may wait for each other's messages between their Checks: a member
// that got a change sends what others wait for before it calls Commit. All members,
// newcomers too, continue behind the iteration of the change. Iterations do not shrink,
// and are at most 2^44.
//
// Errors:
//   - ErrLeaving: the caller has left by a change.
//   - ErrNoWatch: the change is committed, and this process could not open the page of
//     the Result.
//   - mpi.ErrArg: the iteration is smaller than the last one.
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

// checkAfter is the rest of a Check that called pause first.
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

// look reads the page, on which something is announced.
func (w *Watcher) look(iteration int) (*Change, error) {
	c := w.member.Look(uint64(iteration))
	runtime.KeepAlive(w)
	if c == 0 {
		return nil, nil
	}
	return w.deliverDue(c, iteration)
}

// deliverDue delivers the change that the page names for this iteration, once the head
// has found in which iteration it is due.
func (w *Watcher) deliverDue(c changepage.Change, iteration int) (*Change, error) {
	const op = "Check"
	for c == changepage.Paused {
		if f := w.page.awaitIteration(w.proc.Context(), op); f != nil {
			return nil, faultError(op, f)
		}
		c = w.member.Check(uint64(iteration))
	}
	if c == 0 || w.delivered(c) {
		return nil, nil // a Query has returned it
	}
	return w.deliver(op, c, w.member.First())
}

const (
	tellEvery = 10 * time.Millisecond
	mostCalls = 1 << 12 // between looks at the clock
)

// pause does what only some calls of Check do: it goes on to the page of a Result, and
// writes the mean time of an iteration on the page.
func (w *Watcher) pause(iteration int) error {
	const op = "Check"
	w.calls = 1
	if err := w.usable(op); err != nil {
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
