// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"time"
)

// Whether a transfer of medium length is faster pushed or copied by both sides depends on
// where its bytes are. Data that this processor has just written reach a far processor
// three times as slowly as data that both have read before. The length does not tell. So
// each pair measures, for each power of two: now and then some transfers take the other
// path and are timed. docs/design/037-shm-policies.md.

const (
	// A trial compares the shortest of trialOf transfers by the path in use with the
	// shortest of as many by the other path. The first comes after firstTrial transfers,
	// later ones every trialEvery. While the other path takes half as long again, trials
	// become rarer, down to every trialRarely.
	trialOf     = 4
	firstTrial  = 16
	trialEvery  = 256
	trialRarely = 4096
	// After lateMost transfers in a row that came before the receive, none is pushed.
	lateMost = 4
	// choiceMost is the length from which both sides copy: no ring has room for more.
	choiceMost  = 2 << 20
	choiceLeast = 14 // as a power of two; all shorter transfers share one choice
)

// pathChoices are the choices by length, below choiceMost.
type pathChoices [8]pathChoice

// of returns the choice for n bytes.
func (list *pathChoices) of(n int) *pathChoice { return &list[bits.Len(uint(n)>>choiceLeast)] }

// pathChoice chooses one of two paths for one transfer after the other. The zero value has
// not begun.
type pathChoice struct {
	begun      bool
	far        bool             // the peer's processor is far
	guess      bool             // the path before the first trial: whether to push
	push       bool             // the path in use: whether to push
	untilTrial int              // transfers until the end of the next or current trial
	interval   int              // transfers from one trial to the next
	late       int              // pushed transfers in a row that came before the receive
	best       [2]time.Duration // of the trial: the path in use, the other path
}

// next returns the path of the next transfer, and whether to time it. All earlier transfers
// have ended. guess is the path at first, and after the peer's processor has moved.
func (x *pathChoice) next(guess, far bool) (push, timed bool) {
	switch {
	case !x.begun || far != x.far:
		*x = pathChoice{
			begun:      true,
			far:        far,
			guess:      guess,
			push:       guess,
			interval:   trialEvery,
			untilTrial: firstTrial + 2*trialOf,
		}
	case x.untilTrial == 0:
		x.judge()
	}
	x.untilTrial--
	return x.push != (x.untilTrial < trialOf), x.untilTrial < 2*trialOf
}

// took records the duration of a transfer of the trial.
func (x *pathChoice) took(push bool, t time.Duration) {
	b := &x.best[0]
	if push != x.push {
		b = &x.best[1]
	}
	if *b == 0 || t < *b {
		*b = t
	}
}

// arrived records whether the receive was there before a pushed transfer.
func (x *pathChoice) arrived(there bool) {
	if there {
		x.late = 0
	} else if x.late++; x.late >= lateMost && x.push {
		x.push, x.late, x.best = false, 0, [2]time.Duration{}
		x.untilTrial = trialEvery + 2*trialOf
	}
}

// judge ends a trial and chooses.
func (x *pathChoice) judge() {
	switch mine, other := x.best[0], x.best[1]; {
	case mine == 0 || other == 0: // no transfer has ended well
	case other < mine-mine/10:
		x.push, x.interval = !x.push, trialEvery
	case other > mine+mine/2:
		x.interval = min(2*x.interval, trialRarely)
	default:
		x.interval = trialEvery
	}
	x.best = [2]time.Duration{}
	x.untilTrial = x.interval + 2*trialOf
}
