// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Rule is one line of a Table: up to so many ranks and bytes, use that
// algorithm.
type Rule struct {
	Op Op
	// MaxRanks is the largest group, or both groups of an intercommunicator
	// together; 0 means any.
	MaxRanks int
	// MaxBytes is the largest result of one rank: the whole of Bcast, Reduce,
	// Allreduce, Scan and Exscan, all blocks together of the others; on an
	// intercommunicator see interBytes. 0 means any. Operations whose lengths
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
	{OpBarrier, 0, 0, "shared"},
	{OpBcast, 0, 0, "shared"},
	{OpReduce, 0, 0, "shared"},
	{OpAllreduce, 0, 0, "shared"},
	{OpGather, 0, 0, "shared"},
	{OpScatter, 0, 0, "shared"},
	{OpAllgather, 0, 0, "shared"},
	{OpAllgatherv, 0, 0, "shared"},
	{OpAlltoall, 0, 0, "shared"},
	{OpReduceScatterBlock, 0, 0, "shared"},
	{OpReduceScatter, 0, 0, "shared"},
	{OpScan, 0, 0, "shared"},
	{OpExscan, 0, 0, "shared"},

	// Between two ranks both can copy what one of them needs.
	{OpBcast, 2, 0, "linear"},
	{OpScatter, 2, 0, "linear"},
	{OpBcast, 0, 0, "read"},
	{OpScatter, 0, 0, "read"},
	{OpGatherv, 0, 0, "read"},
	{OpScatterv, 0, 0, "read"},
	{OpAllgather, 0, 0, "read"},
	{OpAllgatherv, 0, 0, "read"},
	{OpAlltoall, 0, 0, "read"},
	{OpAlltoallv, 0, 0, "read"},
	{OpReduce, 0, 0, "read"},
	{OpAllreduce, 0, 0, "read"},
	{OpReduceScatterBlock, 0, 0, "read"},
	{OpReduceScatter, 0, 0, "read"},
	{OpScan, 0, 0, "read"},
	{OpExscan, 2, 0, "direct"},
	{OpExscan, 0, 0, "read"},
	{OpNeighborAllgather, 0, 0, "read"},
	{OpNeighborAllgatherv, 0, 0, "read"},
	{OpNeighborAlltoall, 0, 0, "read"},
	{OpNeighborAlltoallv, 0, 0, "read"},

	{OpBarrier, 8, 0, "direct"},
	{OpBarrier, 0, 0, "dissemination"},

	{OpBcast, 8, 0, "linear"},
	{OpBcast, 0, 32 << 10, "binomial"},
	{OpBcast, 32, 0, "linear"},
	{OpBcast, 0, 512 << 10, "scatter-doubling"},
	{OpBcast, 0, 0, "scatter-ring"},

	{OpReduce, 8, 2 << 10, "linear"},
	{OpReduce, 0, 512 << 10, "binomial"},
	{OpReduce, 0, 512 << 10, "ordered"},
	{OpReduce, 32, 0, "split"},
	{OpReduce, 0, 0, "rabenseifner"},

	{OpAllreduce, 8, 512, "direct"},
	{OpAllreduce, 4, 2 << 10, "direct"},
	{OpAllreduce, 0, 4 << 10, "doubling"},
	{OpAllreduce, 32, 0, "split"},
	{OpAllreduce, 0, 32 << 10, "doubling"},
	{OpAllreduce, 0, 1 << 20, "rabenseifner"},
	{OpAllreduce, 0, 0, "ring"},
	{OpAllreduce, 0, 0, "rabenseifner"},

	{OpGather, 0, 16 << 10, "binomial"},
	{OpGather, 0, 0, "linear"},
	{OpScatter, 0, 16 << 10, "binomial"},
	{OpScatter, 0, 0, "linear"},

	{OpAllgather, 8, 0, "direct"},
	{OpAllgather, 0, 32 << 10, "doubling"},
	{OpAllgather, 0, 32 << 10, "bruck"},
	{OpAllgather, 32, 0, "direct"},
	{OpAllgather, 0, 0, "ring"},

	{OpAllgatherv, 32, 0, "direct"},
	{OpAllgatherv, 0, 32 << 10, "bruck"},
	{OpAllgatherv, 0, 0, "ring"},

	{OpAlltoall, 8, 0, "direct"},
	{OpAlltoall, 0, 4 << 10, "bruck"},
	{OpAlltoall, 32, 0, "direct"},
	{OpAlltoall, 0, 0, "window"},

	{OpGatherv, 0, 0, "linear"},
	{OpScatterv, 0, 0, "linear"},
	{OpAlltoallv, 32, 0, "direct"},
	{OpAlltoallv, 0, 0, "window"},

	{OpReduceScatterBlock, 8, 0, "direct"},
	{OpReduceScatterBlock, 0, 16 << 10, "halving"},
	{OpReduceScatterBlock, 0, 16 << 10, "ordered"},
	{OpReduceScatterBlock, 32, 0, "direct"},
	{OpReduceScatterBlock, 0, 512 << 10, "halving"},
	{OpReduceScatterBlock, 0, 512 << 10, "ordered"},
	{OpReduceScatterBlock, 0, 0, "pairwise"},

	{OpReduceScatter, 8, 0, "direct"},
	{OpReduceScatter, 0, 16 << 10, "halving"},
	{OpReduceScatter, 0, 16 << 10, "ordered"},
	{OpReduceScatter, 32, 0, "direct"},
	{OpReduceScatter, 0, 512 << 10, "halving"},
	{OpReduceScatter, 0, 512 << 10, "ordered"},
	{OpReduceScatter, 0, 0, "pairwise"},

	{OpScan, 2, 0, "direct"},
	{OpScan, 8, 512, "direct"},
	{OpScan, 0, 64 << 10, "doubling"},
	{OpScan, 32, 0, "chain"},
	{OpScan, 0, 1 << 20, "doubling"},
	{OpScan, 0, 0, "chain"},

	{OpExscan, 2, 0, "direct"},
	{OpExscan, 8, 512, "direct"},
	{OpExscan, 0, 64 << 10, "doubling"},
	{OpExscan, 32, 0, "chain"},
	{OpExscan, 0, 1 << 20, "doubling"},
	{OpExscan, 0, 0, "chain"},

	{OpNeighborAllgather, 0, 0, "direct"},
	{OpNeighborAllgatherv, 0, 0, "direct"},
	{OpNeighborAlltoall, 0, 0, "direct"},
	{OpNeighborAlltoallv, 0, 0, "direct"},
}

// Table selects algorithms. All ranks of a communicator must hold equal
// tables: rules and forced names come from the head. Select may be called from
// any goroutine, after the last Force.
type Table struct {
	rules  [numOps][]choice // for intracommunicators
	host   [numOps][]choice // those of them for one node
	inter  [numOps][]choice
	forced [numOps]*Algorithm
}

type choice struct {
	maxRanks int
	maxBytes int64
	alg      *Algorithm
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
	var last, lastInter [numOps]bool
	for _, r := range rules {
		if r.Op >= numOps {
			return nil, fmt.Errorf("rule for unknown %v", r.Op)
		}
		if r.MaxRanks < 0 || r.MaxBytes < 0 {
			return nil, fmt.Errorf("rule for %v has negative limits %d, %d", r.Op, r.MaxRanks, r.MaxBytes)
		}
		g, err := ByName(r.Op, r.Name)
		if err != nil {
			return nil, err
		}
		if r.MaxBytes > 0 && LocalLengths(r.Op, g.Inter) {
			return nil, fmt.Errorf("rule for %v has a limit of %d bytes, but its lengths are not known on all ranks", g, r.MaxBytes)
		}
		c := choice{r.MaxRanks, r.MaxBytes, g}
		if c.maxRanks == 0 {
			c.maxRanks = math.MaxInt
		}
		if c.maxBytes == 0 {
			c.maxBytes = math.MaxInt64
		}
		list, ends := &t.rules[r.Op], &last[r.Op]
		if g.Inter {
			list, ends = &t.inter[r.Op], &lastInter[r.Op]
		}
		*list = append(*list, c)
		if !g.Inter && !g.TwoLevel {
			t.host[r.Op] = append(t.host[r.Op], c)
		}
		*ends = r.MaxRanks == 0 && r.MaxBytes == 0 && !g.PowerOfTwo && !g.Commutative && !g.TwoLevel && !g.Shared
	}
	for _, g := range All() {
		switch {
		case !g.Inter && !last[g.Op]:
			return nil, fmt.Errorf("the rules for %v leave cases out", g.Op)
		case g.Inter && !lastInter[g.Op]:
			return nil, fmt.Errorf("the rules for %v on intercommunicators leave cases out", g.Op)
		}
	}
	return t, nil
}

// Force makes Select return one algorithm wherever it can do the call; an
// empty name ends that.
func (t *Table) Force(op Op, name string) error {
	if op >= numOps {
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
		op, err := ParseOp(strings.TrimSpace(name))
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
func (t *Table) Select(a *Args, elemBytes int, commutative bool) *Algorithm {
	g := t.forced[a.Op]
	if g == nil || !g.Admits(a, commutative) {
		g = t.rule(a, RuleBytes(a, elemBytes), commutative)
	}
	if a.Segment == 0 && g.SegmentBytes > 0 {
		a.Segment = max(1, g.SegmentBytes/int64(max(1, elemBytes)))
	}
	return g
}

func (t *Table) rule(a *Args, bytes int64, commutative bool) *Algorithm {
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
func first(list []choice, a *Args, bytes int64, commutative bool) *Algorithm {
	for i := range list {
		c := &list[i]
		if a.Size+a.Remote <= c.maxRanks && bytes <= c.maxBytes && c.alg.Admits(a, commutative) {
			return c.alg
		}
	}
	return nil
}

// LocalLengths reports whether ranks do not know all lengths of op, so that
// these never decide.
func LocalLengths(op Op, inter bool) bool {
	switch op {
	case OpAllgatherv:
		return inter
	case OpGatherv, OpScatterv, OpAlltoallv, OpNeighborAllgather, OpNeighborAllgatherv, OpNeighborAlltoall, OpNeighborAlltoallv:
		return true
	}
	return false
}

// RuleBytes is what rules compare with MaxBytes: 0 where lengths are local.
func RuleBytes(a *Args, elemBytes int) int64 {
	if LocalLengths(a.Op, a.Remote > 0) {
		return 0
	}
	if a.Remote > 0 {
		return interBytes(a, elemBytes)
	}
	n := uint64(a.Count)
	switch a.Op {
	case OpBarrier:
		return 0
	case OpGather, OpScatter, OpAllgather, OpAlltoall, OpReduceScatterBlock:
		n = product(n, uint64(a.Size))
	case OpAllgatherv, OpReduceScatter:
		n = total(a.Counts)
	}
	return int64(product(n, uint64(elemBytes)))
}

// total and product count beyond 63 bits as the largest.

func total(counts []int64) uint64 {
	n := uint64(0)
	for _, c := range counts {
		n = min(n+uint64(c), math.MaxInt64)
	}
	return n
}

func product(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return lo
}
