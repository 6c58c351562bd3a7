// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: kernels work on addresses.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/control/collmem"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/transport"
)

// shelf is the memory that two ranks have registered.
type shelf struct {
	next    uint64
	regions map[uint64][]byte
	reads   int
}

func (s *shelf) Register(buf []byte) uint64 {
	s.next++
	s.regions[s.next] = buf
	return s.next
}
func (s *shelf) Unregister(key uint64) { delete(s.regions, key) }
func (s *shelf) Gone(int) *fault.Fault { return nil }
func (s *shelf) Read(_ int, dst []byte, key uint64, off int64) error {
	s.reads++
	m, ok := s.regions[key]
	if !ok || off < 0 || off+int64(len(dst)) > int64(len(m)) {
		return transport.ErrProtocol
	}
	copy(dst, m[off:])
	return nil
}

// relays are two ranks that can read each other's memory, and relay.
func relays(t *testing.T) (*crew, *shelf) {
	t.Helper()
	c, s := newCrew(2), &shelf{regions: map[uint64][]byte{}}
	mem := make([]byte, 2*collmem.RelayBytes+linePair)
	mem = mem[-uintptr(address(mem))%linePair:][:2*collmem.RelayBytes]
	for r := range c.areas {
		c.areas[r].Read(s)
		c.areas[r].SetRelays(mem)
	}
	return c, s
}

// reduction is one of two ranks, begun on both.
type reduction struct {
	op      collectives.Op
	root    int
	in, out [2][]byte
	wide    [2][]uint64 // in place of out, if it is strided
	want    []byte
}

// spread64 is memory for so many words with a gap behind each.
func spread64(words int) ([]uint64, buffer.Buf) {
	word := &dtype.Type{Name: "uint64", Size: 8, Kind: dtype.Uint64}
	wide, err := dtype.NewResized(word, 0, 16)
	if err != nil {
		panic(err)
	}
	m := make([]uint64, 2*words)
	return m, buffer.New(unsafe.Pointer(unsafe.SliceData(m)), int64(words), wide)
}

func beginReduction(c *crew, rnd *rand.Rand, op collectives.Op, words int) *reduction {
	c.seq++
	x := &reduction{op: op, root: rnd.IntN(2)}
	inPlace, strided := rnd.IntN(3) == 0, rnd.IntN(4) == 0
	x.want = make([]byte, 8*words)
	for r := range x.in {
		x.in[r] = make([]byte, 8*words)
		for i := range words {
			binary.NativeEndian.PutUint64(x.in[r][8*i:], rnd.Uint64())
		}
	}
	add64(address(x.want), address(x.in[0]), address(x.in[1]), int64(words))
	for r := range x.in {
		if x.out[r] = make([]byte, 8*words); inPlace {
			x.out[r] = x.in[r]
		}
		out, to := x.out[r], buffer.Of(x.out[r])
		if strided && !inPlace {
			x.wide[r], to = spread64(words)
		}
		if op == collectives.OpReduce && r != x.root {
			out, to = nil, buffer.Buf{}
		}
		a := Call{Args: collectives.Args{Op: op, Rank: r, Size: 2, Root: x.root, Count: int64(words), InPlace: inPlace && out != nil},
			In: buffer.Of(x.in[r]), Out: to, Unit: 8, Kernel: add64}
		c.areas[r].Begin(&a, c.seq, true, false)
	}
	return x
}

// run steps both ranks until they are done, in any order.
func (x *reduction) run(c *crew, rnd *rand.Rand) error {
	done := [2]bool{}
	for turns := 0; !done[0] || !done[1]; turns++ {
		if turns > 1<<16 {
			return fmt.Errorf("done %v for ever", done)
		}
		r := rnd.IntN(2)
		if b := &c.areas[r]; !done[r] && b.Step() {
			if f := b.Fault(); f != nil {
				return fmt.Errorf("rank %d: %+v", r, f)
			}
			b.Told()
			b.End(false)
			done[r] = true
		}
	}
	for r := range x.out {
		for i := 0; i < len(x.wide[r]); i += 2 {
			binary.NativeEndian.PutUint64(x.out[r][4*i:], x.wide[r][i])
		}
		if (x.op == collectives.OpAllreduce || r == x.root) && !bytes.Equal(x.out[r], x.want) {
			return fmt.Errorf("rank %d has a wrong sum", r)
		}
	}
	return nil
}

// Reductions of all lengths are right, through several laps of the memory for pieces, also
// as long as a rank has none, and where one has been farther than it says.
func TestRelay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	c, s := relays(t)
	relayed := 0
	kept := c.areas[1].relays
	c.areas[1].relays = [2][]byte{}
	for k := range 300 {
		words := 1 + rnd.IntN(1<<rnd.IntN(18))
		op := []collectives.Op{collectives.OpAllreduce, collectives.OpReduce}[rnd.IntN(2)]
		reads := s.reads
		if k == 20 {
			c.areas[1].relays = kept
		}
		if k%7 == 5 { // as after calls that were given up in their midst
			c.areas[0].relay.wrote += 5000
		}
		x := beginReduction(c, rnd, op, words)
		if err := x.run(c, rnd); err != nil {
			t.Fatalf("%v of %d words, the %dth: %v", op, words, k, err)
		}
		if s.reads == reads {
			relayed++
		}
		if len(s.regions) > 0 {
			t.Fatalf("%v of %d words: %d regions are left", op, words, len(s.regions))
		}
	}
	if relayed < 200 {
		t.Errorf("%d of 300 were relayed", relayed)
	}
	if c.areas[0].relay.wrote < 4*relayLines {
		t.Errorf("%d lines of %d: not so many laps as they should be", c.areas[0].relay.wrote, relayLines)
	}
}

// Who gives up in the midst of one is not believed any more, and the next one is right.
func TestRelayGivenUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	c, _ := relays(t)
	for k := range 100 {
		x := beginReduction(c, rnd, collectives.OpAllreduce, 200_000)
		quitter, other := k%2, 1-k%2
		for range 1 + rnd.IntN(4) {
			c.areas[other].Step()
			c.areas[quitter].Step()
		}
		c.areas[quitter].End(true)
		for range 100 {
			if c.areas[other].Step() && c.areas[other].Fault() == nil {
				t.Fatalf("round %d: done without the other", k)
			}
		}
		if f := c.areas[other].Fault(); f != nil {
			t.Fatalf("round %d: %+v", k, f)
		}
		c.areas[other].End(true)
		x = beginReduction(c, rnd, collectives.OpAllreduce, 100_000)
		if err := x.run(c, rnd); err != nil {
			t.Fatalf("round %d: %v", k, err)
		}
	}
}

// Lengths that differ where the word of a cell does not tell are a mismatch.
func TestRelayLengths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	c, _ := relays(t)
	if err := beginReduction(c, rnd, collectives.OpAllreduce, 1000).run(c, rnd); err != nil {
		t.Fatal(err)
	}
	c.seq++
	for r := range c.areas {
		buf := make([]byte, 1<<19*(r+1))
		c.areas[r].Begin(&Call{Args: collectives.Args{Op: collectives.OpAllreduce, Rank: r, Size: 2, Count: int64(len(buf) / 8)}, In: buffer.Of(buf), Out: buffer.Of(make([]byte, len(buf))), Unit: 8, Kernel: add64}, c.seq, true, false)
	}
	c.areas[0].Step()
	if c.areas[1].Step(); c.areas[1].Fault() == nil || c.areas[1].Fault().Got != 1<<19 || c.areas[1].Fault().Want != 1<<20 {
		t.Errorf("512 KiB for 1 MiB: %+v", c.areas[1].Fault())
	}
}
