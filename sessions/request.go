// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/control/spawn"
	"gompi/internal/core"
	"gompi/mpi"
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operations that make processes come and go.
const (
	Add     Kind = Kind(change.Add)     // new processes, in sets of their own
	Sub     Kind = Kind(change.Sub)     // processes leave; the inputs stay as they are
	Grow    Kind = Kind(change.Grow)    // the input with new processes behind its members
	Shrink  Kind = Kind(change.Shrink)  // the input without the processes that leave
	Replace Kind = Kind(change.Replace) // Grow and Shrink in one
	Multi   Kind = Kind(change.Multi)   // several operations, granted, decided and rolled back together
)

// String returns the kind in lower case.
func (k Kind) String() string { return change.Kind(k).String() }

// Start is the order in which the newcomers of a request start. The head of the job starts
// them; the old members start none and wait for none. The newcomers of a host are a
// group. A group is up when all of its processes have called Init. Only StartAll takes
// spares (gompirun --spare), as they are up from the beginning.
//
// The spawn strategies of MaM (MULTIPLE, PARALLEL).
type Start uint8

// The orders.
const (
	StartAll        Start = Start(spawn.All)        // all at once
	StartSequential Start = Start(spawn.Sequential) // one group after the other, each when the one before is up
	// StartMultiple: all at once. Each group has a set and a world of its own, so Joining
	// has one set per host. Such a set can leave by itself (Ranks).
	StartMultiple Start = Start(spawn.Multiple)
	// StartParallel: sets as with StartMultiple, started in steps. In each step every process
	// that is up, newcomers too, stands for one further group: with C processes per host
	// the number of processes grows by up to 1 + C in each step.
	StartParallel Start = Start(spawn.Parallel)
)

// String returns the order in lower case.
func (s Start) String() string { return spawn.Strategy(s).String() }

// Place is how newcomers are spread over the hosts of the job, or over those that a
// request names.
type Place uint8

// The placements.
const (
	PlaceCompact Place = Place(spawn.Compact) // one host after the other, until its slots are full
	PlaceSpread  Place = Place(spawn.Spread)  // the same number on each host, as long as it has slots
)

// String returns the placement in lower case.
func (p Place) String() string { return spawn.Placement(p).String() }

// Request is a request for a change of process sets.
type Request struct {
	Kind Kind
	// In are the names of the inputs: one for Grow, Shrink and Replace, at least one for
	// Sub, any number for Add, also the empty set. "gompi://main" is the main set at the
	// time of the grant. "mpi://self", in just this spelling, is not "mpi://SELF" here: it
	// is the set of the processes that came or went by the latest change that had the
	// caller among them, at the time of the grant. The request is refused if there is none.
	In []string
	// Add is how many processes come. Only the kind Add may have several numbers, each for
	// a set of its own.
	Add []int
	// Sub is how many processes leave: the last ones of the input. Ranks says instead
	// which ones leave, by their ranks in the input.
	Sub   int
	Ranks []int
	// Size, in a Replace, is how many processes the Result has, instead of Add and Sub.
	// Of waiting requests for a size of one set only the latest stays. If the set has that
	// size already and all members live, or if a Replace says nothing of sizes, the
	// operation is Done at once: its Result is the input, and no member gets a change.
	Size int
	// Min, Max, Pref and Sizes allow a Grow, a Replace or an Add of one set fewer newcomers
	// than Add or Size says, if there are not enough slots at the grant. The operation
	// takes as many as there are slots for, at least one, within these bounds:
	//   - Min and Max bound the size of the Result; of the kind Add, the number of
	//     newcomers. Max 0: no upper bound. A Grow beyond Max goes to Max.
	//   - Pref is taken, if there are slots for it, rather than a larger number that is
	//     still smaller than Add or Size says. It needs Min or Max or Sizes.
	//   - Sizes are the only sizes allowed, at most 1,024; nil: any.
	//
	// Size and Pref lie within the bounds. While there are too few slots for the smallest
	// size the operation waits. It is refused with NoQueue, or if there never will be enough.
	// Parts of a Multi have no bounds.
	Min, Max, Pref int
	Sizes          []int

	Parts []Request // of a Multi, which has nothing else but Deadlines and NoQueue

	// Names are preferred names of the outputs, by position; "": no name; at most 1,024 in
	// all parts. Newcomers with one set per host (Start) have no names.
	Names   []string
	Command []string // what newcomers run; nil: what this process runs
	// Hosts are where newcomers start: hosts of the job, by their names in
	// gompi://host/NAME; nil: anywhere. Newcomers fill the slots of these hosts first, and
	// are then spread over them. With --strict-slots they wait for slots there.
	Hosts []string
	// Start is the order in which newcomers start, Place how they share the hosts. Parts
	// of a Multi have no Start.
	Start Start
	Place Place
	// COL is what the resource manager knows of the job from now on (gompirun --policy,
	// --manager, --to): the bytes of COL.Encode, at most 64 KiB. The manager ignores
	// anything else, and reports that once. The head of the job does not read it; gompictl
	// ops shows its length. See Operation.Update.
	COL []byte

	// Deadlines of the change; 0: those of the watch, or of the job.
	Deadlines Deadlines
	// NoQueue: a request that cannot be granted at once is refused. Where a resource
	// manager grants slots, so is a request that needs more slots than the job has.
	NoQueue bool
}

// wire returns the request as the head takes it.
func (r *Request) wire(ctx context.Context, p *core.Process, op string) (*protocol.Submit, error) {
	err := r.check()
	if err != nil {
		return nil, err
	}
	m := new(protocol.Submit)
	if m.Request, err = r.one(ctx, p, op); err != nil {
		return nil, err
	}
	parts := r.Parts
	if r.Kind != Multi {
		parts = []Request{*r}
	}
	for i := range parts {
		part := &parts[i]
		m.Parts = append(m.Parts, protocol.SubmitPart{Names: part.Names, Argv: part.Command, Hosts: part.Hosts})
	}
	m.COL = r.COL
	if n := len(protocol.Encode(m)); n > protocol.MaxBody {
		return nil, malformed("%d bytes, at most %d allowed", n, protocol.MaxBody)
	}
	return m, nil
}

// one returns a request with its parts.
func (r *Request) one(ctx context.Context, p *core.Process, op string) (change.Request, error) {
	q := change.Request{
		Kind: change.Kind(r.Kind), Join: r.Add, Leave: r.Sub, To: r.Size, NoQueue: r.NoQueue,
		Min: r.Min, Max: r.Max, Pref: r.Pref, Sizes: r.Sizes,
		Start: spawn.Strategy(r.Start), Place: spawn.Placement(r.Place),
		ToReady: r.Deadlines.Ready, ToAccept: r.Deadlines.Accept, ToCommit: r.Deadlines.Commit, Whole: r.Deadlines.Whole,
	}
	if len(r.Ranks) > 0 && len(r.In) != 1 {
		return q, malformed("ranks that leave, of %d sets", len(r.In))
	}
	for _, name := range r.In {
		if name == protocol.MainURI && len(r.Ranks) == 0 {
			q.In = append(q.In, 0)
			continue
		}
		if name == protocol.LatestURI {
			if len(r.Ranks) > 0 {
				return q, malformed("ranks that leave, of %s, which is known only when the operation is granted", name)
			}
			q.In = append(q.In, change.Latest)
			continue
		}
		if canonical(name) == protocol.EmptyURI {
			if r.Kind != Add {
				return q, malformed("%v of the empty set", r.Kind)
			}
			continue
		}
		h, err := registryOf(p).hold(ctx, name)
		if errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrSetGone) {
			return q, &RefusedError{Class: classOf(err), Text: detailOf(err).Error()}
		}
		if err != nil {
			return q, controlError(ctx, op, err)
		}
		defer h.drop() // the operation holds the set, or is refused
		set := h.set
		q.In = append(q.In, set.Number)
		for _, rank := range r.Ranks {
			if rank < 0 || rank >= set.Members.Len() {
				return q, &RefusedError{Class: mpi.ErrRank, Text: fmt.Sprintf("rank %d of the %d processes of %s", rank, set.Members.Len(), name)}
			}
			q.Out = append(q.Out, set.Members.At(rank))
		}
	}
	for i := range r.Parts {
		part, err := r.Parts[i].one(ctx, p, op)
		if err != nil {
			return q, err
		}
		q.Parts = append(q.Parts, part)
	}
	return q, nil
}

// RefusedError says why an operation was not taken, or did not happen. errors.Is finds
// ErrRefused in it, and its Class.
type RefusedError struct {
	Class mpi.Class // mpi.ErrArg, mpi.ErrRank, ErrSet, ErrSetGone, ErrSetReplaced, ErrNoWatch, or ErrRefused
	Text  string
	// Successor is the name of the set that has replaced the input, for ErrSetReplaced.
	Successor string
}

func (e *RefusedError) Error() string {
	if e.Successor != "" {
		return fmt.Sprintf("%v: %s: its successor is %s", ErrRefused, e.Text, e.Successor)
	}
	return fmt.Sprintf("%v: %s", ErrRefused, e.Text)
}

// Unwrap returns the error as an *mpi.Error.
func (e *RefusedError) Unwrap() error { return newError(e.Class, "Submit", errors.New(e.Text)) }

// Is makes errors.Is(err, ErrRefused) work.
func (e *RefusedError) Is(target error) bool { return target == error(ErrRefused) }

// refusal returns why an operation was refused, or has not happened.
func refusal(job wire.JobID, b *protocol.OpBody) *RefusedError {
	e := &RefusedError{Class: ErrRefused, Text: b.Text}
	switch b.Why {
	case protocol.WhyMalformed, protocol.WhyNotMember:
		e.Class = mpi.ErrArg
	case protocol.WhyNoSet:
		e.Class = ErrSet
	case protocol.WhySetGone:
		e.Class = ErrSetGone
	case protocol.WhyNoWatch, protocol.WhyUnwatched:
		e.Class = ErrNoWatch
	case protocol.WhyReplaced:
		e.Class, e.Successor = ErrSetReplaced, protocol.SetURI(job, b.Success)
	}
	return e
}

// Submit requests a change of process sets, and returns when the head has taken the
// request. The operation may then wait for other operations (state Queued) and for
// processes to start. It goes on when its requester ends. Any process may call it. Local,
// but for round trips to the head.
//
// Errors: a *RefusedError if the request is malformed, names a set that does not exist,
// removes a process that another change removes, or can never be granted; with NoQueue
// also if it cannot be granted now. mpi.ErrCancelled when ctx ends.
func Submit(ctx context.Context, r Request) (*Operation, error) {
	const op = "Submit"
	p, err := mpi.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	o := &Operation{proc: p.Core().Process(), release: func() error { return p.Release(ctx) }}
	o.proc.Heard(ctx) // main and its size are those that the last Commit gave
	m, err := r.wire(ctx, o.proc, op)
	if err == nil {
		if err = o.proc.Control.Ask(ctx, m, &o.body); err != nil {
			err = controlError(ctx, op, err)
		} else if o.body.Op == 0 {
			err = refusal(o.proc.Self.Job, &o.body)
		}
	}
	if err != nil {
		_ = p.Release(ctx)
		return nil, err
	}
	return o, nil
}

// ISubmit is Submit with a request that completes when the operation is granted. Its
// outputs have names, members and stores then, and Granted returns them at once. When ctx
// ends the request ends, and the operation goes on. Local. Errors: those of Submit; the
// request has those of Granted.
func ISubmit(ctx context.Context, r Request) (*Operation, mpi.Request, error) {
	o, err := Submit(ctx, r)
	if err != nil {
		return nil, mpi.Request{}, err
	}
	p, err := mpi.Acquire(ctx)
	if err != nil {
		o.Free()
		return nil, mpi.Request{}, err
	}
	return o, start(p, "ISubmit", func() error {
		defer p.Release(ctx)
		until, cancel := whileJob(ctx, p)
		defer cancel()
		_, err := o.Granted(until)
		return err
	}), nil
}
