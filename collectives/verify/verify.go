// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"

	"gompi/collectives"
	"gompi/collectives/step"
)

// Prove proves for one case that the algorithm keeps the rules of a schedule
// (see the package comment), that every rank ends with the right result, and
// that the costs it declares are the real ones. For reductions the result must
// be the same expression on all ranks, and have the ranks' order unless the
// algorithm needs a commutative operation. It does not ask whether the
// algorithm admits the case.
func Prove(alg *collectives.Algorithm, c Case) error {
	var v Verifier
	return v.Prove(alg, c)
}

// Verifier verifies many cases in the same memory. It is not safe for
// concurrent use; the zero value is ready.
type Verifier struct {
	m    machine
	want []symbol // scratch of result
}

// Prove is like the function Prove.
func (v *Verifier) Prove(alg *collectives.Algorithm, c Case) error {
	err := v.m.run(alg, c.Size, c.ranks(), func(r int) collectives.Args { return c.args(alg.Op, r) })
	for r := 0; err == nil && r < c.ranks(); r++ {
		if err = v.result(alg, r); err == nil {
			err = v.costs(alg, r)
		}
	}
	if err == nil {
		err = v.steps(alg, &c)
	}
	if err != nil {
		return fmt.Errorf("%v: %v: %w", alg, c, err)
	}
	return nil
}

// result checks what rank r ends with.
func (v *Verifier) result(alg *collectives.Algorithm, r int) error {
	s := &v.m.ranks[r]
	a := &s.args
	if alg.Op == collectives.OpBarrier {
		first, last := v.m.group(r, a.Remote > 0)
		if n := v.m.missing(r, first, last); n > 0 {
			return fmt.Errorf("rank %d leaves when it does not know %d ranks to have entered", r, n)
		}
		return nil
	}
	got := s.mem[s.start[collectives.Out]:][:s.size[collectives.Out]]
	if fold, ok := reduction(a); ok {
		fold.from, _ = v.m.group(r, a.Remote > 0)
		return v.reduced(alg, r, got, fold)
	}
	v.untouched(s)
	if a.Remote > 0 {
		v.interExpect(r)
		return v.compare(r, got)
	}
	switch alg.Op {
	case collectives.OpBcast:
		v.expect(step.Out(0, a.Count), a.Root, 0)
	case collectives.OpScatter, collectives.OpScatterv:
		v.expect(step.Out(0, a.Count), a.Root, v.m.ranks[a.Root].args.Scattered(r).Off)
	case collectives.OpGather, collectives.OpGatherv, collectives.OpAllgather, collectives.OpAllgatherv:
		for q := 0; q < a.Size && len(got) > 0; q++ {
			v.expect(a.Gathered(q), q, 0)
		}
	case collectives.OpAlltoall, collectives.OpAlltoallv:
		for q := range a.Size {
			v.expect(a.BlockFrom(q), q, v.m.ranks[q].args.BlockFor(r).Off)
		}
	case collectives.OpExscan: // of rank 0
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		for i, q := range a.Sources {
			if q < 0 {
				continue
			}
			from := &v.m.ranks[q].args
			edge := nth(from.Dests, int32(r), earlier(a.Sources, i))
			v.expect(a.FromNeighbor(i), int(q), from.ToNeighbor(edge).Off)
		}
	default:
		panic("gompi: BUG: no result known for " + alg.Op.String())
	}
	return v.compare(r, got)
}

// compare checks that rank r has in Out what is wanted.
func (v *Verifier) compare(r int, got []symbol) error {
	for i, w := range v.want {
		switch x := got[i]; {
		case x == w:
		case w == 0:
			return fmt.Errorf("rank %d writes element %d between the blocks", r, i)
		default:
			return fmt.Errorf("rank %d ends with %s in element %d, not with %s", r, v.show(x), i, v.show(w))
		}
	}
	return nil
}

// untouched sets want to what Out holds at the start.
func (v *Verifier) untouched(s *rankState) {
	a := &s.args
	v.want = append(v.want[:0], make([]symbol, s.size[collectives.Out])...)
	if a.InPlace && !a.OutInside() {
		v.expect(step.Out(a.Own(), a.InLen()), a.Rank, 0)
	}
}

// expect notes that b holds the contribution of a rank from element first on.
func (v *Verifier) expect(b collectives.Ref, rank int, first int64) {
	for i := range b.Len {
		v.want[b.Off+i] = v.m.syms.leaf(rank, first+i)
	}
}

// folding is what a reduction leaves on a rank: the contributions of so many
// ranks starting with rank from, from element first on.
type folding struct {
	from, ranks int
	first       int64
}

// reduction reports what a rank gets of a reduction; ok is false if nothing is
// reduced there.
func reduction(a *collectives.Args) (f folding, ok bool) {
	ranks := a.Size
	if a.Remote > 0 {
		ranks = a.Remote
	}
	switch a.Op {
	case collectives.OpReduce, collectives.OpAllreduce:
		return folding{ranks: ranks}, true
	case collectives.OpReduceScatterBlock, collectives.OpReduceScatter:
		off, _ := a.Shares(a.Rank, a.Rank+1)
		return folding{ranks: ranks, first: off}, true
	case collectives.OpScan:
		return folding{ranks: a.Rank + 1}, true
	case collectives.OpExscan:
		return folding{ranks: a.Rank}, a.Rank > 0
	}
	return folding{}, false
}

// reduced checks the result of a reduction.
func (v *Verifier) reduced(alg *collectives.Algorithm, r int, got []symbol, f folding) error {
	lead, _ := v.m.group(r, false)
	for i, x := range got {
		if r > lead && alg.Op == collectives.OpAllreduce {
			first := &v.m.ranks[lead]
			if w := first.mem[first.start[collectives.Out]+int64(i)]; x != w {
				return fmt.Errorf("rank %d ends with %s in element %d, but rank %d with %s", r, v.show(x), i, lead, v.show(w))
			}
			continue
		}
		if !v.m.syms.complete(x, f.first+int64(i), f.from, f.ranks, !alg.KeepsOrder(&v.m.ranks[r].args)) {
			return fmt.Errorf("rank %d ends with %s in element %d", r, v.show(x), i)
		}
	}
	return nil
}

// costs checks the declared costs of rank r.
func (v *Verifier) costs(alg *collectives.Algorithm, r int) error {
	s := &v.m.ranks[r]
	if s.high != s.size[collectives.Scratch] {
		return fmt.Errorf("rank %d uses %d elements of scratch, not %d", r, s.high, s.size[collectives.Scratch])
	}
	if want := alg.Sent(&s.args); s.sent != want {
		return fmt.Errorf("rank %d sends %d elements, not %d", r, s.sent, want)
	}
	return nil
}

// steps checks the declared number of steps. Where a block has no elements,
// messages and with them steps may be missing.
func (v *Verifier) steps(alg *collectives.Algorithm, c *Case) error {
	a := &v.m.ranks[0].args
	if a.Remote > 0 {
		a = &v.m.ranks[v.m.near].args // not idle
	}
	most := 0
	for r := range v.m.ranks {
		most = max(most, v.m.ranks[r].depth)
	}
	if want := alg.Steps(a); most > want || most < want && c.full(alg.Op) {
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
