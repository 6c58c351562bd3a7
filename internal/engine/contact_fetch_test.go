// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// A moment in which this process can open no files, or has no memory, is waited
// for: no peer is to blame, whatever it is needed for.
func TestMomentWithoutFiles(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	var asked atomic.Int32
	n.ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		switch asked.Add(1) % 4 {
		case 1, 2:
			return wire.Contact{}, fmt.Errorf("test: %w", syscall.EMFILE)
		case 3:
			return wire.Contact{}, fmt.Errorf("test: %w", syscall.ENOMEM)
		}
		return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
	}
	_, proof, _ := ns[1].Register(make([]byte, 8))
	if _, err := n.ReachMemory(ns[1].Self(), proof); err != nil || asked.Load() != 4 {
		t.Errorf("memory: %v after %d attempts", err, asked.Load())
	}
	if f := soon(t, "send", func() *fault.Fault { return n.send(1, 1, nil) }); f != nil || asked.Load() != 8 {
		t.Errorf("send: %+v after %d attempts", f, asked.Load())
	}
}
