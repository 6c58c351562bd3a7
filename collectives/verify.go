// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"fmt"
	"slices"
)

// Case is one call to verify, as all ranks see it.
type Case struct {
	Size, Root int
	Count      int64
	// Counts are the blocks of the v-forms, Size entries.
	Counts []int64
	// Displs gives the displacements of one rank; nil lays the blocks one
	// after the other.
	Displs func(rank int) []int64
	// InPlace says which ranks are in place; nil means none. Ranks that
	// cannot be (non-roots of rooted operations) are not asked.
	InPlace func(rank int) bool
	Segment int64
}

// String describes the case for error messages.
func (c Case) String() string {
	s := fmt.Sprintf("size %d, root %d, count %d", c.Size, c.Root, c.Count)
	if c.Counts != nil {
		s = fmt.Sprintf("size %d, counts %v", c.Size, c.Counts)
	}
	if c.Segment != 0 {
		s += fmt.Sprintf(", segment %d", c.Segment)
	}
	if c.InPlace != nil {
		s += ", in place"
	}
	return s
}

// args are the arguments of one rank.
func (c *Case) args(op Op, rank int) Args {
	a := Args{Op: op, Rank: rank, Size: c.Size, Root: c.Root, Count: c.Count, Counts: c.Counts, Segment: c.Segment}
	if op == OpAllgatherv {
		if c.Displs != nil {
			a.Displs = c.Displs(rank)
		} else {
			a.Displs = make([]int64, c.Size)
			for i := 1; i < c.Size; i++ {
				a.Displs[i] = a.Displs[i-1] + c.Counts[i-1]
			}
		}
	}
	if c.InPlace != nil {
		switch op {
		case OpReduce, OpGather, OpScatter:
			a.InPlace = rank == c.Root && c.InPlace(rank)
		case OpAllreduce, OpAllgather, OpAllgatherv, OpAlltoall:
			a.InPlace = c.InPlace(rank)
		}
	}
	return a
}

// Verify proves for one case that the algorithm keeps the rules of a schedule
// (see the package comment), that every rank ends with the right result, and
// that the costs it declares are the real ones. For reductions the result must
// be the same expression on all ranks, and have the ranks' order unless the
// algorithm needs a commutative operation. It does not ask whether the
// algorithm admits the case.
func Verify(alg *Algorithm, c Case) error {
	var v Verifier
	return v.Verify(alg, c)
}

// Verifier verifies many cases in the same memory. It is not safe for
// concurrent use; the zero value is ready.
type Verifier struct{ m machine }

// Verify is like the function Verify.
func (v *Verifier) Verify(alg *Algorithm, c Case) error {
	err := v.m.run(alg, c.Size, func(r int) Args { return c.args(alg.Op, r) })
	for r := 0; err == nil && r < c.Size; r++ {
		if err = v.result(alg, r); err == nil {
			err = v.costs(alg, r)
		}
	}
	if err == nil {
		err = v.steps(alg)
	}
	if err != nil {
		return fmt.Errorf("%v: %v: %w", alg, c, err)
	}
	return nil
}

// result checks what rank r ends with.
func (v *Verifier) result(alg *Algorithm, r int) error {
	s := &v.m.ranks[r]
	a := &s.args
	if alg.Op == OpBarrier {
		if n := v.m.arrived(r); n < a.Size {
			return fmt.Errorf("rank %d leaves when it knows %d ranks to have entered", r, n)
		}
		return nil
	}
	got := s.mem[s.start[Out]:][:s.size[Out]]
	expect := func(off, n int64, want func(i int64) symbol) error {
		for i := range n {
			if w := want(i); got[off+i] != w {
				return fmt.Errorf("rank %d ends with %s in element %d, not with %s", r, v.show(got[off+i]), off+i, v.show(w))
			}
			got[off+i] = 0
		}
		return nil
	}
	var err error
	switch alg.Op {
	case OpBcast:
		err = expect(0, a.Count, func(i int64) symbol { return v.m.syms.leaf(a.Root, i) })
	case OpScatter:
		err = expect(0, a.Count, func(i int64) symbol { return v.m.syms.leaf(a.Root, int64(r)*a.Count+i) })
	case OpGather, OpAllgather, OpAllgatherv:
		for q := 0; q < a.Size && len(got) > 0 && err == nil; q++ {
			b := gathered(a, q)
			err = expect(b.Off, b.Len, func(i int64) symbol { return v.m.syms.leaf(q, i) })
		}
	case OpAlltoall:
		for q := 0; q < a.Size && err == nil; q++ {
			err = expect(int64(q)*a.Count, a.Count, func(i int64) symbol { return v.m.syms.leaf(q, int64(r)*a.Count+i) })
		}
	case OpReduce, OpAllreduce:
		return v.reduced(alg, r, got)
	default:
		panic("gompi: BUG: no result known for " + alg.Op.String())
	}
	if err != nil {
		return err
	}
	if alg.Op == OpScatter && a.InPlace {
		return nil
	}
	for i, x := range got {
		if x != 0 {
			return fmt.Errorf("rank %d writes element %d between the blocks", r, i)
		}
	}
	return nil
}

// reduced checks the result of a reduction.
func (v *Verifier) reduced(alg *Algorithm, r int, got []symbol) error {
	size := len(v.m.ranks)
	for i, x := range got {
		if r > 0 && alg.Op == OpAllreduce {
			first := &v.m.ranks[0]
			if w := first.mem[first.start[Out]+int64(i)]; x != w {
				return fmt.Errorf("rank %d ends with %s in element %d, but rank 0 with %s", r, v.show(x), i, v.show(w))
			}
			continue
		}
		if !v.m.syms.complete(x, int64(i), size, alg.Commutative) {
			return fmt.Errorf("rank %d ends with %s in element %d", r, v.show(x), i)
		}
	}
	return nil
}

// costs checks the declared costs of rank r.
func (v *Verifier) costs(alg *Algorithm, r int) error {
	s := &v.m.ranks[r]
	if s.high != s.size[Scratch] {
		return fmt.Errorf("rank %d uses %d elements of scratch, not %d", r, s.high, s.size[Scratch])
	}
	if want := alg.Sent(&s.args); s.sent != want {
		return fmt.Errorf("rank %d sends %d elements, not %d", r, s.sent, want)
	}
	return nil
}

// steps checks the declared number of steps. Where a block has no elements,
// messages and with them steps may be missing.
func (v *Verifier) steps(alg *Algorithm) error {
	a := &v.m.ranks[0].args
	full := a.Count > 0 || alg.Op == OpBarrier
	switch alg.Op {
	case OpBcast, OpReduce, OpAllreduce: // may be cut into a block per rank
		full = a.Count >= int64(a.Size)
	case OpAllgatherv:
		full = !slices.Contains(a.Counts, 0)
	}
	most := 0
	for r := range v.m.ranks {
		most = max(most, v.m.ranks[r].depth)
	}
	if want := alg.Steps(a); most > want || full && most != want {
		return fmt.Errorf("takes %d steps, not %d", most, want)
	}
	return nil
}

// show prints a symbol: "2.5" is element 5 of rank 2, juxtaposition combines.
func (v *Verifier) show(s symbol) string { return string(v.appendSymbol(nil, s)) }

// appendSymbol stops at a length where a wrong expression is told well enough.
func (v *Verifier) appendSymbol(text []byte, s symbol) []byte {
	const enough = 120
	e := &v.m.syms.exprs[s]
	switch {
	case len(text) > enough:
		return text
	case s == 0:
		return append(text, "nothing"...)
	case e.left == 0:
		return fmt.Appendf(text, "%d.%d", e.lo, e.elem)
	}
	text = v.appendSymbol(append(text, '('), e.left)
	text = v.appendSymbol(append(text, ' '), e.right)
	return append(text, ')')
}
