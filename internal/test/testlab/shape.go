// SPDX-License-Identifier: Apache-2.0

package testlab

// RootMe and RootNobody are what a rank of the root's group of an
// intercommunicator says of the root.
const (
	RootMe     = -1
	RootNobody = -2
)

// Blocks is a buffer: Len elements, of which Counts[i] at Displs[i] are block i
// if it is divided irregularly.
type Blocks struct {
	Len            int
	Block          int // the length of a block, if it is divided regularly
	Counts, Displs []int
	// Packed: the blocks lie side by side in order, so that Displs may be left
	// out of a call.
	Packed bool
}

// Shape is what one rank passes to a collective. A buffer that it does not use
// has length 0.
type Shape struct {
	Send, Recv Blocks
	Root       int // as the rank says it
	// InPlace: the shorter buffer is the part of the longer one that begins at
	// its element At.
	InPlace bool
	At      int
}

// Shape is what the rank at pl passes to the collective e.
func (p *Program) Shape(e *Event, pl Place) Shape {
	s := shaper{p: p, e: e, pl: pl, from: pl.Peers(), root: e.Root % len(pl.Local)}
	s.atRoot = pl.Rank == s.root
	s.out.InPlace = e.InPlace && pl.Remote == nil
	s.out.Root = s.root
	if pl.Remote != nil {
		s.atRoot = s.atRoot && pl.Side == e.RootSide
		s.leaf = pl.Side != e.RootSide
		switch {
		case s.leaf:
			s.out.Root = e.Root % len(pl.Remote)
		case s.atRoot:
			s.out.Root = RootMe
		default:
			s.out.Root = RootNobody
		}
	} else {
		s.leaf = true
	}
	if e.Coll >= NeighborAllgather {
		s.neighbors()
	} else {
		s.shape()
	}
	if s.out.Send.Len == 0 && s.out.Recv.Len == 0 {
		s.out.InPlace = false
	}
	return s.out
}

type shaper struct {
	p            *Program
	e            *Event
	pl           Place
	from         []int // whose contributions the rank gets
	root         int
	atRoot, leaf bool // which ends of a rooted operation the rank is at
	out          Shape
}

// dice is a number below n that depends on the collective and what it is for.
func (s *shaper) dice(n int, what ...int) int {
	x := s.p.Seed ^ uint64(s.e.ID)<<32
	for _, w := range what {
		x = mix(x*0x100000001b3 ^ uint64(w+1))
	}
	return int(x % uint64(n))
}

// uneven is the length of the block that a rank gives to, or gets from, a
// collective of irregular blocks.
func (s *shaper) uneven(rank int) int {
	return [...]int{0, s.e.Count, (s.e.Count + 1) / 2, 2 * s.e.Count}[s.dice(4, 1, rank)]
}

// between is the length of what one rank sends to another; in place it is as
// long as what it gets back.
func (s *shaper) between(from, to int) int {
	if s.out.InPlace && from > to {
		from, to = to, from
	}
	return [...]int{0, s.e.Count, (s.e.Count + 1) / 2, 2 * s.e.Count}[s.dice(4, 2, from, to)]
}

// side is how long the blocks of a group are where the groups of an
// intercommunicator may differ.
func (s *shaper) side(of int) int {
	if s.pl.Remote == nil {
		return s.e.Count
	}
	return s.e.Count + of
}

// blocks lays out the blocks for ranks in a buffer of rank.
func (s *shaper) blocks(rank, side int, ranks []int, length func(rank int) int) Blocks {
	return s.lay(rank, side, len(ranks), func(i int) int { return length(ranks[i]) })
}

// lay lays out n blocks in a buffer of rank.
func (s *shaper) lay(rank, side, n int, length func(i int) int) Blocks {
	b := Blocks{Counts: make([]int, n), Displs: make([]int, n), Packed: !s.e.Gaps}
	for i := range n {
		b.Counts[i] = length(i)
	}
	for k := range n {
		i := k
		if s.e.Gaps {
			i = (k*[...]int{1, -1}[s.dice(2, 3, rank, side)] + s.dice(n, 4, rank, side) + n) % n
			b.Len += s.dice(3, 5, rank, side, i)
		}
		b.Displs[i] = b.Len
		b.Len += b.Counts[i]
	}
	return b
}

// cuts divides n elements among the ranks of the local group.
func (s *shaper) cuts(n int) Blocks {
	b := Blocks{Packed: true}
	weights, all := make([]int, len(s.pl.Local)), 0
	for i, r := range s.pl.Local {
		weights[i] = s.dice(4, 6, r)
		all += weights[i]
	}
	weights[0]++ // somebody must have something
	all++
	sum := 0
	for _, w := range weights {
		b.Counts, b.Displs = append(b.Counts, n*(sum+w)/all-n*sum/all), append(b.Displs, n*sum/all)
		sum += w
	}
	b.Len = n
	return b
}

// regular is blocks of n elements.
func regular(n, blocks int) Blocks { return Blocks{Len: n * blocks, Block: n} }

func (s *shaper) shape() {
	n, o := s.e.Count, &s.out
	me, peers, size := s.pl.Local[s.pl.Rank], s.from, len(s.from)
	mine, theirs := s.side(s.pl.Side), s.side(1-s.pl.Side)
	switch s.e.Coll {
	case Bcast:
		// The root of an intracommunicator sends from where others receive.
		o.InPlace = s.pl.Remote == nil && s.atRoot
		if s.atRoot {
			o.Send = regular(n, 1)
		}
		if s.leaf {
			o.Recv = regular(n, 1)
		}
	case Gather, Gatherv:
		own := n
		if s.e.Coll == Gatherv {
			own = s.uneven(me)
		}
		if s.leaf {
			o.Send = regular(own, 1)
		}
		if s.atRoot {
			o.Recv = s.many(me, 0, peers, n, s.uneven)
			o.At = s.own(o.Recv, n)
		}
		o.InPlace = o.InPlace && s.atRoot
	case Scatter, Scatterv:
		own := n
		if s.e.Coll == Scatterv {
			own = s.uneven(me)
		}
		if s.leaf {
			o.Recv = regular(own, 1)
		}
		if s.atRoot {
			o.Send = s.many(me, 0, peers, n, s.uneven)
			o.At = s.own(o.Send, n)
		}
		o.InPlace = o.InPlace && s.atRoot
	case Allgather:
		o.Send, o.Recv = regular(mine, 1), regular(theirs, size)
		o.At = s.pl.Rank * n
	case Allgatherv:
		o.Send, o.Recv = regular(s.uneven(me), 1), s.blocks(me, 0, peers, s.uneven)
		o.At = s.own(o.Recv, n)
	case Alltoall:
		o.Send, o.Recv = regular(mine, size), regular(theirs, size)
	case Alltoallv, Alltoallw:
		o.Recv = s.blocks(me, 0, peers, func(r int) int { return s.between(r, me) })
		o.Send = s.blocks(me, 1, peers, func(r int) int { return s.between(me, r) })
		if o.InPlace {
			o.Send = o.Recv
		}
	case Reduce:
		if s.leaf {
			o.Send = regular(n, 1)
		}
		if s.atRoot {
			o.Recv = regular(n, 1)
		}
		o.InPlace = o.InPlace && s.atRoot
	case Allreduce, Scan, Exscan:
		o.Send, o.Recv = regular(n, 1), regular(n, 1)
	case ReduceScatterBlock:
		own := n
		if s.pl.Remote != nil {
			own *= len(s.pl.Remote)
		}
		o.Send, o.Recv = regular(own, len(s.pl.Local)), regular(own, 1)
	case ReduceScatter:
		all := n * len(s.pl.Local) * max(1, len(s.pl.Remote))
		o.Send = s.cuts(all)
		o.Recv = regular(o.Send.Counts[s.pl.Rank], 1)
	}
}

func (s *shaper) neighbors() {
	n, o, near := s.e.Count, &s.out, s.p.Near(s.e.Comm, s.pl)
	o.InPlace = false
	me := s.pl.Local[s.pl.Rank]
	// sent is the length of block i of what a rank sends.
	sent := func(rank, i int) int {
		if rank < 0 {
			return n
		}
		return [...]int{0, n, (n + 1) / 2, 2 * n}[s.dice(4, 7, rank, i)]
	}
	switch s.e.Coll {
	case NeighborAllgather:
		o.Send, o.Recv = regular(n, 1), regular(n, len(near.Sources))
	case NeighborAllgatherv:
		o.Send = regular(sent(me, 0), 1)
		o.Recv = s.lay(me, 0, len(near.Sources), func(i int) int { return sent(near.Sources[i], 0) })
	case NeighborAlltoall:
		o.Send, o.Recv = regular(n, len(near.Dests)), regular(n, len(near.Sources))
	default:
		o.Send = s.lay(me, 1, len(near.Dests), func(i int) int { return sent(me, i) })
		o.Recv = s.lay(me, 0, len(near.Sources), func(i int) int { return sent(near.Sources[i], near.From[i]) })
	}
}

// many is the buffer of a root, regular or not.
func (s *shaper) many(rank, side int, ranks []int, n int, length func(rank int) int) Blocks {
	if s.e.Coll == Gather || s.e.Coll == Scatter {
		return regular(n, len(ranks))
	}
	return s.blocks(rank, side, ranks, length)
}

// own is where the block of the rank itself begins.
func (s *shaper) own(b Blocks, n int) int {
	switch {
	case s.pl.Remote != nil:
		return 0
	case b.Displs == nil:
		return s.pl.Rank * n
	}
	return b.Displs[s.pl.Rank]
}
