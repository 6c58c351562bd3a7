// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"

	"gompi/internal/engine"
)

// Request is a nonblocking operation: a small value. The zero Request is the
// null request. A request that has been completed by Wait or Test, or freed,
// is stale: using it again gives ErrRequest (Wait, Test) without harm to
// whatever came after it. MPI 4.1 section 3.7.
type Request struct{ h engine.Handle }

// IsNull reports whether r is the null request.
func (r Request) IsNull() bool { return r.h.IsNull() }

func finish(o *engine.Outcome) (Status, error) {
	st := statusOf(&o.Status, o.Elem)
	if f := o.Status.Fault; f != nil {
		c, _ := o.Owner.(*Comm)
		op := o.Op
		if op == "" {
			op = "Wait"
		}
		return st, c.errorOf(op, o.Peer, o.Tag, f)
	}
	return st, nil
}

// Wait blocks until the operation is complete and frees the request. It is
// local in effect, but completion may need the peer. The null request returns
// at once with an empty status. Errors of the operation come out here. One
// goroutine at a time may wait for a request. MPI 4.1 section 3.7.3.
func (r Request) Wait() (Status, error) {
	e := r.h.Engine()
	if e == nil {
		return r.alone()
	}
	o := e.Wait(r.h)
	return finish(&o)
}

// alone is how a request ended that belongs to no process: the null request, or
// one of a call on no communicator.
func (r Request) alone() (Status, error) {
	if r.IsNull() {
		return emptyStatus(), nil
	}
	o := r.h.Orphan()
	return finish(&o)
}

// Test is Wait that does not block: done is false if the operation goes on.
// When it is true the request is freed. MPI 4.1 section 3.7.3.
func (r Request) Test() (done bool, st Status, err error) {
	e := r.h.Engine()
	if e == nil {
		st, err = r.alone()
		return true, st, err
	}
	o := e.Test(r.h)
	if !o.Done {
		return false, Status{}, nil
	}
	st, err = finish(&o)
	return true, st, err
}

// GetStatus is Test that does not free a complete request.
// MPI 4.1 section 3.7.6.
func (r Request) GetStatus() (done bool, st Status, err error) {
	e := r.h.Engine()
	if e == nil {
		st, err = r.alone()
		return true, st, err
	}
	o := e.Peek(r.h)
	if !o.Done {
		return false, Status{}, nil
	}
	st, err = finish(&o)
	return true, st, err
}

// Cancel asks to withdraw a send or a receive. It is local and returns at
// once; the request must still be completed, and its status tells whether it
// was Cancelled. Other operations cannot be cancelled (ErrRequest).
// MPI 4.1 section 3.8.4.
func (r Request) Cancel() error {
	e := r.h.Engine()
	if e == nil {
		return r.missing(opCancel)
	}
	o := e.Cancel(r.h)
	return refusal(opCancel, &o)
}

// Free gives up the request of a send or a receive: the operation completes by
// itself, and nobody learns when. The buffer must not be touched before the
// peer is known to have what it needs. Requests of other operations cannot be
// freed (ErrRequest). MPI 4.1 section 3.7.3.
func (r Request) Free() error {
	e := r.h.Engine()
	if e == nil {
		return r.missing(opFree)
	}
	o := e.Free(r.h)
	return refusal(opFree, &o)
}

const (
	opCancel engine.Op = "Cancel"
	opFree   engine.Op = "Free"
)

// missing is the error of op on a request that belongs to no process.
func (r Request) missing(op engine.Op) error {
	if r.IsNull() {
		return requestError(op, "it is null")
	}
	return nil
}

func requestError(op engine.Op, why string) error {
	return &Error{Class: ErrRequest, Op: string(op), Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: errors.New(why)}
}

// refusal is the error of op, which could not be applied to a request.
func refusal(op engine.Op, o *engine.Outcome) error {
	if o.Status.Fault == nil {
		return nil
	}
	o.Op = op
	_, err := finish(o)
	return err
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

// some runs the engine's multiple completion over reqs, which become null as
// they complete.
func some(reqs []Request, need, limit int, done func(i int, st Status, err error)) int {
	e, hs, orphans := handles(reqs)
	if orphans > 0 {
		n := 0
		for i, r := range reqs {
			if n < limit && !r.IsNull() && r.h.Engine() == nil {
				reqs[i] = Request{}
				st, err := r.alone()
				done(i, st, err)
				n++
			}
		}
		return n
	}
	if e == nil {
		return -1
	}
	return e.WaitSome(hs, need, limit, func(i int, o engine.Outcome) {
		reqs[i] = Request{}
		st, err := finish(&o)
		done(i, st, err)
	})
}

// Waitall waits for all requests, sets them to null and returns the errors of
// all that failed, joined. Null requests are allowed. All requests must belong
// to one process. MPI 4.1 section 3.7.5.
func Waitall(reqs []Request) error {
	var first error
	for len(reqs) > 0 {
		n := 0
		if e := reqs[0].h.Engine(); e != nil {
			n = e.WaitRun(len(reqs), func(i int) engine.Handle { return reqs[i].h })
		}
		if n < len(reqs) {
			if _, err := reqs[n].Wait(); err != nil {
				first = errors.Join(first, err)
			}
			n++
		}
		clear(reqs[:n])
		reqs = reqs[n:]
	}
	return first
}

// WaitallStatuses is Waitall that fills sts, which must be as long as reqs.
func WaitallStatuses(reqs []Request, sts []Status) error {
	if len(sts) != len(reqs) {
		return &Error{Class: ErrCount, Op: "Waitall", Peer: ProcNull, Tag: -1, Got: int64(len(sts)), Want: int64(len(reqs)), Unit: "statuses"}
	}
	var first error
	for i, r := range reqs {
		st, err := r.Wait()
		if err != nil {
			first = errors.Join(first, err)
		}
		sts[i], reqs[i] = st, Request{}
	}
	return first
}

// Waitany waits until one of the requests is complete, sets it to null and
// returns its index; Undefined if all are null. MPI 4.1 section 3.7.5.
func Waitany(reqs []Request) (index int, st Status, err error) {
	index, st = Undefined, emptyStatus()
	some(reqs, 1, 1, func(i int, s Status, e error) { index, st, err = i, s, e })
	return index, st, err
}

// Testany is Waitany that does not block; done is true with index Undefined if
// all requests are null. MPI 4.1 section 3.7.5.
func Testany(reqs []Request) (done bool, index int, st Status, err error) {
	index, st = Undefined, emptyStatus()
	n := some(reqs, 0, 1, func(i int, s Status, e error) { index, st, err = i, s, e })
	return n != 0, index, st, err
}

// Completion is one entry of what Waitsome and Testsome return.
type Completion struct {
	Index  int
	Status Status
	Err    error
}

// Waitsome waits until at least one request is complete, and returns all that
// are, in order of index; they become null. nil if all were null.
// MPI 4.1 section 3.7.5.
func Waitsome(reqs []Request) []Completion { return collect(reqs, 1) }

// Testsome is Waitsome that does not block.
func Testsome(reqs []Request) []Completion { return collect(reqs, 0) }

func collect(reqs []Request, need int) []Completion {
	var cs []Completion
	some(reqs, need, len(reqs), func(i int, st Status, err error) { cs = append(cs, Completion{i, st, err}) })
	return cs
}

// Testall completes all requests if all are complete, or none.
// MPI 4.1 section 3.7.5.
func Testall(reqs []Request) (done bool, err error) {
	if e, hs, _ := handles(reqs); e != nil && !e.TestAll(hs) {
		return false, nil
	}
	return true, Waitall(reqs)
}
