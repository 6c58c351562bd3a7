// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"iter"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// Completable is what Waitall and its like take slices of: requests, which
// become null when they are complete, and persistent operations, which become
// inactive. Null and inactive ones are allowed. All belong to one process.
type Completable interface {
	Request | *Persistent
	Wait() (Status, error)
	GetStatus() (done bool, st Status, err error)
}

// Completion is how one of several operations ended.
type Completion struct {
	Index  int
	Status Status
	Err    error
}

// Waitall waits for all operations and returns the errors of those that failed,
// joined; WaitallStatuses tells them apart. MPI 4.1 section 3.7.5.
func Waitall[R Completable](ops []R) error {
	if reqs, ok := any(ops).([]Request); ok {
		return waitall(reqs)
	}
	var all error
	for _, op := range ops {
		if _, err := op.Wait(); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}

func waitall(reqs []Request) error {
	var all error
	for len(reqs) > 0 {
		n := 0
		if e := reqs[0].h.Engine(); e != nil {
			n = e.WaitRun(len(reqs), func(i int) engine.Handle { return reqs[i].h })
		}
		if n < len(reqs) {
			if _, err := reqs[n].Wait(); err != nil {
				all = errors.Join(all, err)
			}
			n++
		}
		clear(reqs[:n])
		reqs = reqs[n:]
	}
	return all
}

// WaitallStatuses is Waitall that tells how each operation ended: ended is as
// long as ops. MPI 4.1 section 3.7.5.
func WaitallStatuses[R Completable](ops []R, ended []Completion) error {
	if err := asMany("Waitall", len(ended), len(ops)); err != nil {
		return err
	}
	var all error
	for i, op := range ops {
		st, err := op.Wait()
		if err != nil {
			all = errors.Join(all, err)
		}
		ended[i] = Completion{i, st, err}
	}
	forget(ops)
	return all
}

func asMany(op fault.Call, got, want int) error {
	if got == want {
		return nil
	}
	return &Error{Class: ErrCount, Op: string(op), Peer: ProcNull, Tag: -1, Got: int64(got), Want: int64(want), Unit: "completions"}
}

// forget makes requests null.
func forget[R Completable](ops []R) {
	if reqs, ok := any(ops).([]Request); ok {
		clear(reqs)
	}
}

// Testall completes all operations if all are complete, or none.
// MPI 4.1 section 3.7.5.
func Testall[R Completable](ops []R) (done bool, err error) {
	if !allComplete(ops) {
		return false, nil
	}
	return true, Waitall(ops)
}

// TestallStatuses is Testall that tells how each operation ended: ended is as
// long as ops. MPI 4.1 section 3.7.5.
func TestallStatuses[R Completable](ops []R, ended []Completion) (done bool, err error) {
	if err := asMany("Testall", len(ended), len(ops)); err != nil {
		return false, err
	}
	if !allComplete(ops) {
		return false, nil
	}
	return true, WaitallStatuses(ops, ended)
}

func allComplete[R Completable](ops []R) bool {
	e, hs, _ := handles(requestsOf(ops))
	return e == nil || e.TestAll(hs)
}

// Waitany waits until one of the operations is complete and returns its index;
// Undefined if none is active. MPI 4.1 section 3.7.5.
func Waitany[R Completable](ops []R) (index int, st Status, err error) {
	_, index, st, err = first(ops, 1)
	return index, st, err
}

// Testany is Waitany that does not block; done is true with index Undefined if
// no operation is active. MPI 4.1 section 3.7.5.
func Testany[R Completable](ops []R) (done bool, index int, st Status, err error) {
	return first(ops, 0)
}

func first[R Completable](ops []R, need int) (done bool, index int, st Status, err error) {
	index, st = Undefined, emptyStatus()
	n := some(ops, need, 1, func(i int, o *engine.Outcome) {
		index = i
		st, err = finish(o)
	})
	return n != 0, index, st, err
}

// Waitsome waits until at least one operation is complete, and returns all that
// are, in order of index; nil if none is active. MPI 4.1 section 3.7.5.
func Waitsome[R Completable](ops []R) []Completion { return collect(ops, 1) }

// Testsome is Waitsome that does not block. MPI 4.1 section 3.7.5.
func Testsome[R Completable](ops []R) []Completion { return collect(ops, 0) }

func collect[R Completable](ops []R, need int) []Completion {
	var cs []Completion
	some(ops, need, len(ops), func(i int, o *engine.Outcome) {
		st, err := finish(o)
		cs = append(cs, Completion{i, st, err})
	})
	return cs
}

// Completed waits for the operations and yields each when it is complete, until
// none is active. A loop that is left early leaves the others as they are.
func Completed[R Completable](ops []R) iter.Seq[Completion] {
	return func(yield func(Completion) bool) {
		limit := len(ops)
		reqs, ok := any(ops).([]Request)
		if !ok {
			limit = 1 // what is complete cannot be made active again
		}
		type ended struct {
			i int
			o engine.Outcome
		}
		var batch []ended
		for {
			batch = batch[:0]
			some(ops, 1, limit, func(i int, o *engine.Outcome) { batch = append(batch, ended{i, *o}) })
			if len(batch) == 0 {
				return
			}
			for k := range batch {
				st, err := finish(&batch[k].o)
				if yield(Completion{batch[k].i, st, err}) {
					continue
				}
				for _, x := range batch[k+1:] {
					reqs[x.i] = Request{engine.NewOrphan(x.o)}
				}
				return
			}
		}
	}
}

// GetStatusAny is Testany that leaves the operation as it is.
// MPI 4.1 section 3.7.6.
func GetStatusAny[R Completable](ops []R) (done bool, index int, st Status, err error) {
	active := false
	for i, r := range requestsOf(ops) {
		if r.IsNull() {
			continue
		}
		active = true
		if done, st, err := r.GetStatus(); done {
			return true, i, st, err
		}
	}
	return !active, Undefined, emptyStatus(), nil
}

// GetStatusSome is Testsome that leaves the operations as they are.
// MPI 4.1 section 3.7.6.
func GetStatusSome[R Completable](ops []R) []Completion {
	var cs []Completion
	for i, r := range requestsOf(ops) {
		if r.IsNull() {
			continue
		}
		if done, st, err := r.GetStatus(); done {
			cs = append(cs, Completion{i, st, err})
		}
	}
	return cs
}

// GetStatusAll is TestallStatuses that leaves the operations as they are.
// MPI 4.1 section 3.7.6.
func GetStatusAll[R Completable](ops []R, ended []Completion) (done bool, err error) {
	if err := asMany("GetStatusAll", len(ended), len(ops)); err != nil {
		return false, err
	}
	if !allComplete(ops) {
		return false, nil
	}
	for i, op := range ops {
		_, st, why := op.GetStatus()
		if why != nil {
			err = errors.Join(err, why)
		}
		ended[i] = Completion{i, st, why}
	}
	return true, err
}

// requestsOf gives the operations as requests: those that are given, or the
// starts under way.
func requestsOf[R Completable](ops []R) []Request {
	if reqs, ok := any(ops).([]Request); ok {
		return reqs
	}
	reqs := make([]Request, len(ops))
	for i, p := range any(ops).([]*Persistent) {
		reqs[i] = p.underWayNow()
	}
	return reqs
}

// handles gives the requests as their engine knows them, and how many belong to
// none though they are not null.
func handles(reqs []Request) (e *engine.Engine, hs []engine.Handle, orphans int) {
	hs = make([]engine.Handle, len(reqs))
	for i, r := range reqs {
		hs[i] = r.h
		switch f := r.h.Engine(); {
		case f != nil && e == nil:
			e = f
		case f == nil && !r.IsNull():
			orphans++
		}
	}
	return e, hs, orphans
}

// some runs the engine's multiple completion over ops: it returns how many are
// complete, at most limit, or -1 if none is active.
func some[R Completable](ops []R, need, limit int, done func(i int, o *engine.Outcome)) int {
	reqs := requestsOf(ops)
	ps, _ := any(ops).([]*Persistent)
	var starts []Request
	if ps != nil {
		starts = slices.Clone(reqs)
	}
	ended := func(i int, o *engine.Outcome) {
		reqs[i] = Request{}
		if ps != nil {
			ps[i].settled(starts[i])
		}
		done(i, o)
	}
	e, hs, orphans := handles(reqs)
	if orphans > 0 {
		n := 0
		for i, r := range reqs {
			if n < limit && !r.IsNull() && r.h.Engine() == nil {
				o := r.h.Orphan()
				ended(i, &o)
				n++
			}
		}
		return n
	}
	if e == nil {
		return -1
	}
	// What is told of them may call the program, and so the engine.
	type one struct {
		i int
		o engine.Outcome
	}
	var first one
	var more []one
	n := e.WaitSome(hs, need, limit, func(i int, o engine.Outcome) {
		if first.o.Done {
			more = append(more, one{i, o})
		} else {
			first = one{i, o}
		}
	})
	if n > 0 {
		ended(first.i, &first.o)
	}
	for k := range more {
		ended(more[k].i, &more[k].o)
	}
	return n
}
