// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

const opFreeAll fault.Call = "FreeAll"

// RequestKind is a kind of persistent operation that MPI does not have, such as the
// processes of package proc: what a program or a library says of operations of its own, so
// that they are started, waited for, tested and freed as any others, alone and among them.
// It must not change once there are operations of it. Its functions may be nil, but Start.
// They are called with the operations locked, of which they use State alone.
// Gropp and Lusk, Dynamic Process Management in an MPI Setting (1995),
// MPI_New_request_type: its test and wait are those of the requests.
type RequestKind struct {
	Name string // for errors
	// Start starts operations that are inactive: one, or what a Startall has in a row. It
	// returns for each the request, mostly of GrequestStart, that is complete when it is;
	// they are of the process of the operations. On an error none is started.
	Start func(ops []*Persistent) ([]Request, error)
	// Next is called when Wait or Test has completed the request of an operation: what it
	// is active with from now on, as its next stage; the null request: it is inactive.
	Next func(op *Persistent) Request
	// Free ends operations: one, or what a FreeAll has in a row. The request of an active
	// one was freed before. Its error is that of the call.
	Free func(ops []*Persistent) error
}

// NewPersistent makes an operation of a kind. What state is the kind alone knows. If
// active is not the null request the operation is active from the start, as after Start.
// Local.
func (p *Process) NewPersistent(kind *RequestKind, state any, active Request) *Persistent {
	x := &Persistent{c: p.Self(), op: fault.Call(kind.Name), kind: userKind, user: kind, state: state, status: emptyStatus()}
	if !active.IsNull() {
		x.begin(active)
	}
	return x
}

// Kind is that of NewPersistent; nil for an operation of MPI's own, and for none. MPI_Request_type of
// Gropp and Lusk.
func (p *Persistent) Kind() *RequestKind {
	if p == nil {
		return nil
	}
	return p.user
}

// State is that of NewPersistent.
func (p *Persistent) State() any {
	if p == nil {
		return nil
	}
	return p.state
}

// begin makes p active with r. p.mu is held, unless nobody knows p yet.
func (p *Persistent) begin(r Request) {
	p.active, p.h = true, r.h
	if r.h.Engine() == nil { // null, or an error
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if !r.IsNull() {
			o := r.h.Orphan()
			st = o.Status
		}
		p.h = p.c.core.Engine.NewDone(p.c.core.Ctx, p.op, st)
	}
}

// over: the start under way is complete. p.mu is held.
func (p *Persistent) over() {
	p.active = false
	if p.user != nil && p.user.Next != nil {
		if r := p.user.Next(p); !r.IsNull() {
			p.begin(r)
		}
	}
}

// sameKind returns how many operations at the beginning of ps are of the kind of the
// first, which is a kind that another package registered.
func sameKind(ps []*Persistent) int {
	n := slices.IndexFunc(ps, func(p *Persistent) bool { return p == nil || p.user != ps[0].user || p.c != ps[0].c })
	if n < 0 {
		n = len(ps)
	}
	return n
}

// lockKind locks operations of one kind. Where it fails none is locked.
func lockKind(op fault.Call, ps []*Persistent) *Error {
	k := &ps[0].c.core.proc.kinds
	k.Lock() // who locks many waits for nobody who does
	defer k.Unlock()
	for i, p := range ps {
		if slices.Contains(ps[:i], p) {
			unlockKind(ps[:i])
			return p.stateError(op, "given twice")
		}
		p.mu.Lock()
	}
	return nil
}

func unlockKind(ps []*Persistent) {
	for _, p := range ps {
		p.mu.Unlock()
	}
}

// startKind starts operations of one kind, together.
func startKind(ps []*Persistent) error {
	wrong, err := tryStartKind(ps)
	return cmp.Or(ps[0].c.raise(wrong), err)
}

// tryStartKind is startKind without the error handler, which sees what is wrong.
func tryStartKind(ps []*Persistent) (wrong *Error, err error) {
	if wrong = lockKind(opStart, ps); wrong != nil {
		return wrong, nil
	}
	defer unlockKind(ps)
	for _, p := range ps {
		switch {
		case p.freed:
			return p.stateError(opStart, "freed"), nil
		case p.underWay():
			return p.stateError(opStart, "active already"), nil
		}
	}
	rs, err := ps[0].user.Start(ps)
	switch {
	case err != nil:
		return nil, err
	case len(rs) != len(ps):
		return ps[0].stateError(opStart, fmt.Sprintf("of a kind that has started %d of %d", len(rs), len(ps))), nil
	}
	for i, p := range ps {
		p.begin(rs[i])
	}
	return nil, nil
}

// FreeAll frees operations, as Free of each does; those of one kind in a row together.
// It frees those that it can and returns the errors of the others, joined. Gropp and
// Lusk, MPI_Request_free_all.
func FreeAll(ps []*Persistent) error {
	var all error
	for len(ps) > 0 {
		n, err := 1, error(nil)
		if p := ps[0]; p != nil && p.user != nil {
			n = sameKind(ps)
			err = freeKind(ps[:n])
		} else {
			err = p.Free()
		}
		if err != nil {
			all = errors.Join(all, err)
		}
		ps = ps[n:]
	}
	return all
}

// freeKind frees operations of one kind, together.
func freeKind(ps []*Persistent) error {
	wrong, err := tryFreeKind(ps)
	return cmp.Or(ps[0].c.raise(wrong), err)
}

// tryFreeKind is freeKind without the error handler.
func tryFreeKind(ps []*Persistent) (wrong *Error, err error) {
	if wrong = lockKind(opFreeAll, ps); wrong != nil {
		return wrong, nil
	}
	defer unlockKind(ps)
	for _, p := range ps {
		if p.freed {
			return p.stateError(opFree, "freed"), nil
		}
	}
	var all error
	for _, p := range ps {
		if p.underWay() {
			all = errors.Join(all, Request{p.h}.giveUp())
		}
		p.freed, p.active = true, false
	}
	if free := ps[0].user.Free; free != nil {
		all = errors.Join(all, free(ps))
	}
	return nil, all
}

// giveUp is Free of a request that a kind has given, whatever that is of.
func (r Request) giveUp() error {
	if q := r.generalized(); q != nil {
		return q.giveUp(r)
	}
	r.h.Engine().Forget(r.h)
	return nil
}
