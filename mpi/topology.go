// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"gompi/internal/base/fault"
	"gompi/internal/base/topo"
	"gompi/internal/base/wire"
	"gompi/internal/core"
	"gompi/internal/data/kernel"
)

// Virtual topologies, MPI 4.1 chapter 8. A communicator's topology is
// attached when it is made and never changes.

// TopoKind is what topology a communicator has.
type TopoKind uint8

// The results of TopoTest. MPI 4.1 section 8.5.5.
const (
	TopoNone TopoKind = iota
	TopoCart
	TopoGraph
	TopoDistGraph
)

// String gives the name of the kind in lower case.
func (k TopoKind) String() string {
	switch k {
	case TopoNone:
		return "no topology"
	case TopoCart:
		return "Cartesian topology"
	case TopoGraph:
		return "graph topology"
	case TopoDistGraph:
		return "distributed graph topology"
	}
	return fmt.Sprintf("topology %d", uint8(k))
}

// topology is what a communicator knows of its topology. Immutable.
type topology struct {
	kind         TopoKind
	grid         topo.Grid // Cartesian
	index, edges []int     // graph
	dist         DistGraph // distributed graph
	// near is whom neighborhood collectives reach; nil in a graph in which
	// an edge has no counterpart, which has none.
	near *neighbors
}

// TopoTest tells what topology the communicator has. Local.
// MPI 4.1 section 8.5.5.
func (c *Comm) TopoTest() TopoKind {
	if c.of("TopoTest").topo == nil {
		return TopoNone
	}
	return c.core.topo.kind
}

// topologyOf is the communicator's topology, which must be of one kind.
func (c *Comm) topologyOf(op fault.Call, kind TopoKind) (*topology, error) {
	if err := c.exists(op); err != nil {
		return nil, err
	}
	if got := c.TopoTest(); got != kind {
		return nil, c.fail(&argFault{class: ErrTopology, op: op, err: fmt.Errorf("the communicator has %v", got)})
	}
	return c.core.topo, nil
}

// badTopology is the error of an argument.
func (c *Comm) badTopology(op fault.Call, err error) error {
	return c.fail(&argFault{class: ErrArg, op: op, err: err})
}

// agreeOn makes all ranks agree on a context if they call op with equal
// arguments, which args digests. Else, or if wrong says that the arguments
// are, it fails on all of them.
func (c *Comm) agreeOn(op fault.Call, args uint64, wrong error) (core.Agreed, error) {
	words := []uint64{0, args, ^args}
	a, f := c.core.AgreeWith(op, c.user, words, kernel.Max)
	var err error
	switch {
	case f != nil:
		return a, c.errorOf(op, ProcNull, -1, f)
	case wrong != nil:
		err = c.badTopology(op, wrong)
	case words[1] != ^words[2]:
		err = c.fail(&argFault{class: ErrMismatch, op: op, err: errOtherArgs})
	default:
		return a, nil
	}
	a.TakeBack()
	return a, err
}

var errOtherArgs = errors.New("the ranks give different arguments")

// digest is a hash of arguments.
func digest(op fault.Call, lists ...[]int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(op))
	var b [8]byte
	word := func(x int) {
		binary.LittleEndian.PutUint64(b[:], uint64(x))
		h.Write(b[:])
	}
	for _, l := range lists {
		word(len(l))
		for _, x := range l {
			word(x)
		}
	}
	return h.Sum64()
}

// flags are booleans as numbers.
func flags(bs ...bool) []int {
	out := make([]int, len(bs))
	for i, b := range bs {
		if b {
			out[i] = 1
		}
	}
	return out
}

// first is the processes of the first n ranks, in an order: nil is their own.
func (c *Comm) first(n int, order []int) wire.Members {
	m := c.core.Ctx.Members
	if order == nil && n == m.Len() {
		return m
	}
	var b wire.MembersBuilder
	for i := range n {
		r := i
		if order != nil {
			r = order[i]
		}
		b.Add(wire.Range{First: m.At(r), Count: 1})
	}
	return b.Members()
}

// withTopology makes a communicator of ranks of c that have a topology, which
// make describes for a rank of it. nil on other ranks.
func (c *Comm) withTopology(a core.Agreed, members wire.Members, name string, describe func(rank int) *topology) (*Comm, error) {
	d, err := c.child(a, core.Groups{Local: members}, name)
	if d == nil || err != nil {
		return nil, err
	}
	d.core.topo = describe(d.core.Rank)
	return d, nil
}
