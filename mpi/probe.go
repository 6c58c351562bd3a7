// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

const (
	opProbe   fault.Call = "Probe"
	opIprobe  fault.Call = "Iprobe"
	opMprobe  fault.Call = "Mprobe"
	opImprobe fault.Call = "Improbe"
	opMrecv   fault.Call = "Mrecv"
	opImrecv  fault.Call = "Imrecv"
)

// Message is a message taken by a matched probe: exactly one Mrecv or Imrecv
// receives it. MPI 4.1 section 3.8.2.
type Message struct {
	c    *Comm
	m    *engine.Message
	null bool // from ProcNull
}

// Probe waits until a message from source (or AnySource) with tag (or AnyTag)
// can be received and returns its status; Count is in bytes.
// MPI 4.1 section 3.8.1.
func (c *Comm) Probe(source, tag int) (Status, error) {
	_, _, st, err := c.probe(opProbe, source, tag, true, false)
	return st, err
}

// Iprobe is Probe that does not block. MPI 4.1 section 3.8.1.
func (c *Comm) Iprobe(source, tag int) (found bool, st Status, err error) {
	found, _, st, err = c.probe(opIprobe, source, tag, false, false)
	return found, st, err
}

// Mprobe is Probe that takes the message, so that no other receive gets it.
// MPI 4.1 section 3.8.2.
func (c *Comm) Mprobe(source, tag int) (*Message, Status, error) {
	_, m, st, err := c.probe(opMprobe, source, tag, true, true)
	return m, st, err
}

func (c *Comm) probeFor(op fault.Call, source, tag int) (*Message, Status, error) {
	_, m, st, err := c.probe(op, source, tag, true, true)
	return m, st, err
}

// Improbe is Mprobe that does not block. MPI 4.1 section 3.8.2.
func (c *Comm) Improbe(source, tag int) (found bool, m *Message, st Status, err error) {
	return c.probe(opImprobe, source, tag, false, true)
}

func (c *Comm) probe(op fault.Call, source, tag int, wait, take bool) (found bool, m *Message, _ Status, err error) {
	if c != nil && source == ProcNull {
		return true, &Message{c: c, null: true}, nullStatus(), nil
	}
	if err := c.badRecv(op, nil, source, tag); err != nil {
		return false, nil, emptyStatus(), err
	}
	a := engine.ProbeArgs{Op: op, Source: int32(source), Tag: int32(tag), User: c.user, Take: take, Wait: wait}
	var st engine.Status
	taken, found, f := c.core.Engine.Probe(c.core.Ctx, &a, &st)
	if f != nil {
		return false, nil, emptyStatus(), c.errorOf(op, int32(source), int32(tag), f)
	}
	if !found {
		return false, nil, emptyStatus(), nil
	}
	if !take {
		return true, nil, statusOf(&st, 1), nil
	}
	return true, &Message{c: c, m: taken}, statusOf(&st, 1), nil
}

// Mrecv receives a message that a matched probe took.
// MPI 4.1 section 3.8.3.
func Mrecv[T any](m *Message, buf []T) (Status, error) {
	return m.irecv(opMrecv, BufOf(buf), false).Wait()
}

// Imrecv starts an Mrecv. MPI 4.1 section 3.8.3.
func Imrecv[T any](m *Message, buf []T) Request { return m.irecv(opImrecv, BufOf(buf), false) }

func (m *Message) irecv(op fault.Call, b Buf, value bool) Request {
	if m == nil || m.c == nil {
		var none *Comm
		return none.failedRequest(op, requestError(op, "the message is nil"))
	}
	if m.null {
		return m.c.completed(op, nullStatus())
	}
	if b.b.Type.Err != nil {
		return m.c.failedRequest(op, m.c.fail(&argFault{class: ErrType, op: op, err: b.b.Type.Err}))
	}
	a := engine.RecvArgs{Op: op, Buf: b.b, Value: value, User: m.c.user}
	if k := m.c.core.Check; k != nil {
		h, f := k.Imrecv(&m.c.core.Comm, m.m, &a)
		return m.c.request(op, ProcNull, -1, h, f)
	}
	return Request{m.c.core.Engine.Imrecv(m.c.core.Ctx, m.m, &a)}
}
