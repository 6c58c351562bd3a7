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
	Sub     Kind = Kind(change.Sub)     // some leave; the inputs stay as they are
	Grow    Kind = Kind(change.Grow)    // new ones behind those of the input
	Shrink  Kind = Kind(change.Shrink)  // the input without those who leave
	Replace Kind = Kind(change.Replace) // both
	Multi   Kind = Kind(change.Multi)   // several, granted, decided and rolled back together
)

// String gives the kind in lower case.
func (k Kind) String() string { return change.Kind(k).String() }

// Start is in which order the newcomers of a request start. Who was there before starts
// none of them and waits for none: the head of the job does it all. A group is up when all
// of its processes have called Init. A spare (gompirun --spare) is taken by StartAll only,
// as it is up from the beginning.
//
// The spawn strategies of MaM (MULTIPLE, PARALLEL).
type Start uint8

// The orders.
const (
	StartAll        Start = Start(spawn.All)        // all at once
	StartSequential Start = Start(spawn.Sequential) // a host's when those of the host before are up
	// StartMultiple: all at once, each host's in a set and a world of their own, so that
	// Joining has a set a host. Such a set can be made to leave by itself (Ranks).
	StartMultiple Start = Start(spawn.Multiple)
	// StartParallel: sets as StartMultiple; each process that is there, newcomers too, has
	// one group started at a time, so that there are up to 1 + C times as many after each
	// step where hosts have C. A group is started when the one that has it started is up.
	StartParallel Start = Start(spawn.Parallel)
)

// String gives the order in lower case.
func (s Start) String() string { return spawn.Strategy(s).String() }

// Place is on which hosts newcomers start, of all or of those that a request names.
type Place uint8

// The placements.
const (
	PlaceCompact Place = Place(spawn.Compact) // the slots of hosts are filled, one host after the other
	PlaceSpread  Place = Place(spawn.Spread)  // as many on each, as long as it has slots
)

// String gives the placement in lower case.
func (p Place) String() string { return spawn.Placement(p).String() }

// Request is what somebody wants changed.
type Request struct {
	Kind Kind
	// In are the names of the inputs: one for Grow, Shrink and Replace, at least one
	// for Sub, any number for Add, also the empty set. "gompi://main" is the main set at the moment of the
	// grant. "mpi://self", in just this spelling, is not "mpi://SELF" here but the set
	// of those who come or go by the latest change that has the caller among them, at
	// the moment of the grant: refused if there is none.
	In []string
	// Add is how many processes come; only the kind Add has several numbers, each for
	// a set of its own.
	Add []int
	// Sub is how many leave, the last ones of the input; Ranks who leaves, instead:
	// ranks in the input.
	Sub   int
	Ranks []int
	// Size, in a Replace, is how many there are to be, instead of Add and Sub. Of
	// waiting requests for a size of one set only the latest stays. If there are so
	// many already, and all live, or a Replace says nothing of sizes, there is nothing
	// to do: the operation is Done at once, its Result is the input, and no member is
	// handed anything.
	Size int
	// Min, Max, Pref and Sizes are bounds within which a Grow, a Replace or an Add of
	// one set is content with fewer newcomers than Add or Size wishes for, if there are
	// no slots for all when it is granted: with as many as there are slots for, at least
	// one. They bound how many the Result has, of the kind Add how many come. Max 0 is
	// no bound from above; a Grow beyond Max comes to Max. Pref is taken, if there are
	// slots for it, rather than more that are still not all. Sizes are the only numbers
	// allowed, at most 1,024; nil: any. Size and Pref are within the bounds, and Pref
	// does not stand alone. While there are too few slots even for the least, the
	// operation waits as one without bounds does for all, or is refused (NoQueue, or if
	// there never will be as many). Not in parts of a Multi.
	Min, Max, Pref int
	Sizes          []int

	Parts []Request // of a Multi, which has nothing else but Deadlines and NoQueue

	// Names are preferred ones of the outputs, by position; "": none; at most 1,024 in all
	// parts. Newcomers that are a
	// set on each host (Start) have none.
	Names   []string
	Command []string // what newcomers run; nil: what this process runs
	// Hosts are where newcomers start: hosts of the job, by the names that they have in
	// gompi://host/NAME; nil: anywhere. They fill the slots of these hosts first, and
	// are then spread over them; with --strict-slots they wait for slots there.
	Hosts []string
	// Start is in which order newcomers start, and Place how they share the hosts. One
	// host's are a group, so on one host there is nothing to order. Not in parts of a
	// Multi: Start.
	Start Start
	Place Place
	// COL is what the manager of resources is told of the job from now on (gompirun
	// --policy, --manager, --to), at most 64 KiB: what COL.Encode gives. It is not used,
	// and that is said once, if it is something else. The head of the job does not read
	// it: gompictl ops shows how many bytes it has. See Operation.Update.
	COL []byte

	// Deadlines; 0 stands for those of the watch, or of the job.
	Deadlines Deadlines
	// NoQueue: what cannot be granted at once is refused. So is, where a manager of
	// resources grants slots, what needs more than the job has.
	NoQueue bool
}

// wire is the request as the head takes it.
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

// one is a request with its parts.
func (r *Request) one(ctx context.Context, p *core.Process, op string) (change.Request, error) {
	q := change.Request{
		Kind: change.Kind(r.Kind), Join: r.Add, Leave: r.Sub, To: r.Size, NoQueue: r.NoQueue,
		Min: r.Min, Max: r.Max, Pref: r.Pref, Sizes: r.Sizes,
		Start: spawn.Strategy(r.Start), Place: spawn.Placement(r.Place),
		ToReady: r.Deadlines.Ready, ToAccept: r.Deadlines.Accept, ToCommit: r.Deadlines.Commit, Whole: r.Deadlines.Whole,
	}
	if len(r.Ranks) > 0 && len(r.In) != 1 {
		return q, malformed("ranks who leave, of %d sets", len(r.In))
	}
	for _, name := range r.In {
		if name == protocol.MainURI && len(r.Ranks) == 0 {
			q.In = append(q.In, 0)
			continue
		}
		if name == protocol.LatestURI {
			if len(r.Ranks) > 0 {
				return q, malformed("ranks who leave, of %s, which is known when the operation is granted", name)
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
			return q, &RefusedError{Class: classOf(err), Text: told(err).Error()}
		}
		if err != nil {
			return q, controlError(ctx, op, err)
		}
		defer h.drop() // the operation holds it, or is refused
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

// RefusedError says why an operation was not taken, or did not happen. It is an error
// of one of the classes ErrArg, ErrRank, ErrSet, ErrSetGone, ErrSetReplaced, ErrNoWatch,
// or of none of these, and always of ErrRefused.
type RefusedError struct {
	Class mpi.Class // ErrRefused, or a closer one
	Text  string
	// Successor is the name of the set that has replaced the input: ErrSetReplaced.
	Successor string
}

func (e *RefusedError) Error() string {
	if e.Successor != "" {
		return fmt.Sprintf("%v: %s: its successor is %s", ErrRefused, e.Text, e.Successor)
	}
	return fmt.Sprintf("%v: %s", ErrRefused, e.Text)
}

// Unwrap is the error as an *mpi.Error.
func (e *RefusedError) Unwrap() error { return newError(e.Class, "Submit", errors.New(e.Text)) }

// Is makes errors.Is(err, ErrRefused) work.
func (e *RefusedError) Is(target error) bool { return target == error(ErrRefused) }

// refusal is why an operation was refused, or has not happened.
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

// Submit asks for an operation on process sets, and returns when the head has taken
// it: it may wait for others (state Queued) and for processes to start. The error is
// a *RefusedError if it is malformed, names no set, removes a process that another
// change removes, or could never be done; and with NoQueue if it cannot be granted
// just now. The operation goes on when its requester ends. Local.
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

// ISubmit is Submit with a request that completes when the operation is granted: its
// outputs have names, members and stores then, and Granted returns them at once. The
// request's error is that of Granted. When ctx ends the request does, too, and the
// operation goes on.
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
