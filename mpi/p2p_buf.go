// SPDX-License-Identifier: Apache-2.0

package mpi

import "gompi/internal/engine"

// The point-to-point calls for Bufs: those for slices with the same names, with
// the same rules. The zero Buf is an empty message. A Status counts elements of
// the Buf's type.

// full is b with a type.
func (b Buf) full() Buf {
	if b.b.Type == nil {
		return BufOf[byte](nil)
	}
	return b
}

// SendBuf is Send for a Buf.
func (c *Comm) SendBuf(b Buf, dest, tag int) error {
	return c.send(opSend, b.full(), dest, tag, engine.Standard, false)
}

// SsendBuf is Ssend for a Buf.
func (c *Comm) SsendBuf(b Buf, dest, tag int) error {
	return c.send(opSsend, b.full(), dest, tag, engine.Synchronous, false)
}

// RsendBuf is Rsend for a Buf.
func (c *Comm) RsendBuf(b Buf, dest, tag int) error {
	return c.send(opRsend, b.full(), dest, tag, engine.Ready, false)
}

// BsendBuf is Bsend for a Buf.
func (c *Comm) BsendBuf(b Buf, dest, tag int) error {
	return c.bsendBuf(opBsend, b.full(), dest, tag)
}

// IsendBuf is Isend for a Buf.
func (c *Comm) IsendBuf(b Buf, dest, tag int) Request {
	return c.isend(opIsend, b.full(), dest, tag, engine.Standard, false)
}

// IssendBuf is Issend for a Buf.
func (c *Comm) IssendBuf(b Buf, dest, tag int) Request {
	return c.isend(opIssend, b.full(), dest, tag, engine.Synchronous, false)
}

// IrsendBuf is Irsend for a Buf.
func (c *Comm) IrsendBuf(b Buf, dest, tag int) Request {
	return c.isend(opIrsend, b.full(), dest, tag, engine.Ready, false)
}

// IbsendBuf is Ibsend for a Buf.
func (c *Comm) IbsendBuf(b Buf, dest, tag int) Request {
	if c != nil && dest == ProcNull {
		return c.completed(opIbsend, nullStatus())
	}
	if err := c.bsendBuf(opIbsend, b.full(), dest, tag); err != nil {
		return c.failedRequest(opIbsend, err)
	}
	return c.completed(opIbsend, emptyStatus())
}

// RecvBuf is Recv for a Buf.
func (c *Comm) RecvBuf(b Buf, source, tag int) (Status, error) {
	b = b.full()
	if n, ok := c.recvNow(b, source, tag); ok {
		return Status{Source: source, Tag: tag, Count: count(n, b.b.Type.Size), Bytes: n}, nil
	}
	return c.recv(opRecv, b, source, tag)
}

// IrecvBuf is Irecv for a Buf.
func (c *Comm) IrecvBuf(b Buf, source, tag int) Request {
	return c.irecv(opIrecv, b.full(), source, tag, false)
}

// SendrecvBuf is Sendrecv for Bufs.
func (c *Comm) SendrecvBuf(send Buf, dest, sendTag int, recv Buf, source, recvTag int) (Status, error) {
	return c.sendrecv(send.full(), dest, sendTag, recv.full(), source, recvTag)
}

// SendrecvReplaceBuf is SendrecvReplace for a Buf, of which it makes a packed
// copy.
func (c *Comm) SendrecvReplaceBuf(b Buf, dest, sendTag, source, recvTag int) (Status, error) {
	out, err := Pack(nil, b)
	if err != nil {
		return emptyStatus(), c.argError(ErrType, opSendrecv, dest, sendTag, -1, -1, "", b.Err())
	}
	return c.sendrecv(BufOf(out), dest, sendTag, b.full(), source, recvTag)
}

// MrecvBuf is Mrecv for a Buf.
func (m *Message) MrecvBuf(b Buf) (Status, error) {
	return m.irecv(opMrecv, b.full(), false).Wait()
}

// ImrecvBuf is Imrecv for a Buf.
func (m *Message) ImrecvBuf(b Buf) Request { return m.irecv(opImrecv, b.full(), false) }

// SendInitBuf is SendInit for a Buf.
func (c *Comm) SendInitBuf(b Buf, dest, tag int) *Persistent {
	return c.sendInit(opSendInit, sendKind, b.full(), dest, tag, engine.Standard)
}

// SsendInitBuf is SsendInit for a Buf.
func (c *Comm) SsendInitBuf(b Buf, dest, tag int) *Persistent {
	return c.sendInit(opSsendInit, sendKind, b.full(), dest, tag, engine.Synchronous)
}

// RsendInitBuf is RsendInit for a Buf.
func (c *Comm) RsendInitBuf(b Buf, dest, tag int) *Persistent {
	return c.sendInit(opRsendInit, sendKind, b.full(), dest, tag, engine.Ready)
}

// BsendInitBuf is BsendInit for a Buf.
func (c *Comm) BsendInitBuf(b Buf, dest, tag int) *Persistent {
	return c.sendInit(opBsendInit, bufferedKind, b.full(), dest, tag, engine.Standard)
}

// RecvInitBuf is RecvInit for a Buf.
func (c *Comm) RecvInitBuf(b Buf, source, tag int) *Persistent {
	return c.recvInit(b.full(), source, tag)
}
