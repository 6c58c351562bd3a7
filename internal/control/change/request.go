// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"math"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/spawn"
)

// Kind is the effect of an operation on its inputs.
type Kind uint8

const (
	Add     Kind = iota + 1 // start processes in a set of their own
	Sub                     // remove processes; the inputs stay as they are
	Grow                    // the input, followed by newcomers
	Shrink                  // the input without leavers
	Replace                 // the input without leavers, followed by newcomers; or without a change
	Multi                   // several operations, granted, decided and rolled back together
)

var kindNames = [...]string{"", "add", "sub", "grow", "shrink", "replace", "multi"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Request describes a wanted change.
type Request struct {
	Kind Kind
	// In are the inputs: one for Grow, Shrink and Replace, at least one for Sub, any number for
	// Add. Set 0 is the main set at the time of the grant. Latest is the set by which By, the
	// requesting process, came or leaves.
	In []uint32
	By wire.ProcID
	// Join is the number of newcomers of each new set; only Add has several.
	Join []int
	// Leave is the number of leavers, the last members. Out lists leavers instead.
	Leave int
	Out   []wire.ProcID
	// To is the wanted size of a Replace, instead of Join and Leave; 0: not set. Of several waiting
	// requests with To for one set, only the latest stays.
	To int

	// Min, Max, Pref and Sizes bound the size if there is no room for all wanted newcomers of a
	// Grow, a Replace or an Add of one set. They bound the Result, or for Add the newcomers. Max 0
	// means no bound. Pref is used if there is room for it; 0: none. Sizes, if not nil, lists the
	// only allowed sizes. Parts of a Multi have none of these.
	Min, Max, Pref int
	Sizes          []int

	// On are the hosts for newcomers, by the owner's numbers; nil means any.
	On []uint32
	// Start is the order in which groups of newcomers start; each group is on one host. Place
	// chooses the hosts. With a grouped Start, each group is a set, and Join has one number. The
	// owner passes the order to the launcher. A Multi and its parts have neither.
	Start spawn.Strategy
	Place spawn.Placement

	Parts []Request // of a Multi

	NoQueue bool // refuse the request instead of queueing it
	Prepare bool // newcomers report when they are ready

	// Deadlines, as spans; 0: none. ToReady runs from the grant to Ready, ToAccept from there to
	// the first delivery, ToCommit from there to the decision, and Whole from the submission to
	// the decision.
	ToReady, ToAccept, ToCommit, Whole time.Duration
}

// Latest, as an input, is the set of the processes that come or leave by the latest change of the
// requesting process.
const Latest = math.MaxUint32

// MaxJoin bounds the newcomers of an operation. MaxInputs bounds its inputs, and its sets of
// newcomers. Both bounds apply to all parts together.
const (
	MaxJoin   = 1 << 16
	MaxInputs = 1 << 10
)

// maxMembers bounds the members of all inputs together, because an operation looks at each of them.
const maxMembers = 1 << 20

// parts returns the operations of a request.
func (r *Request) parts() []Request {
	if r.Kind == Multi {
		return r.Parts
	}
	return []Request{*r}
}

// checkTotal checks the totals of all parts, because a member is told of all sets of an
// operation at once.
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

// check checks everything that does not depend on the sets.
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
