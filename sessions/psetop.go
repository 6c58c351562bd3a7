// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// PSetOp is an operation on process sets under the name and number that it has in the
// interface of dynamic processes with process sets (DPP, v2a).
type PSetOp uint8

// The operations: what goes in, and what comes out, in this order.
const (
	PSetOpNull         PSetOp = iota // no operation is pending
	PSetOpAdd                        // any number of sets; disjoint sets of newcomers, mostly one
	PSetOpSub                        // sets; the set of the members that leave
	PSetOpReplace                    // a set; the leavers, the newcomers, the result; "": an empty one
	PSetOpMalleable                  // a set; it comes back as PSetOpReplace
	PSetOpGrow                       // a set; the newcomers, the result
	PSetOpShrink                     // a set; the leavers, the result
	PSetOpUnion                      // sets; a set
	PSetOpDifference                 // sets; the members of the first that are not in the others
	PSetOpIntersection               // sets; a set
	PSetOpMulti                      // by Submit only; the sets of leavers and newcomers, and the results
	PSetOpSplit                      // a set; its parts
	PSetOpCancel                     // a set; nothing
)

var psetOps = [...]string{
	"NULL", "ADD", "SUB", "REPLACE", "MALLEABLE", "GROW", "SHRINK", "UNION", "DIFFERENCE", "INTERSECTION", "MULTI", "SPLIT", "CANCEL",
}

// String returns the published name, without MPI_PSETOP_.
func (o PSetOp) String() string {
	if int(o) < len(psetOps) {
		return psetOps[o]
	}
	return fmt.Sprintf("operation %d on process sets", uint8(o))
}

// PSetOperation is an operation and the sets that it has made: see PSetOp.
type PSetOperation struct {
	Op  PSetOp
	Out []string
}

// The keys of the info of PSetOp; and see COLText.
const (
	ProcsAdd  = "mpi_num_procs_add"  // how many processes come: Add, Grow, Replace; Add "2,3": two sets
	ProcsSub  = "mpi_num_procs_sub"  // how many leave, the last members: Sub, Shrink, Replace
	ProcsMin  = "mpi_num_procs_min"  // Request.Min
	ProcsMax  = "mpi_num_procs_max"  // Request.Max
	ProcsPref = "mpi_num_procs_pref" // Request.Pref; alone, of a Replace, Request.Size
	PartSizes = "parts"              // Split, and Add: the sizes of the sets that are made, "2,2,4"
)

// PSetOp requests an operation on process sets. It returns the operation and the sets that
// it makes, which have names, members and stores from then on.
//
// One process calls it. Local, but for round trips to the head. An operation by which
// processes come or go is pending until FinalizePSetOp; until then QueryPSetOp returns it to
// the members of the input. PSetOpMalleable leaves the size to the resource manager, within
// ProcsMin and ProcsMax. PSetOpCancel withdraws the last undecided operation that this
// session has requested with this input. Unions and the like are done at once: see
// Combine. The process follows the inputs of which it is a member: see QueryPSetOp.
//
// Errors:
//   - *RefusedError: the operation cannot be granted at once. The published call returns
//     NULL here. IPSetOp waits for its turn instead.
//   - ErrTooLate, of PSetOpCancel: a process got the operation from QueryPSetOp, so it has
//     to be finalized, or it was.
//   - ErrSet, ErrSetGone, mpi.ErrArg, ErrSession.
//
// MPI_Session_dyn_v2a_psetop of the DPP prototype.
func (s *Session) PSetOp(ctx context.Context, op PSetOp, in []string, info *mpi.Info) (_ PSetOperation, err error) {
	defer s.raise(&err)
	defer s.dpp.enter()()
	x, o, err := s.operate(ctx, op, in, info, true)
	if err != nil || o == nil {
		return x, err
	}
	return granted(ctx, x.Op, o)
}

// IPSetOp starts a PSetOp. One process calls it. Local. The operation may wait for others
// on the same sets, and for slots. The result may be read when the request is complete.
// When ctx ends the request ends, and the operation goes on.
//
// MPI_Session_dyn_v2a_psetop_nb of the DPP prototype.
func (s *Session) IPSetOp(ctx context.Context, op PSetOp, in []string, info *mpi.Info) (*PSetOperation, mpi.Request) {
	leave := s.dpp.enter()
	x, o, err := s.operate(ctx, op, in, info, false)
	leave()
	return &x, s.start("IPSetOp", func() error {
		if err == nil && o != nil {
			until, cancel := whileJob(ctx, s.proc)
			defer cancel()
			x, err = granted(until, x.Op, o)
		}
		s.raise(&err)
		return err
	})
}

// granted waits for the grant of an operation and returns its sets.
func granted(ctx context.Context, op PSetOp, o *Operation) (PSetOperation, error) {
	out, err := o.Granted(ctx)
	if err != nil {
		return PSetOperation{}, err
	}
	x := PSetOperation{Op: op}
	for _, p := range out {
		x.Out = append(x.Out, outputs(op, p.Joining, p.Leaving, p.Result)...)
	}
	return x, nil
}

// outputs returns the sets of an operation in the published order.
func outputs(op PSetOp, joining []string, leaving, result string) []string {
	o := Output{joining, leaving, result}
	if op != PSetOpReplace {
		return o.List()
	}
	if len(joining) == 0 {
		joining = []string{""}
	}
	return append(append([]string{leaving}, joining...), result)
}

// submission is an operation that a session has submitted.
type submission struct {
	*Operation
	in []string // the own names of its inputs
}

// operate does an operation on sets, or submits a change. The caller has the turn.
func (s *Session) operate(ctx context.Context, op PSetOp, in []string, info *mpi.Info, now bool) (x PSetOperation, o *Operation, err error) {
	const name = "PSetOp"
	if err := s.settle(ctx, name); err != nil {
		return x, nil, err
	}
	switch op {
	case PSetOpUnion, PSetOpDifference, PSetOpIntersection, PSetOpSplit:
		a := Algebra{Do: setOps[op], In: in}
		if op == PSetOpSplit {
			if a.Sizes, err = numbers(PartSizes, info.Get(PartSizes)); err != nil {
				return x, nil, s.fail(mpi.ErrArg, name, err)
			}
		}
		x.Op = op
		x.Out, err = s.algebra(name, a)
		return x, nil, err
	case PSetOpCancel:
		x.Op = op
		return x, nil, s.cancel(ctx, in)
	}
	r, err := requestOf(op, info)
	if err != nil {
		return x, nil, s.fail(mpi.ErrArg, name, err)
	}
	own, err := s.inputs(ctx, name, in)
	if err != nil {
		return x, nil, err
	}
	r.In, r.NoQueue = in, now
	if o, err = Submit(ctx, r); err != nil {
		return x, nil, err
	}
	s.dpp.forget(func(a submission) bool { return a.State().Over() })
	s.dpp.submitted = append(s.dpp.submitted, submission{o, own})
	if x.Op = op; op == PSetOpMalleable {
		x.Op = PSetOpReplace
	}
	return x, o, nil
}

var setOps = map[PSetOp]SetOp{PSetOpUnion: Union, PSetOpDifference: Difference, PSetOpIntersection: Intersection, PSetOpSplit: Split}

var kinds = map[PSetOp]Kind{
	PSetOpAdd: Add, PSetOpSub: Sub, PSetOpGrow: Grow, PSetOpShrink: Shrink, PSetOpReplace: Replace, PSetOpMalleable: Replace, PSetOpMulti: Multi,
}

// requestOf returns the request for an operation that changes processes.
func requestOf(op PSetOp, info *mpi.Info) (r Request, err error) {
	if r.Kind = kinds[op]; r.Kind == 0 || op == PSetOpMulti {
		return r, fmt.Errorf("PSetOp cannot request %v", op)
	}
	var add int
	if op == PSetOpAdd {
		if r.Add, err = joining(info); err != nil {
			return r, err
		}
	}
	for _, k := range []struct {
		key  string
		n    *int
		here bool
	}{
		{ProcsAdd, &add, op == PSetOpGrow || op == PSetOpReplace},
		{ProcsSub, &r.Sub, op == PSetOpSub || op == PSetOpShrink || op == PSetOpReplace},
		{ProcsMin, &r.Min, op != PSetOpSub && op != PSetOpShrink},
		{ProcsMax, &r.Max, op != PSetOpSub && op != PSetOpShrink},
		{ProcsPref, &r.Pref, op != PSetOpSub && op != PSetOpShrink},
	} {
		text, ok := info.Lookup(k.key)
		if !ok || !k.here {
			continue
		}
		if *k.n, err = strconv.Atoi(strings.TrimSpace(text)); err != nil || *k.n < 0 {
			return r, fmt.Errorf("%s is %.40q, not a number of processes", k.key, text)
		}
	}
	if add > 0 {
		r.Add = []int{add}
	}
	if r.Kind == Replace && add == 0 && r.Sub == 0 {
		switch {
		case op == PSetOpMalleable && r.Max > 0:
			r.Size = r.Max
		case r.Pref > 0:
			r.Size, r.Pref = r.Pref, 0
		default: // nothing says which size is wanted
			r.Min, r.Max = 0, 0
		}
	}
	r.COL, err = colOf(info)
	return r, err
}

// joining returns how many processes an Add has in each of its sets.
func joining(info *mpi.Info) (add []int, err error) {
	text, ok := info.Lookup(ProcsAdd)
	if ok {
		if add, err = numbers(ProcsAdd, text); err != nil {
			return nil, err
		}
	}
	parts, some := info.Lookup(PartSizes)
	if !some {
		return add, nil
	}
	list, err := numbers(PartSizes, parts)
	if err != nil || !ok {
		return list, err
	}
	if sum(add) != sum(list) {
		return nil, fmt.Errorf("%s is %.40q and %s is %.40q: their sums differ", PartSizes, parts, ProcsAdd, text)
	}
	return list, nil
}

func sum(list []int) (n int) {
	for _, k := range list {
		n += min(k, protocol.MaxSpawn+1) // more are refused, and no sum wraps
	}
	return n
}

// numbers parses numbers of processes.
func numbers(key, text string) (list []int, err error) {
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s is %.40q, not a list of numbers of processes", key, text)
		}
		list = append(list, n)
	}
	return list, nil
}

// inputs follows the inputs of an operation and returns their own names.
func (s *Session) inputs(ctx context.Context, op string, in []string) ([]string, error) {
	var own []string
	for _, name := range in {
		if canonical(name) == protocol.EmptyURI || name == protocol.LatestURI {
			continue
		}
		h, err := s.setNamed(op, name)
		if err != nil {
			return nil, err
		}
		own = append(own, h.set.URI)
		if h.set.Members.Index(s.process().Self) >= 0 && !watchersOf(s.proc).has(h.set.Number) {
			// If it cannot be followed, the head refuses the change as well.
			if _, err := s.follow(ctx, op, h); err != nil && !errors.Is(err, ErrRefused) {
				return nil, err
			}
		}
	}
	return own, nil
}

// cancel withdraws the operation that was submitted last with an input.
func (s *Session) cancel(ctx context.Context, in []string) error {
	const op = "PSetOp"
	if len(in) != 1 {
		return s.fail(mpi.ErrArg, op, fmt.Errorf("%v of %d sets", PSetOpCancel, len(in)))
	}
	h, err := s.setNamed(op, in[0])
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(s.dpp.submitted) {
		if !slices.Contains(a.in, h.set.URI) {
			continue
		}
		err := a.Cancel(ctx)
		if err == nil && a.State() != Cancelled {
			err = s.fail(ErrTooLate, op, fmt.Errorf("operation %d is %v", a.body.Op, a.State()))
		}
		if err == nil {
			s.dpp.forget(func(b submission) bool { return b.Operation == a.Operation })
		}
		return err
	}
	return &RefusedError{Class: ErrRefused, Text: fmt.Sprintf("this session has no pending operation on %s", in[0])}
}
