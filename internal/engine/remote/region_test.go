// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"errors"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
	"gompi/transport/inproc"
)

// private is a transport that shares no memory.
type private struct{ transport.Transport }

// TestHeapAsksForRoom: much memory on the heap is had before a region is made of
// it, a little is not asked for.
func TestHeapAsksForRoom(t *testing.T) {
	s := testProcessOver(t, inproc.NewHub(), wire.ProcID{Job: testJob, Serial: 1}, testControl{},
		func(tr *inproc.Transport, _ func()) transport.Transport { return private{tr} })
	short, asked := errors.New("none left"), 0
	s.room = func(mem []byte) error {
		asked += len(mem)
		return short
	}
	if _, err := s.Allocate(segment.HeapStep, 1); !errors.Is(err, short) || asked != segment.HeapStep {
		t.Fatalf("%d bytes: error %v, asked for %d", segment.HeapStep, err, asked)
	}
	r, err := s.Allocate(segment.HeapStep-1, 1)
	if err != nil || asked != segment.HeapStep || !r.shared.None() {
		t.Fatalf("a little less: error %v, asked for %d, shared %v", err, asked, !r.shared.None())
	}
	r.Close()
	s.room = heapRoom
	if r, err = s.Allocate(3*segment.HeapStep, 1); err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// TestSmallRegionsStayMapped: a target of memory that was used by an earlier
// region maps nothing, and what is abandoned is not used again.
func TestSmallRegionsStayMapped(t *testing.T) {
	spaces := testJobOf(t, 2)
	owner, other := spaces[0], spaces[1]
	reach := func(r *Region) *Target {
		d := r.Desc()
		x, f := other.Reach(owner.self, &d)
		if f != nil || x.path != isMapped(x) || int64(len(x.Mapped())) != x.Bytes() {
			t.Fatalf("%+v, path %T", f, x.path)
		}
		return x
	}
	var abandoned []*Region
	for i := range 100 {
		r, err := owner.Allocate(int64(1+10*i), 1)
		if err != nil {
			t.Fatal(err)
		}
		x := reach(r)
		x.Mapped()[10*i] = byte(i + 1)
		if r.Mem()[10*i] != byte(i+1) || bytes.Count(r.Mem(), []byte{0}) < len(r.Mem())-1 {
			t.Fatal("another memory")
		}
		part, err := other.Within(x, 1, int64(10*i), 1)
		if err != nil {
			t.Fatal(err)
		}
		d := part.Desc()
		y, f := owner.Reach(other.self, &d)
		if f != nil {
			t.Fatal(f)
		}
		if i > 0 && y.Mapped()[10*i-1] != byte(i+1) {
			t.Fatal("the part is another memory")
		}
		y.Close()
		part.Close()
		x.Close()
		if i%10 == 0 {
			r.Abandon()
			abandoned = append(abandoned, r)
			continue
		}
		r.Close()
		d = r.Desc()
		if _, f := other.Reach(owner.self, &d); f == nil || f.Class != fault.Closed {
			t.Fatalf("a closed region: %v", f)
		}
	}
	if n := other.cache.Len(); n > 1 {
		t.Errorf("%d arenas are mapped", n)
	}
	for i, r := range abandoned {
		if r.mem[100*i] != byte(10*i+1) {
			t.Errorf("abandoned region %d was used again", i)
		}
	}
}
