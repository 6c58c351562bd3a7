// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"gompi/collectives"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// buffers sets In and Out, of which one may be the zero Buf. Both must consist
// of the same basic elements, unless one has none.
func (a *call) buffers(in, out Buf) bool {
	s, r := in.b.Type, out.b.Type
	for _, t := range [...]*dtype.Type{s, r} {
		if t != nil && t.Err != nil {
			a.err = a.c.fail(&argFault{class: ErrType, op: a.Op, err: t.Err})
			return false
		}
	}
	switch {
	case s == r:
	case in.b.Bytes() == 0 || out.b.Bytes() == 0:
		if r == nil || out.b.Bytes() == 0 && in.b.Bytes() > 0 {
			r = s
		}
	case !sameBase(s.Base(), r.Base()):
		return a.bad(ErrType, "%s to send, %s to receive, which have other basic elements", s.Name, r.Name)
	}
	if r != nil {
		a.Unit = r.Unit()
	}
	a.In, a.Out = in.b, out.b
	return true
}

// sameBase compares basic types; nil stands for a mixture.
func sameBase(x, y *dtype.Type) bool {
	return x == y || x != nil && y != nil && x.Kind == y.Kind && x.Size == y.Size && x.Kind != dtype.Opaque
}

// units is the length of b in what Args counts.
func (a *call) units(b buffer.Buf) int64 { return dtype.Quo(b.Bytes(), a.Unit) }

// perElement is how many units an element of b has.
func (a *call) perElement(b buffer.Buf) int64 {
	if b.Type == nil || b.Bytes() == 0 && b.Type.Size > 0 { // the unit may be the other buffer's
		return 1
	}
	return dtype.Quo(b.Type.Size, a.Unit)
}

// length checks that b has as many units as the other arguments say; what
// names it in the error, in elements of b.
func (a *call) length(b buffer.Buf, want int64, what string) bool {
	got := a.units(b)
	if got == want {
		return true
	}
	if e := a.perElement(b); e > 1 && want%e == 0 {
		got, want = got/e, want/e
	} else if e > 1 {
		what = "basic " + what
	}
	return a.countError(ProcNull, got, want, what)
}

func (a *call) countError(peer int, got, want int64, what string) bool {
	a.err = a.c.fail(&argFault{class: ErrCount, op: a.Op, at: atPeer(peer), got: got, want: want, unit: what})
	return false
}

// What the buffers hold, in errors.
const (
	toSend    = "elements to send"
	toReceive = "elements to receive"
)

// times is n*k, or the largest number if that is too large: no buffer is so
// long.
func times(n int64, k int) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(k))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// share divides the units of b among n blocks.
func (a *call) share(b buffer.Buf, n int, what string) (int64, bool) {
	if n == 0 {
		return 0, a.length(b, 0, what)
	}
	units := a.units(b)
	if part := units / int64(n); part*int64(n) == units && (a.perElement(b) <= 1 || part%a.perElement(b) == 0) {
		return part, true
	}
	return 0, a.bad(ErrCount, "%d %s for %d blocks", b.Count(), what, n)
}

// root sets the root: a rank, of the remote group on an intercommunicator,
// where its own group says Root or ProcNull.
func (a *call) root(root int) bool {
	x := &a.Args
	switch {
	case root >= 0 && root < a.c.core.Targets:
		x.Root, x.RootRemote = root, x.Remote > 0
	case x.Remote > 0 && root == Root:
		x.Root = x.Rank
	case x.Remote > 0 && root == ProcNull:
		x.Root = -1
	default:
		return a.bad(ErrRoot, "root %d of %d ranks", root, a.c.core.Targets)
	}
	return true
}

func (a *call) isRoot() bool { return !a.Args.RootRemote && a.Args.Rank == a.Args.Root }

// isLeaf reports whether the caller is at the other end of a rooted operation:
// everybody is on an intracommunicator, also the root.
func (a *call) isLeaf() bool { return a.Args.Remote == 0 || a.Args.RootRemote }

// at is a buffer that only those use who have a part in a rooted operation.
func (b Buf) at(role bool) Buf {
	if role {
		return b
	}
	return Buf{}
}

// inPlace finds out whether inner stands at unit at of outer, where its data
// lands or comes from; any other overlap is an error.
func (a *call) inPlace(inner, outer buffer.Buf, at int64) bool {
	at *= a.Unit
	// First what is quicker: Overlaps may look at every block of strided buffers.
	if n := inner.Bytes(); a.Args.Remote == 0 && n > 0 && at+n <= outer.Bytes() && inner.Same(outer.Part(at, n)) {
		a.Args.InPlace = true
		return true
	}
	return !a.overlap() || a.bad(ErrArg, "the buffers overlap, and not as in place")
}

// overlap reports whether the call would write what it reads: of buffers with counts and
// displacements, the blocks that they name count.
func (a *call) overlap() bool {
	if !a.In.MayOverlap(a.Out) {
		return false
	}
	in, out := a.Parts()
	for _, x := range in {
		if slices.ContainsFunc(out, x.Overlaps) {
			return true
		}
	}
	return false
}

// apart is an error if the buffers overlap, of operations that have no form in
// place.
func (a *call) apart() bool {
	if a.overlap() {
		return a.bad(ErrArg, "the buffers overlap")
	}
	return true
}

// reduction sets the operation, which must be defined for the basic elements.
func (a *call) reduction(op *Op) bool {
	t := a.Out.Type
	if t == nil {
		t = a.In.Type
	}
	if t == nil {
		return a.bad(ErrType, "buffers without a type")
	}
	base := t.Base()
	if base == nil {
		return a.bad(ErrType, "%s: reductions work on elements of one basic type", t.Name)
	}
	a.Kernel, a.KernelName, a.Commutative = op.on(base), op.name, op.commutative
	if a.Kernel == nil {
		return a.bad(ErrOp, "%s of %s", op.name, base.Name)
	}
	if in := a.In.Type; in != nil && op.user != nil && in.Base() != base {
		return a.bad(ErrOp, "%s of %s, which is not the %s to receive", op.name, in.Base().Name, base.Name)
	}
	if k := a.c.core.Check; op.user != nil && k != nil {
		a.Kernel = k.During(a.Kernel)
	}
	return true
}

// vectors are the lists of a call where those of the caller cannot be used as
// they are: counts and displacements in units, buffers in another order.
type vectors struct {
	mem  []int64
	bufs []Buf
	pool *sync.Pool
}

// Release gives the memory to the next call.
func (v *vectors) Release() {
	v.mem = v.mem[:0]
	clear(v.bufs)
	v.bufs = v.bufs[:0]
	v.pool.Put(v)
}

func (a *call) vectors() *vectors {
	if a.Keep == nil {
		a.Keep = a.c.core.proc.vectors.Get().(*vectors)
	}
	return a.Keep.(*vectors)
}

// bufs is memory for n buffers, for as long as the call uses it; asked for
// once.
func (a *call) bufs(n int) []Buf {
	v := a.vectors()
	v.bufs = slices.Grow(v.bufs, n)[:n]
	return v.bufs
}

// vector is memory for n numbers, for as long as the call uses it.
func (a *call) vector(n int) []int64 {
	v := a.vectors()
	at := len(v.mem)
	if at+n > cap(v.mem) {
		v.mem = make([]int64, at, max(2*cap(v.mem), at+n)) // who has the earlier memory keeps it
	}
	v.mem = v.mem[:at+n]
	return v.mem[at:][:n:n]
}

// counts checks that there are n counts, none negative or longer than b, and
// gives them in units.
func (a *call) counts(counts []int, n int, b buffer.Buf, what string) ([]int64, bool) {
	if len(counts) != n {
		return nil, a.countError(ProcNull, int64(len(counts)), int64(n), "counts")
	}
	e, room := a.perElement(b), b.Count()
	for i, k := range counts {
		if k < 0 || e > 0 && int64(k) > room {
			return nil, a.badBlock(i, 0, k, b, what)
		}
	}
	if e == 1 {
		return int64s(counts), true
	}
	out := a.vector(n)
	for i, k := range counts {
		out[i] = int64(k) * e
	}
	return out, true
}

// blocks checks counts and displacements of the n blocks of b, and gives them
// in units. No displacements: the blocks lie side by side.
func (a *call) blocks(counts, displs []int, n int, b buffer.Buf, what string) (cs, ds []int64, ok bool) {
	if cs, ok = a.counts(counts, n, b, what); !ok {
		return nil, nil, false
	}
	e, room := a.perElement(b), a.units(b)
	if displs == nil {
		ds = a.vector(n)
		at := int64(0)
		for i, k := range cs {
			if ds[i] = at; k > room-at {
				return nil, nil, a.badBlock(i, int(at/max(e, 1)), counts[i], b, what)
			}
			at += k
		}
		return cs, ds, true
	}
	if len(displs) != n {
		return nil, nil, a.countError(ProcNull, int64(len(displs)), int64(n), "displacements")
	}
	for i, d := range displs {
		if d < 0 || e > 0 && int64(d) > b.Count()-int64(counts[i]) {
			return nil, nil, a.badBlock(i, d, counts[i], b, what)
		}
	}
	if e == 1 {
		return cs, int64s(displs), true
	}
	ds = a.vector(n)
	for i, d := range displs {
		ds[i] = int64(d) * e
	}
	return cs, ds, true
}

func (a *call) badBlock(i, at, n int, b buffer.Buf, what string) bool {
	whose := "rank"
	if a.Args.Op >= collectives.OpNeighborAllgather {
		whose = "neighbor"
	}
	return a.bad(ErrCount, "block of %s %d, [%d, %d+%d), lies outside %d %s", whose, i, at, at, n, b.Count(), what)
}
