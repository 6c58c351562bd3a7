// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/control/collmem"
	"gompi/transport"
)

// nowhere is the memory of a rank that has exposed nothing.
type nowhere struct{ Regions }

func (nowhere) Gone(int) *fault.Fault { return nil }

func (nowhere) Read(int, []byte, uint64, int64) error { return transport.ErrProtocol }

// Whatever another process has published, taking it is a fault or a block of
// the length that is expected.
func TestGarbledBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	b := new(Area)
	b.Open(make([]byte, collmem.Size(2)), 0, 2, nil)
	b.regions = nowhere{}
	for k := range 50_000 {
		o := &b.op
		*o = operation{op: collectives.OpNeighborAlltoallv, seq: uint32(k + 1), unit: 1, out: make([]byte, 64)}
		if k%3 == 0 {
			o.op = collectives.OpAlltoallv
		}
		o.word = cellWord(o.seq, o.op, 0, kindData, 0)
		b.single.i, b.single.at = 0, 0
		b.vector = vector{near: k%3 != 0, same: k%3 == 1,
			blockLists: blockLists{sources: []int32{1, 1}, recv: []int64{8, 8}, recvAt: []int64{0, 8}}}
		if k%3 == 0 {
			b.single.i = 1
		}
		c := b.cell(1, o.seq)
		n := int64(rnd.IntN(80))
		if rnd.IntN(10) == 0 {
			n = int64(rnd.IntN(1 << 19))
		}
		p := b.payload(c, min(n, b.room))
		for i := range min(len(p), 128) {
			p[i] = byte(rnd.Uint32() & rnd.Uint32() & rnd.Uint32())
		}
		b.view(c).word.Store(o.word | uint64(rnd.IntN(4))<<19 | uint64(n))
		if b.takeBlock(o) && o.fault != nil {
			t.Fatalf("cell %d is taken and a fault: %+v", k, o.fault)
		}
	}
}

// full is the memory of a rank whose table has blocks for nobody, and for this
// rank behind so many entries.
type full struct {
	Regions
	reads  int
	behind int64
}

func (*full) Gone(int) *fault.Fault { return nil }

func (m *full) Read(_ int, dst []byte, _ uint64, off int64) error {
	m.reads++
	for i := range dst {
		dst[i] = 0xff
	}
	if at := m.behind*wideEntry - off; at >= 0 && at < int64(len(dst)) {
		clear(dst[at:][:wideEntry])
		dst[at+16] = 8
	}
	return nil
}

// However long a table another process claims to have, the caller's lock can be given
// away while it is searched, and what is there is found.
func TestLongTable(t *testing.T) {
	const edges = 1 << 20
	m := &full{behind: edges - 1}
	b := new(Area)
	b.Open(make([]byte, collmem.Size(2)), 0, 2, nil)
	b.regions = m
	o := &b.op
	*o = operation{op: collectives.OpNeighborAlltoallv, seq: 1, unit: 1, out: make([]byte, 8)}
	o.word = cellWord(o.seq, o.op, 0, kindData, 0)
	b.vector = vector{near: true, blockLists: blockLists{sources: []int32{1}, recv: []int64{8}, recvAt: []int64{0}}}
	c := b.cell(1, o.seq)
	p := b.payload(c, wideHead)
	for i, x := range []uint64{1, 2, edges} {
		binary.NativeEndian.PutUint64(p[8*i:], x)
	}
	b.view(c).word.Store(o.word | kindRegion | wideHead)
	for calls := 1; !b.takeBlock(o); calls++ {
		if m.reads > transport.MaxRead/wideEntry/64+2 || o.fault != nil || calls > edges {
			t.Fatalf("call %d: %d reads, %+v", calls, m.reads, o.fault)
		}
		m.reads, o.moved = 0, false
	}
	binary.NativeEndian.PutUint64(p[16:], 1<<60)
	b.single.i, b.single.at, b.vector.far.edge = 0, 0, 0
	if b.takeBlock(o) || o.fault.Code() != fault.Unreachable {
		t.Errorf("a table that cannot be: %+v", o.fault)
	}
}
