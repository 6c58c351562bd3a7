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

// Owner is the source of a book's knowledge about sets and processes: the head. The book calls its
// methods during a step. They must not call the book.
type Owner interface {
	// Members returns all members of a set in order, also those that have ended. It returns
	// false if the set is gone.
	Members(set uint32) ([]wire.ProcID, bool)
	// Main returns the main set. Came returns the set of the newcomers with which p came by a
	// change that was not rolled back. Both return 0 if there is no such set.
	Main() uint32
	Came(p wire.ProcID) uint32
	// Names returns the names of some processes, for messages.
	Names(list []wire.ProcID) string
	// Ended names a process that has ended, and says how it ended.
	Ended(p wire.ProcID) string
	// Lives reports whether the process takes part in the job: it has neither died nor left.
	Lives(p wire.ProcID) bool
	// Most returns how many processes there can ever be at a time, and Room how many more can
	// start now. RoomOn returns how many can start on these hosts (nil: on any), now and ever.
	// Reserve reserves slots for the wanted processes and returns their ids. It returns ErrBusy
	// if there are no slots now on the wanted hosts.
	Most() int
	Room() int
	RoomOn(on []uint32) (free, ever int)
	Reserve(wants []Want) ([]wire.ProcID, error)
	// Host returns the host of a process that Reserve has returned. Reserve returns the processes
	// of a host one after the other.
	Host(p wire.ProcID) uint32
	// Define makes a set, which the book then holds. Hold makes the book hold an existing set. The
	// effect Drop ends a hold.
	Define(members []wire.ProcID) uint32
	Hold(set uint32)
	// Replace makes result the successor of set: for its subscribers, and as the main set.
	Replace(set, result uint32)
	// Stays reports whether subscribers keep following set after a change of it, beside the
	// Result. Such a set can take one change after the other.
	Stays(set uint32) bool
	// Successor returns the set that has replaced set, or 0.
	Successor(set uint32) uint32
	// Fits returns an error if set must not change to this size.
	Fits(set uint32, size int) error
	// Tells returns an error if members cannot be told about a part of a change. in are the
	// inputs, leave and stay the leavers and the others, and join the number of newcomers.
	// result says that there is a Result.
	Tells(in []uint32, leave, stay []wire.ProcID, join int, result bool) error
	// Starts returns an error if these newcomers can never start all at once.
	Starts(wants []Want) error
	// Terms returns the options of the subscribers of these sets, for each change of the sets.
	Terms(sets []uint32) Terms
}

// Want is a number of processes on some hosts; nil means on any.
type Want struct {
	N     int
	On    []uint32
	Place spawn.Placement
}

// Terms are the defaults of a request.
type Terms struct {
	Prepare                     bool // applies even if the request does not ask for it
	ToReady, ToAccept, ToCommit time.Duration
}

// Action is the kind of an effect.
type Action uint8

const (
	StateChanged  Action = iota + 1 // the operation has a new state
	Launch                          // start Procs, then call Launched
	Discard                         // end Procs, or give back their slots
	Announce                        // let members see the change; it needs a status word and votes
	Agree                           // the change can be delivered: find the iteration
	Withdraw                        // swap open to rolled back, and report the decision
	Break                           // swap open or accepted to rolled back, and report the decision
	Vote                            // vote for Procs, which have left in order
	Leave                           // allow Procs to leave
	Terminate                       // end Procs, which are late
	CheckProgress                   // the change is late: report Progress or NoProgress of its data
	Drop                            // the operation no longer needs Sets
)

// Effect is one action for the owner. It must do them in the order of Flush.
type Effect struct {
	Do      Action
	Op      uint32
	Procs   []wire.ProcID
	State   State      // of StateChanged
	Why     error      // of StateChanged: why the operation did not happen
	Inputs  [][]uint32 // of StateChanged, once granted: the sets of each part
	Outputs []Outputs  // of StateChanged, once granted: the outputs of each part
	Sets    []uint32   // of Drop
}

// Book holds all operations of a job that are not over. It does no locking.
type Book struct {
	owner        Owner
	leaveTimeout time.Duration

	last  uint32
	ops   map[uint32]*operation
	queue []*operation // operations that are Queued, the oldest first

	watches map[uint32]*watchers       // by set
	joining map[wire.ProcID]*operation // newcomers of undecided changes
	leaving map[wire.ProcID]*operation // leavers of granted changes, until they are gone
	outputs map[uint32]*operation      // outputs of undecided changes, and sets derived from these
	inputs  map[uint32]*operation      // inputs of undecided changes
	votes   map[wire.ProcID]int        // number of undecided changes on which a process votes

	undecided map[uint32]*operation // by number
	decisions uint64                // number of changes that were decided
	gone      map[uint32]struct{}   // sets that have gone while operations wait
	out       []Effect
	ending    bool
}

// operation is one operation of a book.
type operation struct {
	number uint32
	req    Request
	state  State
	parts  []opPart

	waits    map[wire.ProcID]struct{} // newcomers that are not ready
	lingers  map[wire.ProcID]struct{} // leavers that are not gone
	held     map[wire.ProcID]struct{} // members that have not released the change
	agreeing bool
	checked  bool // it was late, and CheckProgress was requested

	derived map[uint32]struct{} // living sets that were made from its outputs
	// unwatched are members of the inputs that may not have subscribed yet. listed says that the
	// list was made.
	unwatched []setMember
	listed    bool

	// swap is the requested Withdraw or Break. end and why are the state and the reason that
	// follow if it succeeds.
	swap Action
	end  State
	why  error

	stage, whole time.Duration // deadlines, as points in time; 0: none

	// wants is the number of newcomers for which there is no Room, and least the number that
	// would be enough. 0 means that the operation waits for something else.
	wants, least int
}

// opPart is the effect of an operation on one input. An Add or a Sub may have several inputs.
type opPart struct {
	kind    Kind
	in      []uint32 // the book holds them from the grant to the decision
	join    [][]wire.ProcID
	leave   []wire.ProcID
	rest    []wire.ProcID // living members of the inputs that stay
	outputs Outputs

	living map[wire.ProcID]struct{} // members of rest and leave
}

// setMember is a process as a member of a set.
type setMember struct {
	set  uint32
	proc wire.ProcID
}

// Outputs are the sets that a part makes; 0 means none.
type Outputs struct {
	Joining []uint32
	Leaving uint32
	Result  uint32
}

// New returns an empty book. leaveTimeout is how long leavers have before they are terminated; 0
// means for ever.
func New(owner Owner, leaveTimeout time.Duration) *Book {
	return &Book{
		owner:        owner,
		leaveTimeout: leaveTimeout,
		ops:          map[uint32]*operation{},
		watches:      map[uint32]*watchers{},
		joining:      map[wire.ProcID]*operation{},
		leaving:      map[wire.ProcID]*operation{},
		outputs:      map[uint32]*operation{},
		inputs:       map[uint32]*operation{},
		votes:        map[wire.ProcID]int{},
		undecided:    map[uint32]*operation{},
	}
}

// maxQueue bounds the waiting operations, so that a program with many requests cannot keep the
// book busy.
const maxQueue = 1 << 10

// Submit accepts a request and returns the number of its operation, or refuses it with an error.
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
	// The request is acceptable, so it may supersede others.
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
	} else if _, err := b.grant(now, o, before); err != nil { // nothing has changed for the other operations
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

// possible returns an error if an operation can never be granted as things are.
func (b *Book) possible(o *operation) error {
	join, members := 0, 0
	var wants []Want
	for _, r := range o.req.parts() {
		for _, n := range r.Join {
			if r.bounded() {
				n = 1 // the number is known when its input is
			}
			join += n
			wants = append(wants, Want{n, r.On, r.Place})
		}
		in := map[wire.ProcID]struct{}{} // members of the inputs, for the check of Out
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
				continue // checked when the change that makes the set is decided
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

// turnedDown returns an error if a request that would supersede others would be refused now, with
// only the other requests before it.
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

// takesPart reports whether p counts for a change that is granted now: it is alive, and no
// committed change removes it.
func (b *Book) takesPart(p wire.ProcID) bool {
	o := b.leaving[p]
	return (o == nil || o.state.undecided()) && b.owner.Lives(p)
}

// largest returns an upper bound of the members that o may find in a set when its turn comes.
// living is their present number.
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

// resolve returns the set that an input of o means now, or 0 if there is none.
func (b *Book) resolve(o *operation, set uint32) uint32 {
	switch set {
	case 0:
		return b.owner.Main()
	case Latest:
		return b.latest(o.req.By)
	}
	return set
}

// latest returns the set of the processes that leave with p, or otherwise of those that came with
// it; 0 if there is none.
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

// supersede ends waiting requests for another size of the same set, and reports whether there was
// one.
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

// tell reports a new state of an operation.
func (b *Book) tell(o *operation, s State) {
	o.state = s
	e := Effect{Do: StateChanged, Op: o.number, State: s, Why: o.why}
	for i := range o.parts {
		e.Inputs, e.Outputs = append(e.Inputs, o.parts[i].in), append(e.Outputs, o.parts[i].outputs)
	}
	b.do(e)
}

func (b *Book) do(e Effect) { b.out = append(b.out, e) }

// Flush passes the effects to do, in order.
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

// Shortage returns the number of newcomers of the oldest operation that waits for Room, and the
// number that would be enough. It returns 0 if no operation waits for that.
func (b *Book) Shortage() (wants, least int) {
	for _, o := range b.queue {
		if o.wants > 0 {
			return o.wants, o.least
		}
	}
	return 0, 0
}

// RoomGrew says that there is more Room.
func (b *Book) RoomGrew(now time.Duration) { b.advance(now) }

// advance grants all operations that can be granted.
func (b *Book) advance(now time.Duration) {
	for again := true; again; {
		again = false
		before := map[uint32]struct{}{} // inputs of earlier operations
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
				break // the queue has changed
			}
		}
	}
}

// blocked reports whether an input of a queued operation belongs to an undecided or an earlier
// operation; then the operation need not be tried. It adds the inputs to before.
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

// State returns the state of an operation, or ErrNoOp if it is over.
func (b *Book) State(number uint32) (State, error) {
	if o := b.ops[number]; o != nil {
		return o.state, nil
	}
	return 0, ErrNoOp
}

// Concerns returns an undecided operation on which p votes, or 0.
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

// Decisions returns the number of decided changes. While it is constant, the operations that
// Concerns has returned are undecided.
func (b *Book) Decisions() uint64 { return b.decisions }

// Derived says that set was made from outputs of an undecided change. The set exists only if that
// change is committed.
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

// Leaves reports whether p leaves by a change that members may have seen.
func (b *Book) Leaves(p wire.ProcID) bool {
	o := b.leaving[p]
	return o != nil && Ready <= o.state && o.state <= Committed
}

// Cancel withdraws an operation. If it returns nil, the operation ends Cancelled, unless its next
// state is Adopting because the change was delivered before.
func (b *Book) Cancel(now time.Duration, number uint32) error {
	return b.cancel(now, number, Withdraw, Adopting)
}

// Break cancels an operation even if the change was delivered. If it returns nil, the operation
// ends Cancelled, unless the change was committed before.
func (b *Book) Break(now time.Duration, number uint32) error {
	return b.cancel(now, number, Break, Committed)
}

// Decline rolls an undecided operation back, also an accepted one, because a process of it takes
// no part. A committed operation stays.
func (b *Book) Decline(now time.Duration, number uint32, why error) {
	if o := b.ops[number]; o != nil {
		b.withdraw(o, Break, RolledBack, why)
		b.advance(now)
	}
}

// cancel withdraws an operation that has not reached the state late.
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

// End says that the job ends. It ends all operations.
func (b *Book) End() {
	b.ending = true
	for _, n := range slices.Sorted(maps.Keys(b.ops)) {
		switch o := b.ops[n]; {
		case o == nil: // ended together with another operation
		case o.state == Queued:
			b.finish(o, Refused, ErrEnding)
		case o.state.undecided():
			b.finish(o, RolledBack, ErrEnding)
		default:
			b.finish(o, Done, nil)
		}
	}
}

// Sizes returns the number of entries of each table.
func (b *Book) Sizes() map[string]int {
	return map[string]int{
		"operations":     len(b.ops),
		"queued":         len(b.queue),
		"watches":        len(b.watches),
		"newcomers":      len(b.joining),
		"leavers":        len(b.leaving),
		"undecided sets": len(b.outputs),
		"inputs":         len(b.inputs),
		"voters":         len(b.votes),
		"undecided":      len(b.undecided),
	}
}
