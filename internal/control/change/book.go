// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/spawn"
)

// Owner is what a book knows of sets and processes: the head's. Its methods are
// called in the midst of a step, and tell the book nothing.
type Owner interface {
	// Members are all of a set, in order, also those that have ended; false: it is
	// gone.
	Members(set uint32) ([]wire.ProcID, bool)
	// Main is the main set, Came the set of those with which p has come by a change
	// that was not rolled back; 0: there is none.
	Main() uint32
	Came(p wire.ProcID) uint32
	// Who names some processes, for people.
	Who(list []wire.ProcID) string
	// Ended names one that has ended, and says how.
	Ended(p wire.ProcID) string
	// Lives: the process takes part, it has neither died nor left.
	Lives(p wire.ProcID) bool
	// Most is how many processes there could ever be at a time, Room how many more
	// there is place for just now, RoomOn how many of them could start on these hosts
	// (nil: on any), just now and ever; Reserve takes so many and names them, or says why
	// not: ErrBusy, that there is no place for them where they are wanted just now.
	Most() int
	Room() int
	RoomOn(on []uint32) (free, ever int)
	Reserve(wants []Want) ([]wire.ProcID, error)
	// Host is where a process is that Reserve has named; those of a host are in a row.
	Host(p wire.ProcID) uint32
	// Define makes a set that the book holds. It holds others by Hold, each until the
	// effect Drop.
	Define(members []wire.ProcID) uint32
	Hold(set uint32)
	// Replace: for who follows set, and as the main set, it is result from now on.
	Replace(set, result uint32)
	// Stays: who follows set follows it on when a Result has come of it, beside that: set
	// takes one change after the other.
	Stays(set uint32) bool
	// Successor is what set was replaced by; 0: it was not.
	Successor(set uint32) uint32
	// Fits says why set must not become one of so many.
	Fits(set uint32, size int) error
	// Tells says why members could not be told of a part of a change: which inputs it has,
	// who leaves and who stays, 0 or more who join; result: there is a set of those in the
	// end.
	Tells(in []uint32, leave, stay []wire.ProcID, join int, result bool) error
	// Starts says why there can never be such newcomers, all at once.
	Starts(wants []Want) error
	// Terms are what who follows these sets wants of each change of them.
	Terms(sets []uint32) Terms
}

// Want is so many processes on some hosts; nil: on any.
type Want struct {
	N     int
	On    []uint32
	Place spawn.Placement
}

// Terms are what a request has if it does not say otherwise.
type Terms struct {
	Prepare                     bool // also if the request does not say so
	ToReady, ToAccept, ToCommit time.Duration
}

// Action is what an effect asks for.
type Action uint8

const (
	StateChanged  Action = iota + 1 // the operation is in another state
	Launch                          // start Procs, then say Launched
	Discard                         // Procs are not wanted: end them, or give back their places
	Announce                        // members may see the change: a word and votes are needed
	Agree                           // all can be handed it: find the iteration
	Withdraw                        // swap open to rolled back and report the verdict
	Break                           // the same from accepted, too
	Vote                            // for Procs, who have left in order
	Leave                           // Procs may go
	Terminate                       // Procs are late
	CheckProgress                   // whether data of the change move, which is late: Progress
	Drop                            // the operation needs Sets no longer
)

// Effect is one thing that the owner must do, in this order.
type Effect struct {
	Do      Action
	Op      uint32
	Procs   []wire.ProcID
	State   State      // Told
	Why     error      // Told: of an operation that has not happened
	Inputs  [][]uint32 // Told: of an operation that was granted, the sets of each part
	Outputs []Outputs  // and what they have made
	Sets    []uint32   // Drop
}

// Book is all operations of a job that are not over. It has no lock.
type Book struct {
	owner        Owner
	leaveTimeout time.Duration

	last  uint32
	ops   map[uint32]*operation
	queue []*operation // those that are Queued, oldest first

	watches map[uint32]*watchers       // by set
	joining map[wire.ProcID]*operation // newcomers of changes that are not decided
	leaving map[wire.ProcID]*operation // leavers of granted changes, until they are gone
	outputs map[uint32]*operation      // outputs of changes that are not decided, and what was made of those
	inputs  map[uint32]*operation      // sets that a change which is not decided has as inputs
	votes   map[wire.ProcID]int        // in how many changes that are not decided a process votes

	undecided map[uint32]*operation // by number
	decisions uint64                // how many changes have been decided
	gone      map[uint32]struct{}   // sets, while operations wait
	out       []Effect
	ending    bool
}

// operation is an operation.
type operation struct {
	number uint32
	req    Request
	state  State
	parts  []opPart

	waits    map[wire.ProcID]struct{} // newcomers that are not ready
	lingers  map[wire.ProcID]struct{} // leavers that are not gone
	held     map[wire.ProcID]struct{} // members whose layers have not released it
	agreeing bool
	checked  bool // it was late, and so looked at

	derived map[uint32]struct{} // living sets that were made of its outputs
	// unseen are members of the inputs that may not watch them yet; listed: it was made.
	unwatched []setMember
	listed    bool

	// asked is the swap that was asked for, end and why what follows if it is won.
	swap Action
	end  State
	why  error

	stage, whole time.Duration // deadlines as points in time; 0: none

	// wants is how many it waits for that there is no Room for, least with how many it is
	// content; 0: it waits for something else.
	wants, least int
}

// opPart is what an operation does to one input, or as an Add or a Sub to several.
type opPart struct {
	kind    Kind
	in      []uint32 // held from the grant to the decision
	join    [][]wire.ProcID
	leave   []wire.ProcID
	rest    []wire.ProcID // living members of the inputs that stay
	outputs Outputs

	living map[wire.ProcID]struct{} // members of rest and leave
}

// setMember is a process in a set.
type setMember struct {
	set  uint32
	proc wire.ProcID
}

// Outputs are the sets that a part has made; 0: none.
type Outputs struct {
	Joining []uint32
	Leaving uint32
	Result  uint32
}

// New makes an empty book. Leavers have so long before they are terminated; 0: for
// ever.
func New(owner Owner, leaveTimeout time.Duration) *Book {
	return &Book{
		owner: owner, leaveTimeout: leaveTimeout,
		ops: map[uint32]*operation{}, watches: map[uint32]*watchers{},
		joining: map[wire.ProcID]*operation{}, leaving: map[wire.ProcID]*operation{}, outputs: map[uint32]*operation{},
		inputs: map[uint32]*operation{}, votes: map[wire.ProcID]int{}, undecided: map[uint32]*operation{},
	}
}

// maxQueue bounds the operations that wait: a program that asks again and again must
// not keep the book busy.
const maxQueue = 1 << 10

// Submit takes a request and returns the number of its operation, or why it is
// refused.
func (b *Book) Submit(now time.Duration, r Request) (uint32, error) {
	if b.ending {
		return 0, ErrEnding
	}
	if err := r.checkTotal(); err != nil {
		return 0, err
	}
	if err := r.check(); err != nil {
		return 0, err
	}
	o := &operation{req: r, state: Queued}
	if r.Whole > 0 {
		o.whole = after(now, r.Whole)
	}
	if err := b.possible(o); err != nil {
		return 0, err
	}
	if err := b.turnedDown(o); err != nil {
		return 0, err
	}
	// Nothing is known against it, so what it is in place of may go.
	superseded := !r.NoQueue && b.supersede(o)
	if len(b.queue) >= maxQueue {
		return 0, fmt.Errorf("%w: %d operations wait already", ErrBusy, len(b.queue))
	}
	b.last++
	o.number = b.last
	b.ops[o.number] = o
	before := b.queue
	b.queue = append(b.queue, o)
	if superseded {
		b.advance(now)
	} else if _, err := b.grant(now, o, before); err != nil { // nothing has changed for the others
		b.finish(o, Refused, err)
	}
	if o.state == Queued && r.NoQueue {
		b.unqueue(o)
		delete(b.ops, o.number)
		return 0, ErrBusy
	}
	if o.state != Refused && r.NoQueue {
		b.supersede(o)
		b.advance(now)
	}
	return o.number, nil
}

// possible says why an operation can never be granted as things are.
func (b *Book) possible(o *operation) error {
	join, members := 0, 0
	var wants []Want
	for _, r := range o.req.parts() {
		for _, n := range r.Join {
			if r.bounded() {
				n = 1 // how many it takes is known when its input is
			}
			join += n
			wants = append(wants, Want{n, r.On, r.Place})
		}
		in := map[wire.ProcID]struct{}{} // of whom some are to leave
		decided := false
		for _, s := range r.In {
			s = b.resolve(o, s)
			m, ok := b.owner.Members(s)
			if members += len(m); members > maxMembers {
				return malformed("%v of sets of more than %d processes together", o.req.Kind, maxMembers)
			}
			if len(r.Out) > 0 {
				for _, p := range m {
					in[p] = struct{}{}
				}
			}
			if b.outputs[s] != nil {
				continue // looked at when that is decided
			}
			decided = true
			if !ok {
				return ErrNoSet
			}
			if err := b.current(s); err != nil {
				return err
			}
			if r.To > 0 {
				if err := b.owner.Fits(s, r.To); err != nil {
					return err
				}
			}
			if most := b.owner.Most(); r.To > 0 && !r.bounded() {
				if r.To > most {
					return tooMany(r.To, most)
				}
				living := 0
				for _, p := range m {
					if b.takesPart(p) {
						living++
					}
				}
				if n := r.To - living; n > 0 {
					join += n
					wants = append(wants, Want{max(0, r.To-b.largest(o, s, living)), r.On, r.Place})
				}
			}
		}
		for _, p := range r.Out {
			if decided && b.leaving[p] != nil {
				return ErrLeaves
			}
		}
		for _, p := range r.Out {
			if _, ok := in[p]; !ok {
				return ErrNotMember
			}
		}
	}
	switch {
	case join > b.owner.Most():
		return tooMany(join, b.owner.Most())
	case join > 0:
		return b.owner.Starts(wants)
	}
	return nil
}

// turnedDown says why a request that would supersede others is refused just now, if nothing
// but these is before it.
func (b *Book) turnedDown(o *operation) error {
	if o.req.NoQueue || !slices.ContainsFunc(b.queue, func(q *operation) bool { return b.inPlaceOf(o, q) }) {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(b.queue), func(q *operation) bool { return b.inPlaceOf(o, q) })
	_, wants, ok, err := b.plan(o, others)
	if ok && len(wants) > 0 {
		err = b.owner.Starts(wants)
	}
	return err
}

// takesPart reports whether p counts for a change that is granted now: it lives, and goes by
// none that is committed.
func (b *Book) takesPart(p wire.ProcID) bool {
	o := b.leaving[p]
	return (o == nil || o.state.undecided()) && b.owner.Lives(p)
}

// largest is how many members o may find at most when its turn comes in a set of which so
// many take part now.
func (b *Book) largest(o *operation, set uint32, living int) int {
	for _, q := range b.queue {
		if b.inPlaceOf(o, q) {
			continue
		}
		for _, r := range q.req.parts() {
			if len(r.Join) > 0 && slices.ContainsFunc(r.In, func(s uint32) bool { return b.resolve(q, s) == set }) {
				return math.MaxInt
			}
		}
	}
	if u := b.inputs[set]; u != nil {
		for i := range u.parts {
			n := len(u.parts[i].rest)
			for _, procs := range u.parts[i].join {
				n += len(procs)
			}
			if slices.Contains(u.parts[i].in, set) {
				living = max(living, n)
			}
		}
	}
	return living
}

// resolve is the set that an input of o means just now; 0: there is none.
func (b *Book) resolve(o *operation, set uint32) uint32 {
	switch set {
	case 0:
		return b.owner.Main()
	case Latest:
		return b.latest(o.req.By)
	}
	return set
}

// latest is the set of those who go with p, or else have come with it; 0: none.
func (b *Book) latest(p wire.ProcID) uint32 {
	if o := b.leaving[p]; o != nil {
		for i := range o.parts {
			if slices.Contains(o.parts[i].leave, p) {
				return o.parts[i].outputs.Leaving
			}
		}
	}
	return b.owner.Came(p)
}

// supersede ends waiting requests for another size of the same set, and reports
// whether there was one.
func (b *Book) supersede(o *operation) (some bool) {
	for _, q := range slices.Clone(b.queue) {
		if b.inPlaceOf(o, q) {
			b.finish(q, Refused, ErrSuperseded)
			some = true
		}
	}
	return some
}

// inPlaceOf reports whether o supersedes q: both ask for a size of the same set.
func (b *Book) inPlaceOf(o, q *operation) bool {
	return o != q && o.req.Kind == Replace && o.req.To != 0 && q.req.Kind == Replace && q.req.To != 0 &&
		b.resolve(q, q.req.In[0]) == b.resolve(o, o.req.In[0])
}

func (b *Book) unqueue(o *operation) {
	b.queue = slices.DeleteFunc(b.queue, func(q *operation) bool { return q == o })
}

// tell passes on in which state an operation is.
func (b *Book) tell(o *operation, s State) {
	o.state = s
	e := Effect{Do: StateChanged, Op: o.number, State: s, Why: o.why}
	for i := range o.parts {
		e.Inputs, e.Outputs = append(e.Inputs, o.parts[i].in), append(e.Outputs, o.parts[i].outputs)
	}
	b.do(e)
}

func (b *Book) do(e Effect) { b.out = append(b.out, e) }

// Flush hands over what is to be done, in order.
func (b *Book) Flush(do func(*Effect)) {
	for len(b.out)+len(b.gone) > 0 {
		if len(b.gone) > 0 {
			b.refuseGone()
		}
		out := b.out
		b.out = nil
		for i := range out {
			do(&out[i])
		}
	}
}

// Shortage is how many more processes the oldest operation would bring that waits for Room,
// and how many will do; 0: none waits for that.
func (b *Book) Shortage() (wants, least int) {
	for _, o := range b.queue {
		if o.wants > 0 {
			return o.wants, o.least
		}
	}
	return 0, 0
}

// RoomGrew there is more Room.
func (b *Book) RoomGrew(now time.Duration) { b.advance(now) }

// advance grants what can be granted.
func (b *Book) advance(now time.Duration) {
	for again := true; again; {
		again = false
		before := map[uint32]struct{}{} // inputs of those that are earlier
		for i := 0; i < len(b.queue); i++ {
			o := b.queue[i]
			if b.blocked(o, before) {
				o.wants, o.least = 0, 0
				continue
			}
			ok, err := b.grant(now, o, b.queue[:i])
			if err != nil {
				b.finish(o, Refused, err)
			}
			if again = ok || err != nil; again {
				break // the queue is another one
			}
		}
	}
}

// blocked reports whether a queued operation has an input that another one has, which is
// not decided or is earlier: nothing else need be looked at. It adds its own.
func (b *Book) blocked(o *operation, before map[uint32]struct{}) (is bool) {
	for _, r := range o.req.parts() {
		for _, s := range r.In {
			s = b.resolve(o, s)
			_, earlier := before[s]
			is = is || earlier || b.outputs[s] != nil || b.inputs[s] != nil
		}
	}
	for _, r := range o.req.parts() {
		for _, s := range r.In {
			before[b.resolve(o, s)] = struct{}{}
		}
	}
	return is
}

// State is how far an operation is; ErrNoOp when it is over.
func (b *Book) State(number uint32) (State, error) {
	if o := b.ops[number]; o != nil {
		return o.state, nil
	}
	return 0, ErrNoOp
}

// Concerns is an undecided operation that p votes on; 0: none.
func (b *Book) Concerns(p wire.ProcID) uint32 {
	if b.votes[p] == 0 {
		return 0
	}
	for _, o := range b.open() {
		if b.has(o, p) {
			return o.number
		}
	}
	return 0
}

// Decisions is how many changes have been decided: while it is the same, those that
// Concerns has found are undecided.
func (b *Book) Decisions() uint64 { return b.decisions }

// Derived: set was made of outputs of a change that is not decided: it comes or goes with
// them.
func (b *Book) Derived(set, number uint32) {
	o := b.undecided[number]
	if o == nil {
		return
	}
	if o.derived == nil {
		o.derived = map[uint32]struct{}{}
	}
	o.derived[set], b.outputs[set] = struct{}{}, o
}

// Leaves reports whether p goes by a change that members may have seen.
func (b *Book) Leaves(p wire.ProcID) bool {
	o := b.leaving[p]
	return o != nil && Ready <= o.state && o.state <= Committed
}

// Cancel withdraws an operation. With an answer of nil it ends Cancelled, unless its
// next state is Adopting: then somebody was handed it before.
func (b *Book) Cancel(now time.Duration, number uint32) error {
	return b.cancel(now, number, Withdraw, Adopting)
}

// Break is Cancel also of an operation that somebody was handed. With an answer of nil it
// ends Cancelled, unless it was committed before.
func (b *Book) Break(now time.Duration, number uint32) error {
	return b.cancel(now, number, Break, Committed)
}

// cancel is Cancel before an operation is in this state.
func (b *Book) cancel(now time.Duration, number uint32, how Action, late State) error {
	defer b.advance(now)
	switch o := b.ops[number]; {
	case o == nil:
		return ErrNoOp
	case o.state == Queued:
		b.finish(o, Cancelled, ErrCancelled)
	case o.state >= late:
		return ErrTooLate
	default:
		b.withdraw(o, how, Cancelled, ErrCancelled)
	}
	return nil
}

// End: the job ends, and nothing changes any more.
func (b *Book) End() {
	b.ending = true
	for _, n := range slices.Sorted(maps.Keys(b.ops)) {
		switch o := b.ops[n]; {
		case o == nil: // ended with another
		case o.state == Queued:
			b.finish(o, Refused, ErrEnding)
		case o.state.undecided():
			b.finish(o, RolledBack, ErrEnding)
		default:
			b.finish(o, Done, nil)
		}
	}
}

// Sizes is how much each table holds.
func (b *Book) Sizes() map[string]int {
	return map[string]int{
		"operations": len(b.ops), "queued": len(b.queue), "watches": len(b.watches),
		"newcomers": len(b.joining), "leavers": len(b.leaving), "undecided sets": len(b.outputs),
		"inputs": len(b.inputs), "voters": len(b.votes), "undecided": len(b.undecided),
	}
}
