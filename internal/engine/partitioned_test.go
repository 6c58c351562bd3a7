// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"testing"

	"gompi/internal/host/wait"
)

func described(parts, base uint32, size uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, parts)
	b = binary.LittleEndian.AppendUint32(b, base)
	return binary.LittleEndian.AppendUint64(b, size)
}

func TestPartitionDescriptions(t *testing.T) {
	for _, c := range []struct {
		b  []byte
		ok bool
	}{
		{described(1, 0, 0), true},
		{described(MaxPartitions, 1<<31-MaxPartitions, 1<<46), true},
		{described(0, 0, 8), false},
		{described(MaxPartitions+1, 0, 8), false},
		{described(2, 1<<31-1, 8), false},
		{described(1, 1<<31, 8), false},
		{described(1, 0, 1<<46+1), false},
		{described(1, 0, 8)[:15], false},
	} {
		p := &Partitioned{}
		n := copy(p.frame[:], c.b)
		if err := p.describe(int64(n)); (err == nil) != c.ok {
			t.Errorf("description % x: %v", c.b, err)
		}
	}
}

// FuzzPartitionDescription: whatever a sender writes, what is accepted has
// tags and sizes with which the receiver can count.
func FuzzPartitionDescription(f *testing.F) {
	f.Add(described(4, 100, 1000), int64(100), int64(1000))
	f.Add(described(MaxPartitions, 0, 1), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, room, at int64) {
		p := &Partitioned{}
		if p.describe(int64(copy(p.frame[:], b))) != nil {
			if p.known {
				t.Fatal("refused, but used")
			}
			return
		}
		if p.parts < 1 || len(p.marked) != int(p.parts) || p.base < 0 || p.base+p.parts-1 < p.base || p.size*int64(p.parts) < 0 {
			t.Fatalf("accepted %d partitions of %d bytes at %d", p.parts, p.size, p.base)
		}
		p.main = new(Request)
		if lo := at & (1<<40 - 1); p.arrived(lo, lo+room&(1<<40-1)+1) {
			t.Fatal("arrived before anything came")
		}
	})
}

func TestCollectiveTags(t *testing.T) {
	e := &Engine{}
	e.mu = wait.NewGate()
	c := &Context{e: e}
	seen := map[int32]bool{}
	take := func(n CollTag) int32 {
		tag := c.collTag(n)
		if tag < 0 || seen[tag] {
			t.Fatalf("tag %#x is negative or in use", tag)
		}
		seen[tag] = true
		return tag
	}
	take(0)
	early := c.NumberColl()
	p, q := c.NumberPersistent(), c.NumberPersistent()
	for range 5 {
		take(q)
		take(0)
	}
	take(p)
	if got := take(early); got != 1 {
		t.Fatalf("the call numbered second has tag %d", got)
	}
	// A failure told for a start that is past concerns nobody; one for a
	// start to come, also of an Init to come, does.
	tag := func(n CollTag, start int) int32 { return int32(n-1) | int32(start) }
	for _, x := range []struct {
		tag  int32
		want bool
	}{{tag(q, 4), false}, {tag(q, 5), true}, {tag(q, 6), true}, {tag(p, 0), false}, {tag(p+2<<startBits, 0), true},
		{6, false}, {7, true}, {7 + maxEarly, true}, {7 + seqMask/2 + 1, false}} {
		if got := c.ahead(x.tag); got != x.want {
			t.Errorf("ahead(%#x) is %v", x.tag, got)
		}
	}
	// Starts wrap.
	for range startMask - 4 {
		take(q)
	}
	if got := c.collTag(q); got != tag(q, 0) {
		t.Fatalf("start %d has tag %#x", startMask+2, got)
	}
}
