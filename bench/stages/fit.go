// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gompi/mpi"
)

// ErrFit is the error of an iteration that no amount of computing brings to the wanted
// time.
var ErrFit = errors.New("no computing makes an iteration take that long")

// Fit changes the amount of computing so that an iteration takes a given time on these
// ranks, as they share the processors. It returns the resulting time: a mean by rank 0's
// clock. Costs passes the result to emulations on other ranks. Collective. Errors: ErrFit,
// which changes nothing, if nothing computes or the rest takes longer already.
func (e *Emulation) Fit(want time.Duration) (is time.Duration, err error) {
	computing := false
	for i := range e.parts {
		computing = computing || e.parts[i].Kind.computes()
	}
	if !computing || want <= 0 || e.o.Factor == 0 {
		return 0, fmt.Errorf("stages: %w: nothing computes, or %v and factor %v ask for none", ErrFit, want, e.o.Factor)
	}
	whole, err := e.mean(want)
	if err != nil {
		return 0, err
	}
	counts := e.Operations()
	for i := range e.parts {
		if e.parts[i].Kind.computes() {
			e.parts[i].ops = 0
		}
	}
	rest, err := e.mean(want)
	if err != nil {
		return 0, err
	}
	for i, n := range counts {
		e.parts[i].ops = n
	}
	if rest >= want {
		return 0, fmt.Errorf("stages: %w: it takes %v without computing, %v are wanted", ErrFit, rest, want)
	}
	// The time of computing is nearly proportional to its amount.
	for range 3 {
		e.scale(float64(want-rest) / float64(max(whole-rest, time.Microsecond)))
		if whole, err = e.mean(want); err != nil {
			return 0, err
		}
		if math.Abs(float64(whole-want)) < 0.02*float64(want) {
			break
		}
	}
	return whole, nil
}

// scale multiplies the amount of computing.
func (e *Emulation) scale(by float64) {
	by = min(max(by, 1e-6), 1e6)
	for i := range e.parts {
		if p := &e.parts[i]; p.Kind.computes() {
			p.cost /= by
			p.ops = e.fitting(p)
		}
	}
}

// mean returns the time of an iteration, the median of several blocks; all ranks get the
// same.
func (e *Emulation) mean(want time.Duration) (time.Duration, error) {
	const blocks = 5
	each := max(1, int(20*time.Millisecond/want))
	var took [blocks]time.Duration
	for b := range took {
		if err := e.comm.Barrier(); err != nil {
			return 0, err
		}
		begin := time.Now()
		for range each {
			if _, err := e.Iterate(false, nil); err != nil {
				return 0, err
			}
		}
		if err := e.comm.Barrier(); err != nil {
			return 0, err
		}
		took[b] = time.Since(begin) / time.Duration(each)
	}
	slices.Sort(took[:])
	d, err := mpi.BcastOne(e.comm, int64(took[blocks/2]), 0)
	return time.Duration(d), err
}
