// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gompi/mpi"
)

// A program is one window and a number of phases. It has no races: between two
// synchronisations a zone of memory is used in one way only, so that there is
// one result.
type program struct {
	seed    uint64
	ranks   int
	flavor  string // how memory comes: see flavorNames
	unit    int    // of offsets
	zone    int    // bytes
	zones   []int  // by rank
	apart   bool   // dynamic: each zone is attached by itself
	phases  []phase
	context bool // accesses are made with a context
}

type phase struct {
	scheme int
	check  bool // memory is compared afterwards
	stores []store
	calls  []access // each rank makes its own, in this order
}

// store is an initial value that the owner stores before the phase.
type store struct {
	rank, at int
	b        []byte
}

type accessKind uint8

const (
	putAccess accessKind = iota
	getAccess
	accAccess
	getAccAccess
	fetchAccess
	swapAccess
	countAccess // adds to a number by Get and Put under an exclusive lock
)

var accessNames = [...]string{"Put", "Get", "Accumulate", "GetAccumulate", "FetchAndOp", "CompareAndSwap", "Get+Put"}

// access is one call. here and there are the layouts of the two sides, result
// that of the result; base is where displacement 0 is at the target.
type access struct {
	kind                accessKind
	origin, target      int
	zone, base          int
	elem                int
	op                  mpi.Op
	here, there, result layout
	typed               bool // by the generic call, not the one with a Buf
	request             bool
	value, compare      []byte // elements, packed
	free                bool   // what it reads depends on the others
}

func (a *access) String() string {
	e := &elems[a.elem]
	s := fmt.Sprintf("rank %d: %s %s of %d, zone %d, displacement 0 at byte %d: %v", a.origin, accessNames[a.kind], e.name, a.target, a.zone, a.base, &a.there)
	if a.kind >= accAccess {
		s += ", " + a.op.String()
	}
	return s + fmt.Sprintf("; here %v, result %v, typed %v, request %v", &a.here, &a.result, a.typed, a.request)
}

func (p *program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %d: %d ranks, %s, unit %d, zones of %d bytes: %v, apart %v, context %v\n", p.seed, p.ranks, p.flavor, p.unit, p.zone, p.zones, p.apart, p.context)
	for i := range p.phases {
		f := &p.phases[i]
		fmt.Fprintf(&b, " %s, check %v, %d stores\n", schemeNames[f.scheme], f.check, len(f.stores))
		for k := range f.calls {
			fmt.Fprintf(&b, "  %v\n", &f.calls[k])
		}
	}
	return b.String()
}

var flavorNames = []string{"create", "allocate", "shared", "dynamic", "expose"}

// generate makes program seed for some ranks; 0: of any number.
func generate(seed uint64, ranks int) *program {
	r := rand.New(rand.NewPCG(seed, 14))
	n := []int{1, 2, 3, 4, 5, 8}[r.IntN(6)]
	if ranks == 0 {
		ranks = n
	}
	p := &program{
		seed: seed, ranks: ranks, flavor: flavorNames[r.IntN(len(flavorNames))],
		unit: 1 << r.IntN(4), zone: []int{64, 256, 1000 &^ 15, 8192}[r.IntN(4)],
		apart: r.IntN(2) == 0, context: r.IntN(4) == 0,
	}
	if r.IntN(20) == 0 {
		p.zone = 200_000
	}
	for range ranks {
		p.zones = append(p.zones, r.IntN(4))
	}
	p.zones[r.IntN(ranks)]++
	for range 2 + r.IntN(5) {
		p.phases = append(p.phases, p.phase(r))
	}
	p.phases[len(p.phases)-1].check = true
	return p
}

func (p *program) phase(r *rand.Rand) phase {
	f := phase{scheme: r.IntN(numSchemes), check: r.IntN(2) == 0}
	if p.flavor == "expose" {
		f.scheme = meeting
	}
	for rank, zones := range p.zones {
		for z := range zones {
			p.use(r, &f, rank, z)
		}
	}
	// The calls of one rank to one zone stay in order.
	order := make([]int, p.ranks)
	for i := range order {
		order[i] = r.IntN(1 << 20)
	}
	slices.SortStableFunc(f.calls, func(a, b access) int { return order[a.origin] - order[b.origin] })
	return f
}

// use decides how one zone is used in a phase.
func (p *program) use(r *rand.Rand, f *phase, rank, z int) {
	one := r.IntN(p.ranks)
	how := r.IntN(6)
	if p.flavor == "expose" && how > 1 {
		how = r.IntN(2)
	}
	switch how {
	case 0: // one rank puts and gets in parts of it
		parts := 1 + r.IntN(3)
		for k := range parts {
			kind := putAccess
			if r.IntN(4) == 0 {
				kind = getAccess
			}
			f.calls = append(f.calls, p.access(r, f, kind, one, rank, z, r.IntN(len(elems)), k*p.zone/parts&^15, (k+1)*p.zone/parts&^15))
		}
	case 1: // all read
		for origin := range p.ranks {
			f.calls = append(f.calls, p.access(r, f, getAccess, origin, rank, z, r.IntN(len(elems)), 0, p.zone))
		}
	case 2: // one rank's accumulates keep their order
		e := r.IntN(len(elems))
		p.initial(r, f, rank, z, e)
		for range 1 + r.IntN(5) {
			a := p.access(r, f, accAccess+accessKind(r.IntN(4)), one, rank, z, e, 0, p.zone)
			a.op = anyOp(r, &elems[e])
			p.settleOp(r, &a)
			f.calls = append(f.calls, a)
		}
	case 3, 4: // all combine with one operation
		e := r.IntN(len(elems))
		for len(elems[e].ops) == 0 {
			e = r.IntN(len(elems))
		}
		op := elems[e].ops[r.IntN(len(elems[e].ops))]
		if !elems[e].exact {
			op = mpi.Sum
		}
		p.initial(r, f, rank, z, e)
		for origin := range p.ranks {
			for range 1 + r.IntN(3) {
				a := p.access(r, f, accAccess+accessKind(r.IntN(3)), origin, rank, z, e, 0, p.zone)
				a.op, a.free = op, true
				p.settleOp(r, &a)
				f.calls = append(f.calls, a)
			}
		}
	case 5: // all count, if the scheme has exclusive locks
		if f.scheme != exclusive {
			return
		}
		for origin := range p.ranks {
			a := access{kind: countAccess, origin: origin, target: rank, zone: z, base: z * p.zone, elem: countElem, value: make([]byte, 8), free: true}
			a.value[0] = byte(1 + r.IntN(9))
			a.op, a.here = mpi.Sum, contiguous(1, 8)
			a.there, a.result = a.here, a.here
			f.calls = append(f.calls, a)
		}
	}
}

// countElem is the element that countAccess counts.
var countElem = slices.IndexFunc(elems, func(e elem) bool { return e.name == "int64" })

// initial gives all of a zone values of an element: arbitrary bytes may be no
// numbers.
func (p *program) initial(r *rand.Rand, f *phase, rank, z, e int) {
	b := make([]byte, p.zone)
	for size, at := elems[e].size, 0; at+size <= len(b); at += size {
		elems[e].fill(r, false, b[at:][:size])
	}
	f.stores = append(f.stores, store{rank, z * p.zone, b})
}

// anyOp is an operation that one rank may use among others.
func anyOp(r *rand.Rand, e *elem) mpi.Op {
	if k := r.IntN(len(e.ops) + 2); k < len(e.ops) {
		return e.ops[k]
	} else if k == len(e.ops) {
		return mpi.Replace
	}
	return mpi.NoOp
}

// settleOp fits an access to its operation.
func (p *program) settleOp(r *rand.Rand, a *access) {
	e := &elems[a.elem]
	if a.kind == swapAccess {
		if e.size&(e.size-1) != 0 {
			a.kind = fetchAccess
		}
		a.op = mpi.Replace
	}
	if a.kind == accAccess && a.op.String() == mpi.NoOp.String() {
		a.op = mpi.Replace
	}
	if a.kind == fetchAccess || a.kind == swapAccess {
		n := len(a.there.displs)
		a.base += a.there.displs[r.IntN(n)]
		a.base = max(a.base-a.base%p.step(e.size), a.zone*p.zone)
		a.here = contiguous(1, e.size)
		a.there, a.result, a.typed, a.request = a.here, a.here, true, false
	}
	small := a.op.String() == mpi.Prod.String()
	a.value = a.value[:0]
	for range a.here.displs {
		b := make([]byte, e.size)
		e.fill(r, small, b)
		a.value = append(a.value, b...)
	}
	a.compare = make([]byte, e.size)
	e.fill(r, false, a.compare)
}

// step is what elements that are combined lie at multiples of.
func (p *program) step(size int) int {
	if size&(size-1) != 0 {
		return p.unit
	}
	return max(p.unit, size)
}

// access makes an access of elements to bytes [from, to) of a zone.
func (p *program) access(r *rand.Rand, f *phase, kind accessKind, origin, target, z, e, from, to int) access {
	size := elems[e].size
	a := access{kind: kind, origin: origin, target: target, zone: z, elem: e, typed: r.IntN(2) == 0}
	a.request = passiveScheme(f.scheme) && r.IntN(4) == 0
	n := 1 + r.IntN(max(1, (to-from)/size/3))
	if r.IntN(3) > 0 {
		n = min(n, 12)
	}
	if r.IntN(10) == 0 && (to-from)/size > 0 {
		n = (to - from) / size // all of it
	}
	a.here, a.there, a.result = contiguous(n, size), contiguous(n, size), contiguous(n, size)
	if !a.typed {
		a.here = layoutOf(r, n, size, 10*n*size)
		a.there = layoutOf(r, n, size, to-from)
		a.result = layoutOf(r, n, size, 10*n*size)
	}
	step := p.unit // any bytes
	if kind > getAccess {
		step = p.step(size)
	}
	lo, hi := a.there.reach(size)
	first, last := z*p.zone+from-lo, min(z*p.zone+to-hi, p.zones[target]*p.zone)
	first = max(0, (first+step-1)/step*step)
	if last < first { // no place for gaps
		a.there = contiguous(n, size)
		first, last = z*p.zone+from, z*p.zone+to-n*size
	}
	a.base = first + r.IntN((last-first)/step+1)*step
	for range n {
		b := make([]byte, size)
		elems[e].fill(r, false, b)
		a.value = append(a.value, b...)
	}
	return a
}
