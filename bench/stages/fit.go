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

// ErrFit is of an iteration that no computing makes take the time that was asked for.
var ErrFit = errors.New("no computing makes an iteration take that long")

// Fit changes how much stages compute so that an iteration takes a time on these ranks as
// they share the processors, and says what it takes then: the mean of some by rank 0's
// clock. Costs tell it to emulations on other ranks. Collective. Errors: ErrFit, which
// changes nothing, where nothing computes or the rest takes longer already.
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
	// What computing takes is in proportion to it, nearly.
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

// scale makes stages compute more, or less.
func (e *Emulation) scale(by float64) {
	by = min(max(by, 1e-6), 1e6)
	for i := range e.parts {
		if p := &e.parts[i]; p.Kind.computes() {
			p.cost /= by
			p.ops = e.fitting(p)
		}
	}
}

// mean is what an iteration takes, the median of some blocks of a few; all ranks get the
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
