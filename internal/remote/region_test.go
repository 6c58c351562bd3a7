// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"testing"

	"gompi/internal/segment"
	"gompi/internal/wire"
	"gompi/transport"
	"gompi/transport/inproc"
)

// private is a transport that shares no memory.
type private struct{ transport.Transport }

// TestHeapAsksForRoom: much memory on the heap is had before a region is made of
// it, a little is not asked for.
func TestHeapAsksForRoom(t *testing.T) {
	s := testProcessOver(t, inproc.NewHub(), wire.ProcID{Job: testJob, Serial: 1}, testControl{},
		func(tr *inproc.Transport) transport.Transport { return private{tr} })
	short, asked := errors.New("none left"), 0
	s.room = func(mem []byte) error {
		asked += len(mem)
		return short
	}
	if _, err := s.Allocate(segment.HeapStep, 1); !errors.Is(err, short) || asked != segment.HeapStep {
		t.Fatalf("%d bytes: error %v, asked for %d", segment.HeapStep, err, asked)
	}
	r, err := s.Allocate(segment.HeapStep-1, 1)
	if err != nil || asked != segment.HeapStep || r.shared {
		t.Fatalf("a little less: error %v, asked for %d, shared %v", err, asked, r.shared)
	}
	r.Close()
	s.room = heapRoom
	if r, err = s.Allocate(3*segment.HeapStep, 1); err != nil {
		t.Fatal(err)
	}
	r.Close()
}
