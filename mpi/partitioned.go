// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/core"
	"gompi/internal/data/buffer"
	"gompi/internal/engine"
)

const (
	opPsendInit   fault.Call = "PsendInit"
	opPrecvInit   fault.Call = "PrecvInit"
	opPready      fault.Call = "Pready"
	opPreadyRange fault.Call = "PreadyRange"
	opPreadyList  fault.Call = "PreadyList"
	opParrived    fault.Call = "Parrived"
)

// MaxPartitions is the largest number of partitions of a partitioned
// operation.
const MaxPartitions = 1 << 16

const _ = -uint(MaxPartitions ^ engine.MaxPartitions) // they are equal

// partition is what a Persistent holds of a partitioned operation. Immutable.
type partition struct {
	p     *engine.Partitioned // nil with ProcNull
	buf   buffer.Buf
	parts int
	peer  int
	tag   int
	send  bool
}

func (p *partition) use(op fault.Call) core.Use {
	buf := []buffer.Buf{p.buf}
	if p.send {
		return core.BufUse(op, p.peer, p.tag, buf, nil)
	}
	return core.BufUse(op, p.peer, p.tag, nil, buf)
}

// PsendInit prepares to send buf in equal partitions, each of which leaves
// when Pready says that it is filled. len(buf) is a multiple of partitions.
// It matches a PrecvInit of dest with the same tag, in the order of the Inits;
// the receiver may cut the same bytes differently. Local; Start does not wait
// for the receiver. Wait returns when all partitions were made ready and the
// buffer may be reused. MPI 4.1 section 4.2.1.
func PsendInit[T any](c *Comm, buf []T, partitions, dest, tag int) *Persistent {
	return c.partInit(opPsendInit, BufOf(buf), partitions, dest, tag, true)
}

// PrecvInit prepares to receive into buf what a PsendInit of source sends;
// wildcards are not allowed. Parrived tells which partitions are there before
// Wait does. A sender with another number of bytes gives ErrMismatch in Wait,
// and is unharmed. Local. MPI 4.1 section 4.2.1.
func PrecvInit[T any](c *Comm, buf []T, partitions, source, tag int) *Persistent {
	return c.partInit(opPrecvInit, BufOf(buf), partitions, source, tag, false)
}

func (c *Comm) partInit(op fault.Call, b Buf, parts, peer, tag int, send bool) *Persistent {
	p := &Persistent{c: c, op: op, part: &partition{buf: b.b, parts: parts, peer: peer, tag: tag, send: send}}
	null := c != nil && peer == ProcNull
	if !null {
		// The receiving side has no wildcards either.
		if p.err = c.badSend(op, &b, peer, tag); p.err != nil {
			return p
		}
	}
	if parts < 1 || parts > MaxPartitions {
		p.err = c.fail(&argFault{class: ErrCount, op: op, at: atPeerTag(peer, tag), err: fmt.Errorf("%d partitions, outside 1..%d", parts, MaxPartitions)})
		return p
	}
	if b.b.Count()%int64(parts) != 0 {
		p.err = c.fail(&argFault{class: ErrCount, op: op, at: atPeerTag(peer, tag), err: fmt.Errorf("%d elements cannot be cut into %d equal partitions", b.b.Count(), parts)})
		return p
	}
	if null {
		p.status = nullStatus()
		return p
	}
	a := engine.PartArgs{Op: op, Buf: b.b, Send: send, Parts: int32(parts), Peer: int32(peer), Tag: int32(tag), User: c.user}
	if p.part.p = c.core.Engine.PartInit(c.core.Ctx, &a); p.part.p == nil {
		p.err = c.fail(&argFault{class: ErrArg, op: op, at: atPeerTag(peer, tag), err: fmt.Errorf("the communicator has no number left for %d partitions: use Dup", parts)})
		return p
	}
	p.kind = partKind
	return p
}

// Pready says that partition i of an active PsendInit is filled: it may leave,
// and belongs to the library until Wait. Several goroutines may call it at
// once. Local. MPI 4.1 section 4.2.2.
func (p *Persistent) Pready(i int) error { return p.ready(opPready, i, i) }

// PreadyRange is Pready for partitions lo to hi, both included.
// MPI 4.1 section 4.2.2.
func (p *Persistent) PreadyRange(lo, hi int) error { return p.ready(opPreadyRange, lo, hi) }

// PreadyList is Pready for the partitions listed; it stops at the first that
// cannot be. MPI 4.1 section 4.2.2.
func (p *Persistent) PreadyList(list []int) error {
	if err := p.missing(opPreadyList); err != nil {
		return err
	}
	for _, i := range list {
		if err := p.ready(opPreadyList, i, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *Persistent) partArg(op fault.Call, i int) error {
	return p.c.fail(&argFault{class: ErrArg, op: op, at: atPeerTag(p.part.peer, p.part.tag), err: fmt.Errorf("partition %d of %d", i, p.part.parts)})
}

// usable finds why op cannot be applied to p now.
func (p *Persistent) usable(op fault.Call, send bool) error {
	if err := p.missing(op); err != nil {
		return err
	}
	p.mu.Lock()
	freed := p.freed
	p.mu.Unlock()
	switch {
	case freed:
		return p.c.raise(p.stateError(op, "freed"))
	case p.part == nil || p.part.send != send:
		return p.c.raise(p.stateError(op, "of another kind"))
	}
	return p.err
}

func (p *Persistent) ready(op fault.Call, lo, hi int) error {
	if err := p.usable(op, true); err != nil {
		return err
	}
	n := p.part.parts
	if lo < 0 || lo >= n {
		return p.partArg(op, lo)
	}
	if hi < lo || hi >= n {
		return p.partArg(op, hi)
	}
	if p.kind == nullKind {
		return nil
	}
	again, active := p.c.core.Engine.PartReady(p.part.p, int32(lo), int32(hi))
	switch {
	case !active:
		return p.c.raise(p.stateError(op, "inactive"))
	case again >= 0:
		return p.c.fail(&argFault{class: ErrArg, op: op, at: atPeerTag(p.part.peer, p.part.tag), err: fmt.Errorf("partition %d is ready already", again)})
	}
	return nil
}

// Parrived reports whether partition i of a PrecvInit has arrived. It is true of one that is
// not active: after Wait, and before the first Start. It does not block.
// MPI 4.1 section 4.2.3.
func (p *Persistent) Parrived(i int) (bool, error) {
	if err := p.usable(opParrived, false); err != nil {
		return false, err
	}
	n := p.part.parts
	if i < 0 || i >= n {
		return false, p.partArg(opParrived, i)
	}
	if p.kind == nullKind {
		return true, nil
	}
	size := p.part.buf.Bytes() / int64(n)
	return p.c.core.Engine.PartArrived(p.part.p, int64(i)*size, int64(i+1)*size), nil
}
