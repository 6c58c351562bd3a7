// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/engine"
)

// A blocking call with plain buffers that is like an earlier one is made the brief way,
// engine.Context.Brief. Here is found out whether a call is one: what is not, and what is wrong,
// the builders of call go on with.

// brief makes a brief call; made is false if nothing has happened.
func (c *Comm) brief(k *engine.FastColl, commutative bool) (made bool, err error) {
	f, made := c.core.Ctx.FastColl(k, collNames[k.Op], commutative)
	if f != nil {
		err = c.errorOf(collNames[k.Op], ProcNull, -1, f)
	}
	return made, err
}

// mayBrief reports whether calls on c may be brief.
func (c *Comm) mayBrief() bool { return c != nil && c.user == nil && c.core.Check == nil }

// briefBufs sets the buffers of a brief call on c, of which one may be empty, and what
// counts them, or reports that it cannot be one.
func (c *Comm) briefBufs(k *engine.FastColl, in, out buffer.Buf) bool {
	t := out.Type
	if out.Bytes() == 0 {
		t = in.Type
	}
	if !c.mayBrief() || t == nil || t.Err != nil || !t.Contiguous() || in.Bytes() > 0 && in.Type != t || in.Bytes()+out.Bytes() == 0 {
		return false
	}
	k.In, k.Out, k.Unit = in.Flat(), out.Flat(), t.Unit()
	return true
}

// briefPlace reports whether inner, the part at a byte of outer, is there or apart from it.
func briefPlace(k *engine.FastColl, inner, outer buffer.Buf, at int64) bool {
	if !inner.Overlaps(outer) {
		return true
	}
	k.InPlace = inner.Same(outer.Part(at, inner.Bytes()))
	return k.InPlace
}

func (c *Comm) briefBarrier() (made bool, err error) {
	if !c.mayBrief() {
		return false, nil
	}
	return c.brief(&engine.FastColl{Op: collectives.OpBarrier, Unit: 1}, false)
}

func (c *Comm) briefBcast(buf Buf, root int) (made bool, err error) {
	k := engine.FastColl{Op: collectives.OpBcast, Root: root}
	if !c.briefBufs(&k, buffer.Buf{}, buf.b) || uint(root) >= uint(c.core.Size) {
		return false, nil
	}
	k.Count = dtype.Quo(buf.b.Bytes(), k.Unit)
	return c.brief(&k, false)
}

func (c *Comm) briefAllgather(send, recv Buf) (made bool, err error) {
	k := engine.FastColl{Op: collectives.OpAllgather}
	n := send.b.Bytes()
	if !c.briefBufs(&k, send.b, recv.b) || recv.b.Bytes() != n*int64(c.core.Size) || !briefPlace(&k, send.b, recv.b, n*int64(c.core.Rank)) {
		return false, nil
	}
	k.Count = dtype.Quo(n, k.Unit)
	return c.brief(&k, false)
}

func (c *Comm) briefAlltoall(send, recv Buf) (made bool, err error) {
	k := engine.FastColl{Op: collectives.OpAlltoall}
	if !c.briefBufs(&k, send.b, recv.b) || send.b.Bytes() != recv.b.Bytes() || !briefPlace(&k, send.b, recv.b, 0) {
		return false, nil
	}
	n := int64(c.core.Size)
	k.Count = dtype.Quo(send.b.Bytes(), k.Unit) / n
	if k.Count*n*k.Unit != send.b.Bytes() || k.Unit != send.b.Type.Size {
		return false, nil
	}
	return c.brief(&k, false)
}

// briefReduce is that of Allreduce, Reduce, Scan and Exscan; at: this rank has a result.
func (c *Comm) briefReduce(kind collectives.Op, send, recv Buf, op *Op, root int, at bool) (made bool, err error) {
	if !at {
		recv = Buf{}
	}
	k := engine.FastColl{Op: kind, Root: root}
	if !c.briefBufs(&k, send.b, recv.b) || at && (send.b.Bytes() != recv.b.Bytes() || !briefPlace(&k, send.b, recv.b, 0)) || op.user != nil {
		return false, nil
	}
	base := send.b.Type.Base()
	if base == nil {
		return false, nil
	}
	if k.Kernel = op.on(base); k.Kernel == nil {
		return false, nil
	}
	k.Count = dtype.Quo(send.b.Bytes(), k.Unit)
	return c.brief(&k, op.commutative)
}

// briefAlltoallv is that of two ranks.
func (c *Comm) briefAlltoallv(send Buf, sendCounts, sendDispls []int, recv Buf, recvCounts, recvDispls []int) (made bool, err error) {
	k := engine.FastColl{Op: collectives.OpAlltoallv}
	if c == nil || c.core.Size != 2 || !c.briefBufs(&k, send.b, recv.b) || send.b.Overlaps(recv.b) {
		return false, nil
	}
	size := send.b.Type.Size
	if send.b.Bytes() == 0 {
		size = recv.b.Type.Size
	}
	me := c.core.Rank
	k.Unit = 1
	var ok [4]bool
	k.Kept, ok[0] = briefBlock(k.In, size, sendCounts, sendDispls, me)
	k.KeepAt, ok[1] = briefBlock(k.Out, size, recvCounts, recvDispls, me)
	k.In, ok[2] = briefBlock(k.In, size, sendCounts, sendDispls, 1-me)
	k.Out, ok[3] = briefBlock(k.Out, size, recvCounts, recvDispls, 1-me)
	if ok != [4]bool{true, true, true, true} || len(k.Kept) != len(k.KeepAt) || max(len(k.In), len(k.Out)) > engine.FastPairBytes {
		return false, nil
	}
	return c.brief(&k, false)
}

// briefBlock is the block of one of two ranks in a buffer of elements of so many bytes.
func briefBlock(b []byte, size int64, counts, displs []int, rank int) ([]byte, bool) {
	if len(counts) != 2 || displs != nil && len(displs) != 2 {
		return nil, false
	}
	at, n := 0, counts[rank]
	switch {
	case displs != nil:
		at = displs[rank]
	case rank == 1:
		at = counts[0]
	}
	room := int(dtype.Quo(int64(len(b)), size))
	if at < 0 || n < 0 || at > room || n > room-at {
		return nil, false
	}
	return b[int64(at)*size:][:int64(n)*size], true
}
