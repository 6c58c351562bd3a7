// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
	"gompi/transport"
)

// packedBytes is how much is packed at once for a copy by the kernel: long enough that the
// system call costs little.
const packedBytes = 64 << 10

// runList is memory for one copy: packed bytes, and their places in the target.
type runList struct {
	runs   [transport.MaxRuns]transport.Run
	packed [packedBytes]byte
}

// copyFault returns the fault of a copy that failed.
func (t *Target) copyFault(err error) *fault.Fault {
	if err == nil {
		return nil
	}
	if errors.Is(err, transport.ErrPeerGone) {
		if f := t.s.gone(t.proc); f != nil {
			return f
		}
		return t.s.e.Fate(t.proc)
	}
	if errors.Is(err, transport.ErrHidden) {
		return &fault.Fault{Class: fault.Closed, Peer: -1, Got: -1, Want: -1, Err: err}
	}
	return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
}

func (t copied) put(src buffer.Buf, to Layout, n int64) *fault.Fault {
	if to.Type.Contiguous() && !src.Strided() {
		return t.copyFault(t.memory.Write(src.Slice(), t.key, to.Off))
	}
	l := t.s.runLists.Get().(*runList)
	defer t.s.runLists.Put(l)
	for off := int64(0); off < n; {
		b, runs := l.cut(src, to, off, n)
		if src.Strided() {
			src.Pack(b, off)
		}
		if err := t.memory.WriteRuns(runs, t.key); err != nil {
			return t.copyFault(err)
		}
		off += int64(len(b))
	}
	return nil
}

func (t copied) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
	if from.Type.Contiguous() && !dst.Strided() {
		return t.copyFault(t.memory.Read(dst.Slice(), t.key, from.Off))
	}
	l := t.s.runLists.Get().(*runList)
	defer t.s.runLists.Put(l)
	for off := int64(0); off < n; {
		b, runs := l.cut(dst, from, off, n)
		if err := t.memory.ReadRuns(runs, t.key); err != nil {
			return t.copyFault(err)
		}
		if dst.Strided() {
			dst.Unpack(off, b)
		}
		off += int64(len(b))
	}
	return nil
}

// cut takes as many of n packed bytes from off on as one copy can move. It returns the
// local bytes, packed into the list if the buffer is strided, and their runs.
func (l *runList) cut(local buffer.Buf, at Layout, off, n int64) ([]byte, []transport.Run) {
	var b []byte
	if local.Strided() {
		b = l.packed[:min(packedBytes, n-off)]
	} else {
		b = local.Slice()[off:n]
	}
	return l.list(b, &at, off)
}

// list makes the runs in the target for as many bytes of b as fit the list. The first is
// packed byte off.
func (l *runList) list(b []byte, at *Layout, off int64) ([]byte, []transport.Run) {
	k, count := int64(0), 0
	for k < int64(len(b)) && count < len(l.runs) {
		from, m := at.run(off+k, int64(len(b))-k)
		l.runs[count] = transport.Run{Mem: b[k:][:m], Off: from}
		k, count = k+m, count+1
	}
	return b[:k], l.runs[:count]
}

// change changes memory of another process under its guard.
func (t copied) change(src, result buffer.Buf, at Layout, o operation, n int64) *fault.Fault {
	p := t.s.pieces.Get().(*pieces)
	l := t.s.runLists.Get().(*runList)
	defer t.s.pieces.Put(p)
	defer t.s.runLists.Put(l)
	for off := int64(0); off < n; {
		b, runs := l.list(p.target[:o.cut(n-off, pieceBytes)], &at, off)
		k := int64(len(b))
		a := operand(src, off, k, p.operand[:])
		var r []byte
		if result.Bytes() > 0 {
			r = p.result[:k]
		}
		if f := t.s.lock(t.ctl); f != nil {
			return f
		}
		err := t.changeRuns(runs, b, a, r, &o)
		t.s.unlock(t.ctl)
		if err != nil {
			return t.copyFault(err)
		}
		if r != nil {
			result.Unpack(off, r)
		}
		off += k
	}
	return nil
}

// changeRuns changes runs under the guard. b is memory for them.
func (t copied) changeRuns(runs []transport.Run, b, operand, result []byte, o *operation) error {
	if o.op != kernel.Replace || result != nil {
		if err := t.memory.ReadRuns(runs, t.key); err != nil {
			return err
		}
	}
	o.applyGuarded(b, operand, result)
	if o.op == kernel.NoOp {
		return nil
	}
	return t.memory.WriteRuns(runs, t.key)
}

// swap works under the guard.
func (t copied) swap(compare, value, result buffer.Buf, off int64, _ operation) *fault.Fault {
	if f := t.s.lock(t.ctl); f != nil {
		return f
	}
	defer t.s.unlock(t.ctl)
	was := result.Slice()
	err := t.memory.Read(was, t.key, off)
	if err == nil && string(was) == string(compare.Slice()) {
		err = t.memory.Write(value.Slice(), t.key, off)
	}
	return t.copyFault(err)
}
