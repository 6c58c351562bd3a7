// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
	"gompi/transport"
	"gompi/transport/inproc"
)

// opened opens a goroutine's place with a list of transports.
func opened(t *testing.T, list string, wrap func(transport.Transport, wire.ProcID, func()) (transport.Transport, error)) (Boot, error) {
	t.Helper()
	self := wire.ProcID{Job: 1, Serial: 1}
	w := &protocol.Welcome{Self: self, World: wire.Set{Members: wire.MembersOf(self)}, Segment: -1, Bell: -1, LocalProcs: 1, UsableCPUs: 1}
	return Open(newSingleton(w.World), w, Place{Transports: list, Hub: inproc.NewHub(), Book: make([]byte, segment.CallRegistryBytes), Wrap: wrap})
}

func TestOpenGoroutine(t *testing.T) {
	wrapped := 0
	b, err := opened(t, "inproc", func(tr transport.Transport, self wire.ProcID, _ func()) (transport.Transport, error) {
		wrapped++
		return tr, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Transports) != 1 || wrapped != 1 || b.Policy.OS || b.Book == nil || b.Sleeper == nil {
		t.Errorf("%d transports, %d wrapped, policy %+v, book %v, sleeper %v", len(b.Transports), wrapped, b.Policy, b.Book, b.Sleeper)
	}
	if _, ok := b.Joined(protocol.Event{LocalProcs: 3, MaxProcs: 1}); ok {
		t.Error("a goroutine waits otherwise because of other processes")
	}
}

// A name that is none is an error with those that are.
func TestOpenUnknown(t *testing.T) {
	for _, list := range []string{"ofi", "inproc,ofi"} {
		if _, err := opened(t, list, nil); err == nil || !strings.Contains(err.Error(), `transport "ofi": unknown`) {
			t.Errorf("%s: error %v", list, err)
		}
	}
}
