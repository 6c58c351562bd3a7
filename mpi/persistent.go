// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/core"
	"gompi/internal/engine"
)

const (
	opSendInit  fault.Call = "SendInit"
	opSsendInit fault.Call = "SsendInit"
	opRsendInit fault.Call = "RsendInit"
	opBsendInit fault.Call = "BsendInit"
	opRecvInit  fault.Call = "RecvInit"
	opStart     fault.Call = "Start"
)

// Persistent is an operation whose arguments are given once and which is
// started many times: point-to-point, collective, partitioned, or of a RequestKind
// of the program's own. It is inactive until Start, active until Wait or Test completes the start, and
// then inactive again. The buffer belongs to the library while it is active.
//
// An Init never fails: what is wrong with its arguments is the error of every
// Start. Safe for all goroutines; one at a time waits.
// MPI 4.1 sections 3.9 and 6.13, chapter 4.
type Persistent struct {
	c      *Comm
	op     fault.Call
	kind   persistentKind
	err    error // of the arguments
	status Status
	send   engine.SendArgs
	recv   engine.RecvArgs
	coll   engine.CollArgs
	part   *partition
	user   *RequestKind // userKind
	state  any          // of that

	mu     sync.Mutex
	h      engine.Handle // of the start under way
	active bool
	freed  bool
}

type persistentKind uint8

const (
	nullKind persistentKind = iota // with ProcNull, or wrong: complete at once
	sendKind
	bufferedKind
	recvKind
	collKind
	partKind
	userKind
)

// SendInit prepares a Send. Local. MPI 4.1 section 3.9.
func SendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return c.sendInit(opSendInit, sendKind, BufOf(buf), dest, tag, engine.Standard)
}

// SsendInit prepares an Ssend. Local. MPI 4.1 section 3.9.
func SsendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return c.sendInit(opSsendInit, sendKind, BufOf(buf), dest, tag, engine.Synchronous)
}

// RsendInit prepares an Rsend: the matching receive is posted before each
// Start. Local. MPI 4.1 section 3.9.
func RsendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return c.sendInit(opRsendInit, sendKind, BufOf(buf), dest, tag, engine.Ready)
}

// BsendInit prepares a Bsend; each Start needs buffer space. Local.
// MPI 4.1 section 3.9.
func BsendInit[T any](c *Comm, buf []T, dest, tag int) *Persistent {
	return c.sendInit(opBsendInit, bufferedKind, BufOf(buf), dest, tag, engine.Standard)
}

// RecvInit prepares a Recv. Local. MPI 4.1 section 3.9.
func RecvInit[T any](c *Comm, buf []T, source, tag int) *Persistent {
	return c.recvInit(BufOf(buf), source, tag)
}

func (c *Comm) recvInit(b Buf, source, tag int) *Persistent {
	p := &Persistent{c: c, op: opRecvInit}
	if c != nil && source == ProcNull {
		p.status = nullStatus()
		return p
	}
	if p.err = c.badRecv(p.op, &b, source, tag); p.err != nil {
		return p
	}
	p.kind = recvKind
	p.recv = engine.RecvArgs{Op: p.op, Buf: b.b, Source: int32(source), Tag: int32(tag), Plane: wire.TrafficP2P, User: c.user}
	return p
}

func (c *Comm) sendInit(op fault.Call, kind persistentKind, b Buf, dest, tag int, mode engine.Mode) *Persistent {
	p := &Persistent{c: c, op: op}
	if c != nil && dest == ProcNull {
		p.status = nullStatus()
		return p
	}
	if p.err = c.badSend(op, &b, dest, tag); p.err != nil {
		return p
	}
	p.kind = kind
	p.send = engine.SendArgs{Op: op, Buf: b.b, Dest: int32(dest), Tag: int32(tag), Plane: wire.TrafficP2P, Mode: mode, User: c.user}
	return p
}

// missing is the error of op if there is no operation.
func (p *Persistent) missing(op fault.Call) error {
	if p == nil {
		return requestError(op, "the operation is nil")
	}
	return nil
}

// stateError is a call that p's state does not allow, without the error handler.
func (p *Persistent) stateError(op fault.Call, what string) *Error {
	return p.c.newError(&argFault{class: ErrRequest, op: op, err: fmt.Errorf("%s is %s", p.op, what)})
}

// underWay reports whether a start has not been completed by Wait or Test, be
// it here or through Request. p.mu is held.
func (p *Persistent) underWay() bool {
	if p.active && !p.h.IsNull() && !p.c.core.Engine.Alive(p.h) {
		p.over()
	}
	return p.active
}

// Start starts the operation. Local, also for collectives; the ranks may Start
// different ones in different orders. It is an error to start an active one.
// MPI 4.1 sections 3.9 and 6.13.
func (p *Persistent) Start() error {
	if err := p.missing(opStart); err != nil {
		return err
	}
	if p.user != nil {
		return startKind([]*Persistent{p})
	}
	p.mu.Lock()
	if p.err != nil && !p.freed {
		defer p.mu.Unlock()
		return p.refused()
	}
	err := p.tryStart()
	p.mu.Unlock()
	return p.c.raise(err)
}

// tryStart is Start without the error handler. p.mu is held.
func (p *Persistent) tryStart() *Error {
	switch {
	case p.freed:
		return p.stateError(opStart, "freed")
	case p.underWay():
		return p.stateError(opStart, "active already")
	}
	if p.kind == nullKind {
		p.active, p.h = true, engine.Handle{}
		return nil
	}
	if err := p.c.lapsed(p.op, ProcNull, -1); err != nil {
		p.refuse()
		return err
	}
	if k := p.c.core.Check; k != nil {
		return p.startChecked(k)
	}
	return p.start()
}

func (p *Persistent) start() *Error {
	e, ctx := p.c.core.Engine, p.c.core.Ctx
	switch p.kind {
	case sendKind:
		p.h = e.Isend(ctx, &p.send)
	case recvKind:
		p.h = e.Irecv(ctx, &p.recv)
	case collKind:
		p.h = e.Icollective(ctx, &p.coll)
	case partKind:
		p.h = e.PartStart(p.part.p)
	case bufferedKind:
		if err := p.c.bsend(&p.send); err != nil {
			return err
		}
		p.h = engine.Handle{}
	}
	p.active = true
	return nil
}

// startChecked is start with the buffers booked as in use (GOMPI_CHECK).
func (p *Persistent) startChecked(k *core.Checker) *Error {
	a, peer, tag := core.SendUse(&p.send), p.send.Dest, p.send.Tag
	switch p.kind {
	case recvKind:
		a, peer, tag = core.RecvUse(&p.recv), p.recv.Source, p.recv.Tag
	case collKind:
		a, peer, tag = core.CollUse(&p.coll), ProcNull, -1
	case partKind:
		a, peer, tag = p.part.use(p.op), int32(p.part.peer), int32(p.part.tag)
	}
	var err *Error
	_, f := k.Started(&p.c.core.Comm, a, func(u *core.Use) engine.Handle {
		err = p.startInto(u)
		return p.h
	})
	if f != nil {
		return p.c.faultError(p.op, peer, tag, f)
	}
	return err
}

// startInto is start of which the buffers are watched, but for what is sent from a copy
// and partitions, which the program may write until they are ready.
func (p *Persistent) startInto(u *core.Use) *Error {
	switch p.kind {
	case partKind, bufferedKind:
		u.Unwatch()
	case recvKind:
		buf := p.recv.Buf
		p.recv.Buf = u.Land(buf)
		defer func() { p.recv.Buf = buf }()
	case collKind:
		in, out := p.coll.In, p.coll.Out
		u.LandColl(&p.coll)
		defer func() { p.coll.In, p.coll.Out = in, out }()
	}
	err := p.start()
	if err != nil {
		p.h = engine.Handle{}
	}
	return err
}

// Startall starts all operations. It starts those that it can and returns the
// errors of the others, joined. Those of one RequestKind in a row are started together.
// MPI 4.1 section 3.9.
func Startall(ps []*Persistent) error {
	var all error
	for len(ps) > 0 {
		n, err := 1, error(nil)
		if p := ps[0]; p != nil && p.user != nil {
			n = sameKind(ps)
			err = startKind(ps[:n])
		} else {
			err = p.Start()
		}
		if err != nil {
			all = errors.Join(all, err)
		}
		ps = ps[n:]
	}
	return all
}

// current returns the start under way; complete is true if it needs no waiting.
func (p *Persistent) current(op fault.Call) (h engine.Handle, complete bool, st Status, err *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.freed:
		return h, true, emptyStatus(), p.stateError(op, "freed")
	case !p.underWay():
		return h, true, emptyStatus(), nil
	case p.h.IsNull():
		p.active = false
		return h, true, p.status, nil
	}
	return p.h, false, Status{}, nil
}

// ended makes p inactive unless it was started again meanwhile.
func (p *Persistent) ended(h engine.Handle) {
	p.mu.Lock()
	if p.active && p.h == h {
		p.over()
	}
	p.mu.Unlock()
}

// Wait blocks until the start is complete; then p is inactive. An inactive
// operation returns at once with an empty status. Errors of the operation come
// out here. MPI 4.1 section 3.7.3.
func (p *Persistent) Wait() (Status, error) {
	if err := p.missing("Wait"); err != nil {
		return emptyStatus(), err
	}
	h, complete, st, err := p.current("Wait")
	if complete {
		return st, p.c.raise(err)
	}
	o := h.Engine().Wait(h)
	p.ended(h)
	return finish(&o)
}

// Test is Wait that does not block: done is false if the start goes on.
// MPI 4.1 section 3.7.3.
func (p *Persistent) Test() (done bool, st Status, err error) {
	if err := p.missing("Test"); err != nil {
		return true, emptyStatus(), err
	}
	h, complete, st, wrong := p.current("Test")
	if complete {
		return true, st, p.c.raise(wrong)
	}
	o := h.Engine().Test(h)
	if !o.Done {
		return false, Status{}, nil
	}
	p.ended(h)
	st, err = finish(&o)
	return true, st, err
}

// GetStatus is Test that leaves a complete start as it is.
// MPI 4.1 section 3.7.6.
func (p *Persistent) GetStatus() (done bool, st Status, err error) {
	return p.underWayNow().GetStatus()
}

// underWayNow is Request that leaves p as it is. What is wrong with p is how
// the request ends.
func (p *Persistent) underWayNow() Request {
	var none *Comm
	if err := p.missing("Wait"); err != nil {
		return none.failedRequest("Wait", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.freed:
		return none.failedRequest("Wait", p.stateError("Wait", "freed"))
	case !p.underWay():
		return Request{}
	case p.h.IsNull():
		return Request{engine.NewOrphan(engine.Outcome{Status: engine.Status{Source: int32(p.status.Source), Tag: int32(p.status.Tag)}})}
	}
	return Request{p.h}
}

// settled makes p inactive when r of underWayNow was completed.
func (p *Persistent) settled(r Request) {
	if p == nil {
		return
	}
	if r.h.Engine() == nil {
		r = Request{}
	}
	p.ended(r.h)
}

// Request is the start under way as a request, to complete it among others:
// that makes p inactive. The null request if p is inactive. Waitall and its
// like take persistent operations themselves.
func (p *Persistent) Request() Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed || !p.underWay() {
		return Request{}
	}
	if p.h.IsNull() {
		p.active = false
		return p.c.completed(p.op, p.status)
	}
	return Request{p.h}
}

// Active reports whether p was started and not completed since. Local.
func (p *Persistent) Active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.underWay()
}

// Cancel asks to withdraw the send or receive under way, as Request.Cancel.
// Collective and partitioned operations cannot be cancelled.
// MPI 4.1 section 3.8.4.
func (p *Persistent) Cancel() error {
	if err := p.missing(opCancel); err != nil {
		return err
	}
	if p.user != nil {
		r := p.Request()
		if r.IsNull() {
			return p.c.raise(p.stateError(opCancel, "inactive"))
		}
		return r.Cancel()
	}
	return p.c.raise(p.cancel())
}

func (p *Persistent) cancel() *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.freed:
		return p.stateError(opCancel, "freed")
	case p.kind == collKind || p.kind == partKind:
		return p.stateError(opCancel, "no send or receive")
	case !p.underWay():
		return p.stateError(opCancel, "inactive")
	case p.h.IsNull():
		return nil // complete
	}
	p.c.core.Engine.Cancel(p.h)
	return nil
}

// Free ends the operation; it cannot be used any more. An active send or
// receive completes by itself; an active collective or partitioned operation
// cannot be freed. Local. MPI 4.1 section 3.7.3.
func (p *Persistent) Free() error {
	if err := p.missing(opFree); err != nil {
		return err
	}
	if p.user != nil {
		return freeKind([]*Persistent{p})
	}
	return p.c.raise(p.free())
}

func (p *Persistent) free() *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed {
		return p.stateError(opFree, "freed")
	}
	if p.underWay() {
		if p.kind == collKind || p.kind == partKind {
			return p.stateError(opFree, "active")
		}
		if !p.h.IsNull() {
			p.c.core.Engine.Free(p.h)
		}
	}
	switch {
	case p.kind == partKind:
		p.c.core.Engine.PartFree(p.part.p)
	case p.kind == collKind && p.coll.Tag != 0:
		p.c.core.Ctx.FreePersistent(p.coll.Tag)
	}
	p.freed, p.active = true, false
	return nil
}
