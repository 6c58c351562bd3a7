// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"time"
)

// Whether a transfer of medium length is better pushed or copied from both sides depends on
// where its bytes are: what this processor has just written comes out of its own cache three
// times as slowly to a far one as what both have read before. No length tells that, so pairs
// find out for each power of two: now and then some transfers go the other way, against the
// clock. docs/design/037-shm-policies.md.

const (
	// The shortest of trialOf transfers the way in use is held against the shortest of as many
	// the other way: after firstTrial transfers, then every trialEvery, less and less often
	// while the other takes half as long again, down to every trialRarely.
	trialOf     = 4
	firstTrial  = 16
	trialEvery  = 256
	trialRarely = 4096
	// After lateMost of them in a row that came before the receive none is pushed.
	lateMost = 4
	// choiceMost is the length from which on both sides copy: no ring has room for more.
	choiceMost  = 2 << 20
	choiceLeast = 14 // as a power of two: shorter ones are as one
)

// choices are by length, below choiceMost.
type choices [8]choice

// of is the choice for n bytes.
func (list *choices) of(n int) *choice { return &list[bits.Len(uint(n)>>choiceLeast)] }

// choice is between two ways for one transfer after the other. The zero value has not begun.
type choice struct {
	begun bool
	far   bool             // as the peer is
	guess bool             // whether they were to be pushed
	push  bool             // whether they are
	left  int              // transfers to the end of the trial that comes next, or is on
	rest  int              // from one trial to the next
	late  int              // pushed ones in a row for which it was not
	best  [2]time.Duration // in the trial: the way in use, and the other
}

// next says how the next transfer goes, and whether to tell how long it takes: all before it
// have ended. guess is for the first time, and for when the peer's processor has moved.
func (x *choice) next(guess, far bool) (push, timed bool) {
	switch {
	case !x.begun || far != x.far:
		*x = choice{begun: true, far: far, guess: guess, push: guess, rest: trialEvery, left: firstTrial + 2*trialOf}
	case x.left == 0:
		x.judge()
	}
	x.left--
	return x.push != (x.left < trialOf), x.left < 2*trialOf
}

// took notes how long a transfer of the trial took.
func (x *choice) took(push bool, t time.Duration) {
	b := &x.best[0]
	if push != x.push {
		b = &x.best[1]
	}
	if *b == 0 || t < *b {
		*b = t
	}
}

// arrived notes whether the receive was there for what was pushed.
func (x *choice) arrived(there bool) {
	if there {
		x.late = 0
	} else if x.late++; x.late >= lateMost && x.push {
		x.push, x.late, x.best = false, 0, [2]time.Duration{}
		x.left = trialEvery + 2*trialOf
	}
}

// judge ends a trial.
func (x *choice) judge() {
	switch mine, other := x.best[0], x.best[1]; {
	case mine == 0 || other == 0: // none has ended well
	case other < mine-mine/10:
		x.push, x.rest = !x.push, trialEvery
	case other > mine+mine/2:
		x.rest = min(2*x.rest, trialRarely)
	default:
		x.rest = trialEvery
	}
	x.best = [2]time.Duration{}
	x.left = x.rest + 2*trialOf
}
