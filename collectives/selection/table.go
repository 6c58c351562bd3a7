// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gompi/collectives"
)

// Rule is one line of a Table: up to so many ranks and bytes, use that
// algorithm.
type Rule struct {
	Op collectives.Op
	// MaxRanks is the largest group, or both groups of an intercommunicator
	// together; 0 means any.
	MaxRanks int
	// MaxBytes is the largest result of one rank: the whole of Bcast, Reduce,
	// Allreduce, Scan and Exscan, all blocks together of the others; on an
	// intercommunicator see collectives.RuleBytes. 0 means any. Operations whose lengths
	// are local know no limit.
	MaxBytes int64
	// Name is the algorithm's.
	Name string
}

// defaultRules were chosen for ranks of one host. The first rule that fits
// wins; one whose algorithm cannot do the call is passed over. Inside a host
// flat algorithms move the least data: each receiver copies out of the owner's
// buffer, and no link of the root is the bottleneck.
var defaultRules = [...]Rule{
	{collectives.OpBarrier, 0, 0, "shared"},
	{collectives.OpBcast, 0, 0, "shared"},
	{collectives.OpReduce, 0, 0, "shared"},
	{collectives.OpAllreduce, 0, 0, "shared"},
	{collectives.OpGather, 0, 0, "shared"},
	{collectives.OpScatter, 0, 0, "shared"},
	{collectives.OpAllgather, 0, 0, "shared"},
	{collectives.OpAllgatherv, 0, 0, "shared"},
	{collectives.OpAlltoall, 0, 0, "shared"},
	{collectives.OpReduceScatterBlock, 0, 0, "shared"},
	{collectives.OpReduceScatter, 0, 0, "shared"},
	{collectives.OpScan, 0, 0, "shared"},
	{collectives.OpExscan, 0, 0, "shared"},

	// Between two ranks both can copy what one of them needs.
	{collectives.OpBcast, 2, 0, "linear"},
	{collectives.OpScatter, 2, 0, "linear"},
	{collectives.OpBcast, 0, 0, "read"},
	{collectives.OpScatter, 0, 0, "read"},
	{collectives.OpGatherv, 0, 0, "read"},
	{collectives.OpScatterv, 0, 0, "read"},
	{collectives.OpAllgather, 0, 0, "read"},
	{collectives.OpAllgatherv, 0, 0, "read"},
	{collectives.OpAlltoall, 0, 0, "read"},
	{collectives.OpAlltoallv, 0, 0, "read"},
	{collectives.OpReduce, 0, 0, "read"},
	{collectives.OpAllreduce, 0, 0, "read"},
	{collectives.OpReduceScatterBlock, 0, 0, "read"},
	{collectives.OpReduceScatter, 0, 0, "read"},
	{collectives.OpScan, 0, 0, "read"},
	{collectives.OpExscan, 2, 0, "direct"},
	{collectives.OpExscan, 0, 0, "read"},
	{collectives.OpNeighborAllgather, 0, 0, "read"},
	{collectives.OpNeighborAllgatherv, 0, 0, "read"},
	{collectives.OpNeighborAlltoall, 0, 0, "read"},
	{collectives.OpNeighborAlltoallv, 0, 0, "read"},

	{collectives.OpBarrier, 8, 0, "direct"},
	{collectives.OpBarrier, 0, 0, "dissemination"},

	{collectives.OpBcast, 8, 0, "linear"},
	{collectives.OpBcast, 0, 32 << 10, "binomial"},
	{collectives.OpBcast, 32, 0, "linear"},
	{collectives.OpBcast, 0, 512 << 10, "scatter-doubling"},
	{collectives.OpBcast, 0, 0, "scatter-ring"},

	{collectives.OpReduce, 8, 2 << 10, "linear"},
	{collectives.OpReduce, 0, 512 << 10, "binomial"},
	{collectives.OpReduce, 0, 512 << 10, "ordered"},
	{collectives.OpReduce, 32, 0, "split"},
	{collectives.OpReduce, 0, 0, "rabenseifner"},

	{collectives.OpAllreduce, 8, 512, "direct"},
	{collectives.OpAllreduce, 4, 2 << 10, "direct"},
	{collectives.OpAllreduce, 0, 4 << 10, "doubling"},
	{collectives.OpAllreduce, 32, 0, "split"},
	{collectives.OpAllreduce, 0, 32 << 10, "doubling"},
	{collectives.OpAllreduce, 0, 1 << 20, "rabenseifner"},
	{collectives.OpAllreduce, 0, 0, "ring"},
	{collectives.OpAllreduce, 0, 0, "rabenseifner"},

	{collectives.OpGather, 0, 16 << 10, "binomial"},
	{collectives.OpGather, 0, 0, "linear"},
	{collectives.OpScatter, 0, 16 << 10, "binomial"},
	{collectives.OpScatter, 0, 0, "linear"},

	{collectives.OpAllgather, 8, 0, "direct"},
	{collectives.OpAllgather, 0, 32 << 10, "doubling"},
	{collectives.OpAllgather, 0, 32 << 10, "bruck"},
	{collectives.OpAllgather, 32, 0, "direct"},
	{collectives.OpAllgather, 0, 0, "ring"},

	{collectives.OpAllgatherv, 32, 0, "direct"},
	{collectives.OpAllgatherv, 0, 32 << 10, "bruck"},
	{collectives.OpAllgatherv, 0, 0, "ring"},

	{collectives.OpAlltoall, 8, 0, "direct"},
	{collectives.OpAlltoall, 0, 4 << 10, "bruck"},
	{collectives.OpAlltoall, 32, 0, "direct"},
	{collectives.OpAlltoall, 0, 0, "window"},

	{collectives.OpGatherv, 0, 0, "linear"},
	{collectives.OpScatterv, 0, 0, "linear"},
	{collectives.OpAlltoallv, 32, 0, "direct"},
	{collectives.OpAlltoallv, 0, 0, "window"},

	{collectives.OpReduceScatterBlock, 8, 0, "direct"},
	{collectives.OpReduceScatterBlock, 0, 16 << 10, "halving"},
	{collectives.OpReduceScatterBlock, 0, 16 << 10, "ordered"},
	{collectives.OpReduceScatterBlock, 32, 0, "direct"},
	{collectives.OpReduceScatterBlock, 0, 512 << 10, "halving"},
	{collectives.OpReduceScatterBlock, 0, 512 << 10, "ordered"},
	{collectives.OpReduceScatterBlock, 0, 0, "pairwise"},

	{collectives.OpReduceScatter, 8, 0, "direct"},
	{collectives.OpReduceScatter, 0, 16 << 10, "halving"},
	{collectives.OpReduceScatter, 0, 16 << 10, "ordered"},
	{collectives.OpReduceScatter, 32, 0, "direct"},
	{collectives.OpReduceScatter, 0, 512 << 10, "halving"},
	{collectives.OpReduceScatter, 0, 512 << 10, "ordered"},
	{collectives.OpReduceScatter, 0, 0, "pairwise"},

	{collectives.OpScan, 2, 0, "direct"},
	{collectives.OpScan, 8, 512, "direct"},
	{collectives.OpScan, 0, 64 << 10, "doubling"},
	{collectives.OpScan, 32, 0, "chain"},
	{collectives.OpScan, 0, 1 << 20, "doubling"},
	{collectives.OpScan, 0, 0, "chain"},

	{collectives.OpExscan, 2, 0, "direct"},
	{collectives.OpExscan, 8, 512, "direct"},
	{collectives.OpExscan, 0, 64 << 10, "doubling"},
	{collectives.OpExscan, 32, 0, "chain"},
	{collectives.OpExscan, 0, 1 << 20, "doubling"},
	{collectives.OpExscan, 0, 0, "chain"},

	{collectives.OpNeighborAllgather, 0, 0, "direct"},
	{collectives.OpNeighborAllgatherv, 0, 0, "direct"},
	{collectives.OpNeighborAlltoall, 0, 0, "direct"},
	{collectives.OpNeighborAlltoallv, 0, 0, "direct"},
}

// Table selects algorithms. All ranks of a communicator must hold equal
// tables: rules and forced names come from the head. Select may be called from
// any goroutine, after the last Force.
type Table struct {
	rules  [collectives.NumOps][]choice // for intracommunicators
	host   [collectives.NumOps][]choice // those of them for one node
	inter  [collectives.NumOps][]choice
	forced [collectives.NumOps]*collectives.Algorithm
}

type choice struct {
	maxRanks int
	maxBytes int64
	alg      *collectives.Algorithm
}

// DefaultTable returns a new table with the built-in rules.
func DefaultTable() *Table {
	t, err := NewTable(DefaultRules())
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return t
}

// DefaultRules returns the built-in rules: those for several nodes, where they
// apply, then those for intercommunicators and for one host.
func DefaultRules() []Rule { return slices.Concat(nodeRules[:], interRules[:], defaultRules[:]) }

// NewTable makes a table of rules, which are tried in order. It is an error if
// a rule names an unknown algorithm, or if an operation's rules do not end
// with one for everything, for intracommunicators and for intercommunicators.
func NewTable(rules []Rule) (*Table, error) {
	t := new(Table)
	at := newIndex()
	algs := make([]*collectives.Algorithm, len(rules))
	var room tableRoom
	var last, lastInter [collectives.NumOps]bool
	for i, r := range rules {
		if r.Op >= collectives.NumOps {
			return nil, fmt.Errorf("rule for unknown %v", r.Op)
		}
		if r.MaxRanks < 0 || r.MaxBytes < 0 {
			return nil, fmt.Errorf("rule for %v has negative limits %d, %d", r.Op, r.MaxRanks, r.MaxBytes)
		}
		g, err := at.find(r.Op, r.Name)
		if err != nil {
			return nil, err
		}
		if r.MaxBytes > 0 && collectives.LocalLengths(r.Op, g.Inter) {
			return nil, fmt.Errorf("rule for %v has a limit of %d bytes, but its lengths are not known on all ranks", g, r.MaxBytes)
		}
		algs[i] = g
		ends := &last[r.Op]
		if g.Inter {
			ends = &lastInter[r.Op]
		}
		room.count(g)
		*ends = r.MaxRanks == 0 && r.MaxBytes == 0 && !g.PowerOfTwo && !g.Commutative && !g.TwoLevel && !g.Shared
	}
	room.give(t)
	for i, r := range rules {
		t.add(algs[i], r.MaxRanks, r.MaxBytes)
	}
	for _, list := range scheduled() {
		for _, g := range list {
			switch {
			case !g.Inter && !last[g.Op]:
				return nil, fmt.Errorf("the rules for %v leave cases out", g.Op)
			case g.Inter && !lastInter[g.Op]:
				return nil, fmt.Errorf("the rules for %v on intercommunicators leave cases out", g.Op)
			}
		}
	}
	return t, nil
}

// add puts a rule behind the others.
func (t *Table) add(g *collectives.Algorithm, maxRanks int, maxBytes int64) {
	c := choice{maxRanks, maxBytes, g}
	if maxRanks == 0 {
		c.maxRanks = math.MaxInt
	}
	if maxBytes == 0 {
		c.maxBytes = math.MaxInt64
	}
	if g.Inter {
		t.inter[g.Op] = append(t.inter[g.Op], c)
		return
	}
	t.rules[g.Op] = append(t.rules[g.Op], c)
	if !g.TwoLevel {
		t.host[g.Op] = append(t.host[g.Op], c)
	}
}

// tableRoom counts the rules of each list of a Table, which then lie in one
// piece of memory.
type tableRoom struct{ rules, host, inter [collectives.NumOps]int }

func (r *tableRoom) count(g *collectives.Algorithm) {
	if g.Inter {
		r.inter[g.Op]++
		return
	}
	r.rules[g.Op]++
	if !g.TwoLevel {
		r.host[g.Op]++
	}
}

func (r *tableRoom) give(t *Table) {
	total := 0
	for op := range r.rules {
		total += r.rules[op] + r.host[op] + r.inter[op]
	}
	memory := make([]choice, total)
	take := func(n int) []choice {
		list := memory[:0:n]
		memory = memory[n:]
		return list
	}
	for op := range r.rules {
		t.rules[op], t.host[op], t.inter[op] = take(r.rules[op]), take(r.host[op]), take(r.inter[op])
	}
}

// Force makes Select return one algorithm wherever it can do the call; an
// empty name ends that.
func (t *Table) Force(op collectives.Op, name string) error {
	if op >= collectives.NumOps {
		return fmt.Errorf("no algorithms for unknown %v", op)
	}
	if name == "" {
		t.forced[op] = nil
		return nil
	}
	g, err := ByName(op, name)
	if err == nil {
		t.forced[op] = g
	}
	return err
}

// ForceAll reads a list such as "bcast=chain,allreduce=ring" and forces each.
// On an error the table is as before.
func (t *Table) ForceAll(list string) error {
	next := *t
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, alg, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("%q is not OPERATION=ALGORITHM", item)
		}
		op, err := collectives.ParseOp(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		if err := next.Force(op, strings.TrimSpace(alg)); err != nil {
			return err
		}
	}
	*t = next
	return nil
}

// Select chooses the algorithm for a call. elemBytes is the size of a basic
// element. It sets a.Segment to the algorithm's piece if that is 0. It looks
// at nothing that may differ between ranks and does not allocate.
func (t *Table) Select(a *collectives.Args, elemBytes int, commutative bool) *collectives.Algorithm {
	g := t.forced[a.Op]
	if g == nil || !g.Admits(a, commutative) {
		g = t.rule(a, collectives.RuleBytes(a, elemBytes), commutative)
	}
	if a.Segment == 0 && g.SegmentBytes > 0 {
		a.Segment = max(1, g.SegmentBytes/int64(max(1, elemBytes)))
	}
	return g
}

func (t *Table) rule(a *collectives.Args, bytes int64, commutative bool) *collectives.Algorithm {
	list := t.host[a.Op]
	switch {
	case a.Remote > 0:
		list = t.inter[a.Op]
	case a.Nodes != nil:
		if a.Shared > 0 { // teams of one host
			if g := first(list, a, bytes, commutative); g != nil && g.Shared {
				return g
			}
		}
		list = t.rules[a.Op]
	}
	if g := first(list, a, bytes, commutative); g != nil {
		return g
	}
	panic("gompi: BUG: no algorithm for " + a.Op.String())
}

// first is the algorithm of the first rule that fits, nil if none does.
func first(list []choice, a *collectives.Args, bytes int64, commutative bool) *collectives.Algorithm {
	for i := range list {
		c := &list[i]
		if a.Size+a.Remote <= c.maxRanks && bytes <= c.maxBytes && c.alg.Admits(a, commutative) {
			return c.alg
		}
	}
	return nil
}
