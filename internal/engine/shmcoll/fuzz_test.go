// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/control/collmem"
	"gompi/internal/data/buffer"
	"gompi/transport"
)

// script is what the others do, byte by byte.
type script struct{ left []byte }

func (s *script) next() int {
	if len(s.left) == 0 {
		return 0
	}
	x := s.left[0]
	s.left = s.left[1:]
	return int(x)
}

// hostile is the memory of ranks who give what a script says, and nobody to wake.
type hostile struct{ *script }

func (hostile) Wake(int)               {}
func (hostile) Register([]byte) uint64 { return 1 }
func (hostile) Unregister(uint64)      {}
func (h hostile) Gone(r int) *fault.Fault {
	if h.next() == 0xff {
		return &fault.Fault{Class: fault.Left, Peer: int32(r)}
	}
	return nil
}

func (h hostile) Read(_ int, dst []byte, _ uint64, _ int64) error {
	switch h.next() {
	case 0xff:
		return transport.ErrPeerGone
	case 0xfe:
		return transport.ErrProtocol
	}
	for i := range dst {
		dst[i] = byte(i)
	}
	for range h.next() {
		dst[h.next()*h.next()%len(dst)] = byte(h.next())
	}
	return nil
}

// words is memory for so many elements.
func words(n int64) buffer.Buf { return buffer.Of(make([]byte, 8*n)) }

// call are the arguments of an operation with blocks of some elements.
func (s *script) call(op collectives.Op, rank, size int, count int64) *Call {
	a := &Call{Unit: 8, Kernel: add64, Args: collectives.Args{Op: op, Rank: rank, Size: size, Root: s.next() % size, Count: count}}
	g, n, all := &a.Args, count, count*int64(size)
	lengths, places := make([]int64, size), make([]int64, size)
	for i := range lengths {
		lengths[i], places[i] = count, int64(i)*count
	}
	in, out := n, n
	switch op {
	case collectives.OpBarrier:
		in, out, g.Count = 0, 0, 0
	case collectives.OpBcast:
		in = 0
	case collectives.OpGather, collectives.OpAllgather:
		out = all
	case collectives.OpGatherv, collectives.OpAllgatherv:
		out, g.Counts, g.Displs = all, lengths, places
	case collectives.OpScatter, collectives.OpReduceScatterBlock:
		in = all
	case collectives.OpScatterv, collectives.OpReduceScatter:
		in, g.Counts, g.Displs = all, lengths, places
	case collectives.OpAlltoall:
		in, out = all, all
	case collectives.OpAlltoallv:
		in, out = all, all
		g.InCounts, g.InDispls, g.OutCounts, g.OutDispls = lengths, places, lengths, places
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		edges := min(size, 1+s.next()%4)
		for range edges {
			g.Dests, g.Sources = append(g.Dests, int32(s.next()%(size+1)-1)), append(g.Sources, int32(s.next()%(size+1)-1))
		}
		out, g.OutDispls = n*int64(edges), places[:edges]
		if op == collectives.OpNeighborAlltoall || op == collectives.OpNeighborAlltoallv {
			in, g.InDispls = n*int64(edges), places[:edges]
		}
		if op == collectives.OpNeighborAllgatherv || op == collectives.OpNeighborAlltoallv {
			g.OutCounts = lengths[:edges]
		}
		if op == collectives.OpNeighborAlltoallv {
			g.InCounts = lengths[:edges]
		}
	}
	switch op {
	case collectives.OpReduce, collectives.OpGather, collectives.OpGatherv:
		if rank != g.Root {
			out, g.Displs = 0, nil
		}
	case collectives.OpScatter, collectives.OpScatterv:
		if rank != g.Root {
			in, g.Displs = 0, nil
		}
	}
	a.In, a.Out = words(in), words(out)
	return a
}

// scribble writes into the memory what the script says: a cell as it might be, or
// anything anywhere.
func (s *script) scribble(b *Area, mem []byte) {
	switch how := s.next(); {
	case how < 160:
		q := s.next() % collmem.FlagOwners(b.size)
		i := b.cell(q, b.op.seq)
		switch {
		case how%8 == 0:
			i = b.resultCell(q, b.op.seq)
		case b.size == 2 && how%8 < 3:
			i = b.slot(q, b.op.seq)
		}
		at := b.cells[i.at+lineBytes-inlineBytes:]
		for k := range min(s.next()%48, len(at)) {
			at[k] = byte(s.next())
		}
		w := b.op.word
		if how%4 == 0 {
			w |= uint64(s.next()%4) << 19
		}
		if how%3 == 0 {
			w ^= uint64(s.next())
		}
		b.view(i).word.Store(w)
	case how < 200:
		at := (s.next()<<16 | s.next()<<8 | s.next()) % (len(mem) - 8)
		binary.NativeEndian.PutUint64(mem[at:], uint64(s.next())<<uint(s.next()%57))
	case b.size == 2 && how < 210:
		viewWord(b.relays[s.next()%2]).Store(uint64(s.next())<<uint(s.next()%57) | uint64(s.next()))
	case how < 220:
		b.ranks[s.next()%b.size].done.Store(b.op.seq + uint32(s.next()%3) - 1)
	}
}

// begin begins a call, briefly where that is possible and the script says so.
func (s *script) begin(b *Area, a *Call, seq uint32, reads bool, how int) {
	g := &a.Args
	k := FastCall{Op: g.Op, Root: g.Root, Count: g.Count, Unit: a.Unit, Kernel: a.Kernel, InPlace: g.InPlace}
	switch {
	case how&24 != 0 || a.In.Strided() || a.Out.Strided() || g.Op == collectives.OpAllgatherv || g.Op == collectives.OpReduceScatter:
	case g.Op == collectives.OpAlltoallv && b.size == 2:
		k.In, k.Out = make([]byte, s.next()), make([]byte, s.next())
		b.BeginFast(&k, seq, how&4 == 0)
		return
	case !reads:
		k.In, k.Out = a.In.Flat(), a.Out.Flat()
		b.BeginFast(&k, seq, how&4 == 0)
		return
	}
	b.Begin(a, seq, reads, how&4 == 0)
}

// hostileRelays is used again, as it is long: what stands there is anything.
var hostileRelays = make([]byte, 2*collmem.RelayBytes)

// Whatever others write into the memory and answer to reads, an operation goes on,
// waits or fails: it touches nothing else, and comes back.
func FuzzArea(f *testing.F) {
	for op := range byte(32) {
		f.Add([]byte{op, op, op, 1, op, 7, 0, 3, 9, 1, 2, 3, 4, 8, 1, 16, 2, 7, 7, 0, 161, 1, 200, 2, op, 1, 0, 160, 3})
	}
	ops := []collectives.Op{collectives.OpBarrier, collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce, collectives.OpGather, collectives.OpScatter,
		collectives.OpAllgather, collectives.OpAllgatherv, collectives.OpAlltoall, collectives.OpReduceScatterBlock, collectives.OpReduceScatter, collectives.OpScan,
		collectives.OpExscan, collectives.OpGatherv, collectives.OpScatterv, collectives.OpAlltoallv, collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv,
		collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv}
	f.Fuzz(func(t *testing.T, told []byte) {
		s := &script{told}
		size := []int{2, 3, 5, 66, 300}[s.next()%5]
		rank := s.next() % size
		mem := make([]byte, collmem.Size(size)+linePair)
		mem = mem[-uintptr(address(mem))%linePair:][:collmem.Size(size)]
		b := new(Area)
		b.Open(mem, rank, size, hostile{s})
		b.Read(hostile{s})
		if size == 2 {
			b.SetRelays(hostileRelays)
		}
		b.tree.central = s.next()%2 == 0
		for seq := uint32(1); len(s.left) > 0; seq++ {
			op := ops[s.next()%len(ops)]
			how := s.next()
			reads := size <= MaxReadRanks && how%2 == 0 && op != collectives.OpBarrier || collectives.LocalLengths(op, false)
			count := int64(s.next() % 40)
			if reads {
				count *= int64(1 + s.next())
			} else if most := int64(SharedRoom(size) / 8); op == collectives.OpScatter || op == collectives.OpAlltoall || op == collectives.OpReduceScatterBlock || op == collectives.OpReduceScatter {
				count = min(count, most/int64(size))
			} else {
				count = min(count, most)
			}
			if size > MaxReadRanks && collectives.LocalLengths(op, false) {
				continue
			}
			s.begin(b, s.call(op, rank, size, count), seq, reads, how)
			done := false
			for range 2 * Cells {
				s.scribble(b, mem)
				if done = b.Step(); b.Told() {
					b.WakeSleepers()
				}
				if done {
					break
				}
				b.PrepareSleep()
				b.Awaits(s.next() % size)
				b.LookOn(false)
				b.Stray(-1, false)
				b.EndSleep()
			}
			b.End(!done || b.Fault() != nil)
		}
	})
}
