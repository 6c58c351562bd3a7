// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"math"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/spawn"
)

// Kind is what an operation does to its inputs.
type Kind uint8

const (
	Add     Kind = iota + 1 // new processes, in a set of their own
	Sub                     // some leave; the inputs stay as they are
	Grow                    // new ones behind those of the input
	Shrink                  // the input without the leaving
	Replace                 // both: the input without the leaving, and the new ones behind; or neither
	Multi                   // several, granted, decided and rolled back together
)

var kindNames = [...]string{"", "add", "sub", "grow", "shrink", "replace", "multi"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Request is what somebody wants changed.
type Request struct {
	Kind Kind
	// In are the inputs: one for Grow, Shrink and Replace, at least one for Sub, any
	// number for Add. Set 0 is the main set at the moment of the grant, Latest the one
	// by which who asks, By, has come or goes.
	In []uint32
	By wire.ProcID
	// Join is how many come, one set of them for each number: only Add has several.
	Join []int
	// Leave is how many go, the last ones; Out who goes, instead.
	Leave int
	Out   []wire.ProcID
	// To is the size that a Replace is to have, in place of Join and Leave; 0: not
	// said. Of waiting requests with To for one set only the latest stays.
	To int

	// Min, Max, Pref and Sizes are how many there may be, if there is no place for all
	// that a Grow, an Add of one set or a Replace wishes for: in the Result, of an Add
	// those who come. Max 0: no bound; Pref, if there is place for so many: 0: none;
	// Sizes: only these, nil: any. They are not said in parts of a Multi.
	Min, Max, Pref int
	Sizes          []int

	// On are the hosts on which newcomers start, as the owner numbers them; nil: any.
	On []uint32
	// Start is in which order newcomers start, in groups, each of one host, and Place on
	// which of the hosts. Grouped ones are a set for each group, of a kind that has one
	// number in Join. Who launches it has the order from its owner. A Multi has none, nor
	// have its parts.
	Start spawn.Strategy
	Place spawn.Placement

	Parts []Request // Multi

	NoQueue bool // refused instead of queued
	Prepare bool // newcomers say that they are ready

	// Deadlines, as spans: from the grant to Ready, from there until somebody is
	// handed the change, from there to the decision, and of the whole, from the
	// submission to the decision; 0: none.
	ToReady, ToAccept, ToCommit, Whole time.Duration
}

// Latest, as an input, is the set of those who come or go by the latest change that
// concerns who asks in that way.
const Latest = math.MaxUint32

// MaxJoin bounds the newcomers of an operation, MaxInputs its inputs and its sets of
// newcomers: all parts together.
const (
	MaxJoin   = 1 << 16
	MaxInputs = 1 << 10
)

// maxMembers bounds the members of all inputs together, at each of which is looked.
const maxMembers = 1 << 20

// parts are the operations that a request is made of.
func (r *Request) parts() []Request {
	if r.Kind == Multi {
		return r.Parts
	}
	return []Request{*r}
}

// checkTotal looks at what all parts have together: who has a part in an operation is told
// of all its sets at once.
func (r *Request) checkTotal() error {
	in, sets, join := 0, 0, 0
	for _, q := range r.parts() {
		in, sets = in+len(q.In), sets+len(q.Join)
		for _, n := range q.Join {
			join += min(n, MaxJoin+1)
		}
	}
	switch {
	case in > MaxInputs:
		return malformed("%v of %d sets, at most %d allowed", r.Kind, in, MaxInputs)
	case sets > MaxInputs:
		return malformed("%v by %d sets of newcomers, at most %d allowed", r.Kind, sets, MaxInputs)
	case join > MaxJoin:
		return malformed("%v by %d processes, at most %d allowed", r.Kind, join, MaxJoin)
	}
	return nil
}

// check looks at what can be seen without knowing any set.
func (r *Request) check() error {
	if r.Kind == Multi {
		if r.bounded() {
			return malformed("multi with bounds")
		}
		if len(r.Parts) == 0 {
			return malformed("multi without parts")
		}
		if r.Start != spawn.All {
			return malformed("multi started %v", r.Start)
		}
		for i := range r.Parts {
			if r.Parts[i].Kind == Multi {
				return malformed("part %d of multi is a multi", i)
			}
			if r.Parts[i].bounded() {
				return malformed("part %d of multi has bounds", i)
			}
			if s := r.Parts[i].Start; s != spawn.All {
				return malformed("part %d of multi started %v", i, s)
			}
			if err := r.Parts[i].check(); err != nil {
				return err
			}
		}
		return nil
	}
	join := 0
	for _, n := range r.Join {
		if n < 1 || n > MaxJoin {
			return malformed("%v of %d processes, 1 to %d allowed", r.Kind, n, MaxJoin)
		}
		join += n
	}
	if join > MaxJoin {
		return malformed("%v of %d processes, at most %d allowed", r.Kind, join, MaxJoin)
	}
	if r.To < 0 || r.To > MaxJoin {
		return malformed("%v to %d processes, 1 to %d allowed", r.Kind, r.To, MaxJoin)
	}
	leaves := r.Leave > 0 || len(r.Out) > 0
	sized := r.To > 0 && r.To <= MaxJoin && join == 0 && !leaves
	one := len(r.In) == 1
	ok := r.Leave >= 0 && (r.Leave == 0 || len(r.Out) == 0) && r.To >= 0 && (r.To == 0 || sized)
	switch r.Kind {
	case Add:
		ok = ok && join > 0 && !leaves && r.To == 0
	case Sub:
		ok = ok && len(r.In) > 0 && join == 0 && leaves && r.To == 0
	case Grow:
		ok = ok && one && len(r.Join) == 1 && !leaves && r.To == 0
	case Shrink:
		ok = ok && one && join == 0 && leaves && r.To == 0
	case Replace:
		ok = ok && one && len(r.Join) <= 1
	default:
		ok = false
	}
	if !r.Start.Known() || !r.Place.Known() || r.Start.Grouped() && len(r.Join) > 1 {
		return malformed("%v of %d sets, started %v, placed %v", r.Kind, len(r.Join), r.Start, r.Place)
	}
	out := make(map[wire.ProcID]struct{}, len(r.Out))
	for _, p := range r.Out {
		out[p] = struct{}{}
	}
	ok = ok && len(out) == len(r.Out)
	if !ok {
		return malformed("%v of %d sets by %v, less %d or %v, to %d", r.Kind, len(r.In), r.Join, r.Leave, r.Out, r.To)
	}
	return r.checkBounds()
}
