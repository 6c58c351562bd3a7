// SPDX-License-Identifier: Apache-2.0

package mpi

import "gompi/internal/engine"

// Bufs are the operations of a communicator on buffers without an element type:
// the functions of this package with the same names, with the same rules.
// Derived datatypes are sent with them. The zero Buf is an empty message. A
// Status counts elements of the Buf's type.
type Bufs struct{ c *Comm }

// Bufs are the operations of c on values of [Buf]. Local.
func (c *Comm) Bufs() Bufs { return Bufs{c} }

// full is b with a type.
func (b Buf) full() Buf {
	if b.b.Type == nil {
		return BufOf[byte](nil)
	}
	return b
}

// Send is [Send] for a Buf.
func (x Bufs) Send(b Buf, dest, tag int) error {
	return x.c.send(opSend, b.full(), dest, tag, engine.Standard, false)
}

// Ssend is [Ssend] for a Buf.
func (x Bufs) Ssend(b Buf, dest, tag int) error {
	return x.c.send(opSsend, b.full(), dest, tag, engine.Synchronous, false)
}

// Rsend is [Rsend] for a Buf.
func (x Bufs) Rsend(b Buf, dest, tag int) error {
	return x.c.send(opRsend, b.full(), dest, tag, engine.Ready, false)
}

// Bsend is [Bsend] for a Buf.
func (x Bufs) Bsend(b Buf, dest, tag int) error {
	return x.c.bsendBuf(opBsend, b.full(), dest, tag)
}

// Isend is [Isend] for a Buf.
func (x Bufs) Isend(b Buf, dest, tag int) Request {
	return x.c.isend(opIsend, b.full(), dest, tag, engine.Standard, false)
}

// Issend is [Issend] for a Buf.
func (x Bufs) Issend(b Buf, dest, tag int) Request {
	return x.c.isend(opIssend, b.full(), dest, tag, engine.Synchronous, false)
}

// Irsend is [Irsend] for a Buf.
func (x Bufs) Irsend(b Buf, dest, tag int) Request {
	return x.c.isend(opIrsend, b.full(), dest, tag, engine.Ready, false)
}

// Ibsend is [Ibsend] for a Buf.
func (x Bufs) Ibsend(b Buf, dest, tag int) Request {
	if x.c != nil && dest == ProcNull {
		return x.c.completed(opIbsend, nullStatus())
	}
	if err := x.c.bsendBuf(opIbsend, b.full(), dest, tag); err != nil {
		return x.c.failedRequest(opIbsend, err)
	}
	return x.c.completed(opIbsend, emptyStatus())
}

// Recv is [Recv] for a Buf.
func (x Bufs) Recv(b Buf, source, tag int) (Status, error) {
	b = b.full()
	if n, ok := x.c.recvNow(b, source, tag); ok {
		return Status{Source: source, Tag: tag, Count: count(n, b.b.Type.Size), Bytes: n}, nil
	}
	return x.c.recv(opRecv, b, source, tag)
}

// Irecv is [Irecv] for a Buf.
func (x Bufs) Irecv(b Buf, source, tag int) Request {
	return x.c.irecv(opIrecv, b.full(), source, tag, false)
}

// Sendrecv is [Sendrecv] for Bufs.
func (x Bufs) Sendrecv(send Buf, dest, sendTag int, recv Buf, source, recvTag int) (Status, error) {
	return x.c.sendrecv(send.full(), dest, sendTag, recv.full(), source, recvTag)
}

// Isendrecv is [Isendrecv] for Bufs.
func (x Bufs) Isendrecv(send Buf, dest, sendTag int, recv Buf, source, recvTag int) Request {
	return x.c.isendrecv(send.full(), dest, sendTag, recv.full(), source, recvTag)
}

// IsendrecvReplace is [IsendrecvReplace] for a Buf, of which it makes a packed
// copy.
func (x Bufs) IsendrecvReplace(b Buf, dest, sendTag, source, recvTag int) Request {
	out, err := Pack(nil, b)
	if err != nil {
		return x.c.failedRequest(opIsendrecv, x.c.fail(&argFault{class: ErrType, op: opIsendrecv, at: atPeerTag(dest, sendTag), err: b.Err()}))
	}
	return x.c.isendrecv(BufOf(out), dest, sendTag, b.full(), source, recvTag)
}

// SendrecvReplace is [SendrecvReplace] for a Buf, of which it makes a packed
// copy.
func (x Bufs) SendrecvReplace(b Buf, dest, sendTag, source, recvTag int) (Status, error) {
	out, err := Pack(nil, b)
	if err != nil {
		return emptyStatus(), x.c.fail(&argFault{class: ErrType, op: opSendrecv, at: atPeerTag(dest, sendTag), err: b.Err()})
	}
	return x.c.sendrecv(BufOf(out), dest, sendTag, b.full(), source, recvTag)
}

// MrecvBuf is Mrecv for a Buf.
func (m *Message) MrecvBuf(b Buf) (Status, error) {
	return m.irecv(opMrecv, b.full(), false).Wait()
}

// ImrecvBuf is Imrecv for a Buf.
func (m *Message) ImrecvBuf(b Buf) Request { return m.irecv(opImrecv, b.full(), false) }

// SendInit is [SendInit] for a Buf.
func (x Bufs) SendInit(b Buf, dest, tag int) *Persistent {
	return x.c.sendInit(opSendInit, sendKind, b.full(), dest, tag, engine.Standard)
}

// SsendInit is [SsendInit] for a Buf.
func (x Bufs) SsendInit(b Buf, dest, tag int) *Persistent {
	return x.c.sendInit(opSsendInit, sendKind, b.full(), dest, tag, engine.Synchronous)
}

// RsendInit is [RsendInit] for a Buf.
func (x Bufs) RsendInit(b Buf, dest, tag int) *Persistent {
	return x.c.sendInit(opRsendInit, sendKind, b.full(), dest, tag, engine.Ready)
}

// BsendInit is [BsendInit] for a Buf.
func (x Bufs) BsendInit(b Buf, dest, tag int) *Persistent {
	return x.c.sendInit(opBsendInit, bufferedKind, b.full(), dest, tag, engine.Standard)
}

// RecvInit is [RecvInit] for a Buf.
func (x Bufs) RecvInit(b Buf, source, tag int) *Persistent {
	return x.c.recvInit(b.full(), source, tag)
}

// PsendInit is [PsendInit] for a Buf, whose elements are cut into partitions.
func (x Bufs) PsendInit(b Buf, partitions, dest, tag int) *Persistent {
	return x.c.partInit(opPsendInit, b.full(), partitions, dest, tag, true)
}

// PrecvInit is [PrecvInit] for a Buf.
func (x Bufs) PrecvInit(b Buf, partitions, source, tag int) *Persistent {
	return x.c.partInit(opPrecvInit, b.full(), partitions, source, tag, false)
}
