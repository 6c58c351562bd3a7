// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"slices"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

// slack is memory on both sides of a buffer, which no access touches.
const slack = 16

// room is memory of the origin for a layout, and where in it displacement 0 is.
// It has a pattern, also between the elements.
func (a *access) room(l *layout) (b []byte, zero int) {
	lo, hi := l.reach(elems[a.elem].size)
	lo, hi = min(lo, 0), max(hi, 0)
	b = aligned(slack - lo + hi + slack)
	copy(b, testlab.Payload(uint64(a.base), uint64(a.origin), len(b)))
	return b, slack - lo
}

// spread writes packed elements to where a layout says.
func spread(b []byte, zero int, l *layout, size int, packed []byte) {
	for i, d := range l.displs {
		copy(b[zero+d:][:size], packed[i*size:])
	}
}

// expected is what a program does: the memory of all ranks after each phase, nil
// where it is not looked at, and what each access has read, with all that lies
// around it; nil where nothing is foretold.
type expected struct {
	memory [][][]byte
	read   [][][]byte
}

// foretell plays a program on the memory of one process, one access after the
// other.
func foretell(p *program) (*expected, error) {
	mem := make([][]byte, p.ranks)
	for r := range mem {
		mem[r] = make([]byte, p.zones[r]*p.zone)
	}
	x := &expected{}
	for i := range p.phases {
		f := &p.phases[i]
		for _, s := range f.stores {
			copy(mem[s.rank][s.at:], s.b)
		}
		var reads [][]byte
		for k := range f.calls {
			read, err := f.calls[k].foretell(mem)
			if err != nil {
				return nil, fmt.Errorf("the oracle: %v: %w", &f.calls[k], err)
			}
			reads = append(reads, read)
		}
		x.read = append(x.read, reads)
		var now [][]byte
		if f.check {
			for _, m := range mem {
				now = append(now, slices.Clone(m))
			}
		}
		x.memory = append(x.memory, now)
	}
	return x, nil
}

func (a *access) foretell(mem [][]byte) (read []byte, err error) {
	e := &elems[a.elem]
	var was []byte
	for i, d := range a.there.displs {
		at := mem[a.target][a.base+d:][:e.size]
		was = append(was, at...)
		if err := a.change(e, at, a.value[i*e.size:][:e.size]); err != nil {
			return nil, err
		}
	}
	if a.free || a.kind == putAccess || a.kind == accAccess {
		return nil, nil
	}
	l := &a.result
	if a.kind == getAccess {
		l = &a.here
	}
	b, zero := a.room(l)
	spread(b, zero, l, e.size, was)
	return b, nil
}

// change does to one element of the target what an access does.
func (a *access) change(e *elem, at, v []byte) error {
	switch {
	case a.kind == getAccess:
	case a.kind == putAccess:
		copy(at, v)
	case a.kind == swapAccess:
		if slices.Equal(at, a.compare) {
			copy(at, v)
		}
	case a.op.String() == mpi.NoOp.String():
	case a.op.String() == mpi.Replace.String():
		copy(at, v)
	default:
		room := aligned(2 * e.size)
		in, inout := room[:e.size], room[e.size:]
		copy(in, v)
		copy(inout, at)
		if err := e.reduce(a.op, in, inout); err != nil {
			return err
		}
		copy(at, inout)
	}
	return nil
}

// differs says where two memories differ first.
func differs(got, want []byte) string {
	for i := range want {
		if got[i] != want[i] {
			end := min(i+16, len(want))
			return fmt.Sprintf("byte %d of %d: got % x, want % x", i, len(want), got[i:end], want[i:end])
		}
	}
	return ""
}
