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
	PSetOpNull         PSetOp = iota // nothing is pending
	PSetOpAdd                        // any number of sets; disjoint sets of newcomers, mostly one
	PSetOpSub                        // sets; the set of those of them who leave
	PSetOpReplace                    // a set; who leaves, the newcomers, the others and the newcomers; "": nobody
	PSetOpMalleable                  // a set; it comes back as PSetOpReplace
	PSetOpGrow                       // a set; the newcomers, all
	PSetOpShrink                     // a set; who leaves, who stays
	PSetOpUnion                      // sets; a set
	PSetOpDifference                 // sets; what is in the first and in none of the others
	PSetOpIntersection               // sets; a set
	PSetOpMulti                      // is submitted (Submit); all sets of those who leave or come, and the results
	PSetOpSplit                      // a set; its parts
	PSetOpCancel                     // a set; nothing
)

var psetOps = [...]string{
	"NULL", "ADD", "SUB", "REPLACE", "MALLEABLE", "GROW", "SHRINK", "UNION", "DIFFERENCE", "INTERSECTION", "MULTI", "SPLIT", "CANCEL",
}

// String gives the published name, without MPI_PSETOP_.
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
	ProcsAdd  = "mpi_num_procs_add"  // how many come: Add, Grow, Replace; Add "2,3": two sets
	ProcsSub  = "mpi_num_procs_sub"  // how many leave, the last ones: Sub, Shrink, Replace
	ProcsMin  = "mpi_num_procs_min"  // Request.Min
	ProcsMax  = "mpi_num_procs_max"  // Request.Max
	ProcsPref = "mpi_num_procs_pref" // Request.Pref; alone, of a Replace, Request.Size
	PartSizes = "parts"              // Split, and Add: the sizes of the sets that are made, "2,2,4"
)

// PSetOp asks for an operation on process sets and returns it, and the sets that it
// makes, which have names, members and stores from then on. What makes processes come
// or go is pending until FinalizePSetOp; until then QueryPSetOp tells the members of the
// input of it. What cannot be granted at once is refused, with a *RefusedError, where
// the published call returns NULL: the caller goes on. IPSetOp waits for its turn. The
// process follows the inputs of which it is a member: see QueryPSetOp.
//
// PSetOpMalleable leaves the size to whoever decides, within ProcsMin and ProcsMax.
// PSetOpCancel takes back what this session has asked for with this input, and is not
// decided; ErrTooLate: somebody was told of it, so it is to be consumed, or it was. Unions
// and the like are at once: see Combine.
//
// Called by one process. Local, but for the head's answer.
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

// IPSetOp starts a PSetOp, which may wait for its turn: for others on the same sets, and
// for slots. What it returns is there when the request is complete. When ctx ends the
// request does, too, and the operation goes on.
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

// granted waits for the names of what an operation makes.
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

// outputs are the sets of an operation in the published order.
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

// requested is an operation that a session has asked for.
type requested struct {
	*Operation
	in []string // own names of its inputs
}

// operate does an operation, or submits it; one call of the session at a time.
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
	s.dpp.forget(func(a requested) bool { return a.State().Over() })
	s.dpp.asked = append(s.dpp.asked, requested{o, own})
	if x.Op = op; op == PSetOpMalleable {
		x.Op = PSetOpReplace
	}
	return x, o, nil
}

var setOps = map[PSetOp]SetOp{PSetOpUnion: Union, PSetOpDifference: Difference, PSetOpIntersection: Intersection, PSetOpSplit: Split}

var kinds = map[PSetOp]Kind{
	PSetOpAdd: Add, PSetOpSub: Sub, PSetOpGrow: Grow, PSetOpShrink: Shrink, PSetOpReplace: Replace, PSetOpMalleable: Replace, PSetOpMulti: Multi,
}

// requestOf is what an operation that changes processes asks for.
func requestOf(op PSetOp, info *mpi.Info) (r Request, err error) {
	if r.Kind = kinds[op]; r.Kind == 0 || op == PSetOpMulti {
		return r, fmt.Errorf("%v is not asked for in this way", op)
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
			return r, fmt.Errorf("%s is %.40q: a number of processes is wanted", k.key, text)
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
		default: // whoever decides has nothing to go by
			r.Min, r.Max = 0, 0
		}
	}
	r.COL, err = colOf(info)
	return r, err
}

// joining is how many processes an Add has in each of its sets.
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
		return nil, fmt.Errorf("%s is %.40q, and %s %.40q: as many are wanted", PartSizes, parts, ProcsAdd, text)
	}
	return list, nil
}

func sum(list []int) (n int) {
	for _, k := range list {
		n += min(k, protocol.MaxSpawn+1) // more are refused, and no sum wraps
	}
	return n
}

// numbers is a key with numbers of processes.
func numbers(key, text string) (list []int, err error) {
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s is %.40q: numbers of processes are wanted", key, text)
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
		h, err := s.named(op, name)
		if err != nil {
			return nil, err
		}
		own = append(own, h.set.URI)
		if h.set.Members.Index(s.process().Self) >= 0 && !watchersOf(s.proc).has(h.set.Number) {
			// Whatever keeps it from being followed keeps it from being changed.
			if _, err := s.follow(ctx, op, h); err != nil && !errors.Is(err, ErrRefused) {
				return nil, err
			}
		}
	}
	return own, nil
}

// cancel takes back what was asked for last with an input.
func (s *Session) cancel(ctx context.Context, in []string) error {
	const op = "PSetOp"
	if len(in) != 1 {
		return s.fail(mpi.ErrArg, op, fmt.Errorf("%v of %d sets", PSetOpCancel, len(in)))
	}
	h, err := s.named(op, in[0])
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(s.dpp.asked) {
		if !slices.Contains(a.in, h.set.URI) {
			continue
		}
		err := a.Cancel(ctx)
		if err == nil && a.State() != Cancelled {
			err = s.fail(ErrTooLate, op, fmt.Errorf("operation %d is %v", a.body.Op, a.State()))
		}
		if err == nil {
			s.dpp.forget(func(b requested) bool { return b.Operation == a.Operation })
		}
		return err
	}
	return &RefusedError{Class: ErrRefused, Text: fmt.Sprintf("this session has asked for nothing with %s", in[0])}
}
