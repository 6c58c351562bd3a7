// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// The calls, as errors and reports of blocked calls name them.
const (
	opSend      fault.Call = "Send"
	opSsend     fault.Call = "Ssend"
	opRsend     fault.Call = "Rsend"
	opIsend     fault.Call = "Isend"
	opIssend    fault.Call = "Issend"
	opIrsend    fault.Call = "Irsend"
	opRecv      fault.Call = "Recv"
	opIrecv     fault.Call = "Irecv"
	opSendrecv  fault.Call = "Sendrecv"
	opIsendrecv fault.Call = "Isendrecv"
	opRecvNew   fault.Call = "RecvNew"
)

// Send sends buf to rank dest with tag. dest may be ProcNull. Local in effect, but it may
// wait for the matching receive. On return buf may be reused: the message is copied or
// delivered. Errors: ErrRank, ErrTag, ErrType; ErrProcFailed, ErrLeft or ErrUnreachable if
// dest cannot be reached. MPI 4.1 section 3.2.1.
func Send[T any](c *Comm, buf []T, dest, tag int) error {
	return c.send(opSend, BufOf(buf), dest, tag, engine.Standard, false)
}

// Ssend is Send that returns only when a receive has matched the message.
// MPI 4.1 section 3.4.
func Ssend[T any](c *Comm, buf []T, dest, tag int) error {
	return c.send(opSsend, BufOf(buf), dest, tag, engine.Synchronous, false)
}

// Rsend is Send whose matching receive the caller knows to be posted. MPI 4.1 section 3.4.
func Rsend[T any](c *Comm, buf []T, dest, tag int) error {
	return c.send(opRsend, BufOf(buf), dest, tag, engine.Ready, false)
}

// Isend starts a Send. Local. buf must not be changed until the request is complete; the
// request has the errors. MPI 4.1 section 3.7.2.
func Isend[T any](c *Comm, buf []T, dest, tag int) Request {
	return c.isend(opIsend, BufOf(buf), dest, tag, engine.Standard, false)
}

// Issend starts an Ssend. MPI 4.1 section 3.7.2.
func Issend[T any](c *Comm, buf []T, dest, tag int) Request {
	return c.isend(opIssend, BufOf(buf), dest, tag, engine.Synchronous, false)
}

// Irsend starts an Rsend. MPI 4.1 section 3.7.2.
func Irsend[T any](c *Comm, buf []T, dest, tag int) Request {
	return c.isend(opIrsend, BufOf(buf), dest, tag, engine.Ready, false)
}

// Recv receives the next message from source (or AnySource) with tag (or AnyTag) into buf
// and returns its status. It waits for the message. On return the message is in buf.
//
// Errors, which do not affect the sender:
//   - ErrTruncate: the message is longer than buf, which it fills.
//   - ErrType: the message has other basic elements than T, and neither side is bytes. It
//     is dropped.
//   - ErrRank, ErrTag; ErrProcFailed, ErrLeft or ErrUnreachable if source cannot send any more.
//
// MPI 4.1 sections 3.2.4 and 3.3.
func Recv[T any](c *Comm, buf []T, source, tag int) (Status, error) {
	b := BufOf(buf)
	if n, ok := c.recvNow(b, source, tag); ok {
		return Status{Source: source, Tag: tag, Count: count(n, b.b.Type.Size), Bytes: n}, nil
	}
	return c.recv(opRecv, b, source, tag)
}

// Irecv starts a Recv. Local. buf must not be used until the request is complete; the
// request has the errors. MPI 4.1 section 3.7.2.
func Irecv[T any](c *Comm, buf []T, source, tag int) Request {
	return c.irecv(opIrecv, BufOf(buf), source, tag, false)
}

// Sendrecv sends one message and receives another. It does not deadlock, whatever the order
// of the partners. The buffers must not overlap; on return both may be reused. Errors: those of
// Send and Recv; ErrArg for buffers that overlap. MPI 4.1 section 3.10.
func Sendrecv[S, R any](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	return c.sendrecv(BufOf(send), dest, sendTag, BufOf(recv), source, recvTag)
}

// SendrecvReplace is Sendrecv with one buffer: the message received replaces the message
// sent. MPI 4.1 section 3.10.
func SendrecvReplace[T any](c *Comm, buf []T, dest, sendTag, source, recvTag int) (Status, error) {
	out := append([]T(nil), buf...)
	return c.sendrecv(BufOf(out), dest, sendTag, BufOf(buf), source, recvTag)
}

// Isendrecv starts a Sendrecv. Local. Both buffers must not be used until the request is
// complete. Its status is that of the received message. MPI 4.1 section 3.10.
func Isendrecv[S, R any](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) Request {
	return c.isendrecv(BufOf(send), dest, sendTag, BufOf(recv), source, recvTag)
}

// IsendrecvReplace starts a SendrecvReplace. MPI 4.1 section 3.10.
func IsendrecvReplace[T any](c *Comm, buf []T, dest, sendTag, source, recvTag int) Request {
	out := append([]T(nil), buf...)
	return c.isendrecv(BufOf(out), dest, sendTag, BufOf(buf), source, recvTag)
}

// RecvNew waits for the next matching message, allocates a slice of its length and receives
// it. Errors: those of Recv; ErrNoMemory for a message of more bytes than this process can
// have, which is dropped without effect on the sender. MPI 4.1 section 3.8.2 (matched probe).
func RecvNew[T any](c *Comm, source, tag int) ([]T, Status, error) {
	if b := BufOf[T](nil); b.b.Type.Err != nil { // or the message would be lost
		return nil, emptyStatus(), c.badRecv(opRecvNew, &b, source, tag)
	}
	m, st, err := c.probeFor(opRecvNew, source, tag)
	if err != nil {
		return nil, st, err
	}
	n := Elements[T](st)
	if n < 0 || st.Value {
		// Receiving nothing reports the truncation with its numbers and
		// leaves no message behind.
		n = 0
	}
	if noRoom := c.roomFor(opRecvNew, &st); noRoom != nil {
		st, err = Mrecv[T](m, nil)
		return nil, st, instead(err, noRoom)
	}
	buf := make([]T, n)
	st, err = Mrecv(m, buf)
	return buf, st, err
}

// instead returns why a message was received into an empty buffer, in place of the
// truncation error of that receive.
func instead(err, why error) error {
	if errors.Is(err, ErrTruncate) {
		return why
	}
	return err
}

// badSend returns what is wrong with the arguments of a send.
func (c *Comm) badSend(op fault.Call, b *Buf, dest, tag int) error {
	switch {
	case c == nil:
		return c.fail(&argFault{class: ErrComm, op: op, at: atPeerTag(dest, tag), err: errNoComm})
	case dest < 0 || dest >= c.core.Targets:
		return c.rankError(op, dest, tag)
	case tag < 0 || tag > MaxTag:
		return c.tagError(op, dest, tag)
	case b.b.Type != nil && b.b.Type.Err != nil:
		return c.fail(&argFault{class: ErrType, op: op, at: atPeerTag(dest, tag), err: b.b.Type.Err})
	}
	return c.expired(op, dest, tag)
}

func (c *Comm) badRecv(op fault.Call, b *Buf, source, tag int) error {
	switch {
	case c == nil:
		return c.fail(&argFault{class: ErrComm, op: op, at: atPeerTag(source, tag), err: errNoComm})
	case source < AnySource || source >= c.core.Targets:
		return c.rankError(op, source, tag)
	case tag < AnyTag || tag > MaxTag:
		return c.tagError(op, source, tag)
	case b != nil && b.b.Type != nil && b.b.Type.Err != nil:
		return c.fail(&argFault{class: ErrType, op: op, at: atPeerTag(source, tag), err: b.b.Type.Err})
	}
	return c.expired(op, source, tag)
}

func (c *Comm) rankError(op fault.Call, peer, tag int) error {
	return c.fail(&argFault{class: ErrRank, op: op, at: atTag(tag), err: fmt.Errorf("rank %d of %d", peer, c.core.Targets)})
}

func (c *Comm) tagError(op fault.Call, peer, tag int) error {
	return c.fail(&argFault{class: ErrTag, op: op, at: atPeer(peer), err: fmt.Errorf("tag %d is outside 0..%d", tag, MaxTag)})
}

// fillSend fills in the arguments of a send. It and fillRecv set the fields one by one: a
// literal would be built elsewhere and copied in wider pieces than it was written in, which
// takes 6 ns.
func (c *Comm) fillSend(a *engine.SendArgs, op fault.Call, b Buf, dest, tag int, mode engine.Mode, value bool) {
	a.Op, a.Buf, a.Dest, a.Tag, a.Plane = op, b.b, int32(dest), int32(tag), wire.TrafficP2P
	a.Mode, a.Value, a.User = mode, value, c.user
}

func (c *Comm) fillRecv(a *engine.RecvArgs, op fault.Call, b Buf, source, tag int, value bool) {
	a.Op, a.Buf, a.Source, a.Tag, a.Plane = op, b.b, int32(source), int32(tag), wire.TrafficP2P
	a.Value, a.User = value, c.user
}

func (c *Comm) send(op fault.Call, b Buf, dest, tag int, mode engine.Mode, value bool) error {
	if c == nil || uint(dest) >= uint(c.core.Targets) || uint(tag) > MaxTag || b.b.Type.Err != nil || c.user != nil {
		if c != nil && dest == ProcNull {
			return nil
		}
		if err := c.badSend(op, &b, dest, tag); err != nil {
			return err
		}
	} else if mode == engine.Standard && !value && c.core.Check == nil && c.core.Engine.SendNow(c.core.Ctx, b.b, int32(dest), int32(tag)) {
		return nil
	}
	var a engine.SendArgs
	c.fillSend(&a, op, b, dest, tag, mode, value)
	var f *fault.Fault
	if k := c.core.Check; k != nil {
		f = k.Send(&c.core.Comm, &a)
	} else {
		f = c.core.Engine.Send(c.core.Ctx, &a)
	}
	if f != nil {
		return c.errorOf(op, int32(dest), int32(tag), f)
	}
	return nil
}

func (c *Comm) isend(op fault.Call, b Buf, dest, tag int, mode engine.Mode, value bool) Request {
	if c != nil && dest == ProcNull {
		return c.completed(op, nullStatus())
	}
	if err := c.badSend(op, &b, dest, tag); err != nil {
		return c.failedRequest(op, err)
	}
	var a engine.SendArgs
	c.fillSend(&a, op, b, dest, tag, mode, value)
	if k := c.core.Check; k != nil {
		h, f := k.Isend(&c.core.Comm, &a)
		return c.request(op, a.Dest, a.Tag, h, f)
	}
	return Request{c.core.Engine.Isend(c.core.Ctx, &a)}
}

// recvNow is the fast path of a plain receive; false: call recv. It returns no Status,
// because moving one through memory takes 6 ns.
func (c *Comm) recvNow(b Buf, source, tag int) (bytes int64, ok bool) {
	if c == nil || uint(source) >= uint(c.core.Targets) || uint(tag) > MaxTag || b.b.Type.Err != nil || c.user != nil || c.core.Check != nil {
		return 0, false
	}
	return c.core.Engine.RecvNow(c.core.Ctx, b.b, int32(source), int32(tag))
}

func (c *Comm) recv(op fault.Call, b Buf, source, tag int) (Status, error) {
	if c != nil && source == ProcNull {
		return nullStatus(), nil
	}
	if err := c.badRecv(op, &b, source, tag); err != nil {
		return emptyStatus(), err
	}
	var a engine.RecvArgs
	c.fillRecv(&a, op, b, source, tag, false)
	var st engine.Status
	var f *fault.Fault
	if k := c.core.Check; k != nil {
		f = k.Recv(&c.core.Comm, &a, &st)
	} else {
		f = c.core.Engine.Recv(c.core.Ctx, &a, &st)
	}
	if f != nil {
		return statusOf(&st, b.b.Type.Size), c.errorOf(op, int32(source), int32(tag), f)
	}
	return statusOf(&st, b.b.Type.Size), nil
}

func (c *Comm) irecv(op fault.Call, b Buf, source, tag int, value bool) Request {
	if c != nil && source == ProcNull {
		return c.completed(op, nullStatus())
	}
	if err := c.badRecv(op, &b, source, tag); err != nil {
		return c.failedRequest(op, err)
	}
	var a engine.RecvArgs
	c.fillRecv(&a, op, b, source, tag, value)
	if k := c.core.Check; k != nil {
		h, f := k.Irecv(&c.core.Comm, &a)
		return c.request(op, a.Source, a.Tag, h, f)
	}
	return Request{c.core.Engine.Irecv(c.core.Ctx, &a)}
}

// badSendrecv returns what is wrong with the arguments, before anything is sent.
func (c *Comm) badSendrecv(op fault.Call, s Buf, dest, sendTag int, r Buf, source, recvTag int) error {
	if s.b.Overlaps(r.b) {
		return c.fail(&argFault{class: ErrArg, op: op, at: atPeerTag(dest, sendTag), err: fmt.Errorf("the buffers overlap: use %sReplace", op)})
	}
	if c == nil || source != ProcNull {
		return c.badRecv(op, &r, source, recvTag)
	}
	return nil
}

func (c *Comm) isendrecv(s Buf, dest, sendTag int, r Buf, source, recvTag int) Request {
	if err := c.badSendrecv(opIsendrecv, s, dest, sendTag, r, source, recvTag); err != nil {
		return c.failedRequest(opIsendrecv, err)
	}
	var out engine.SendArgs
	var in engine.RecvArgs
	var send *engine.SendArgs
	var recv *engine.RecvArgs
	if dest != ProcNull {
		if err := c.badSend(opIsendrecv, &s, dest, sendTag); err != nil {
			return c.failedRequest(opIsendrecv, err)
		}
		send = &out
		c.fillSend(send, opIsendrecv, s, dest, sendTag, engine.Standard, false)
	}
	if source != ProcNull {
		recv = &in
		c.fillRecv(recv, opIsendrecv, r, source, recvTag, false)
	}
	none := engine.Status{Source: ProcNull, Tag: AnyTag}
	if k := c.core.Check; k != nil {
		h, f := k.Pair(&c.core.Comm, opIsendrecv, send, recv, none)
		return c.request(opIsendrecv, int32(dest), int32(sendTag), h, f)
	}
	return Request{c.core.Engine.Pair(c.core.Ctx, opIsendrecv, send, recv, none)}
}

func (c *Comm) sendrecv(s Buf, dest, sendTag int, r Buf, source, recvTag int) (Status, error) {
	if err := c.badSendrecv(opSendrecv, s, dest, sendTag, r, source, recvTag); err != nil {
		return emptyStatus(), err
	}
	in := c.irecv(opSendrecv, r, source, recvTag, false)
	err := c.send(opSendrecv, s, dest, sendTag, engine.Standard, false)
	if err != nil {
		// The receive may never be answered; it must not outlive the call.
		in.Cancel()
	}
	st, rerr := in.Wait()
	if err == nil {
		err = rerr
	}
	return st, err
}
