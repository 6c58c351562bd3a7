// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// A process calls itself what gompirun calls it: a newcomer by new., and by its rank
// as soon as its change is committed.
func TestCalled(t *testing.T) {
	members := func(first uint32, n int) wire.Members {
		return wire.NewMembers(wire.Range{First: wire.ProcID{Job: 1, Serial: first}, Count: n})
	}
	was, now, other := members(1, 3), members(2, 4), members(3, 1)
	in := []wire.Set{{Members: was}}

	old := Process{Self: wire.ProcID{Job: 1, Serial: 3}, World: wire.Set{Members: was}}
	comes := Process{Self: wire.ProcID{Job: 1, Serial: 5}, World: wire.Set{Members: members(4, 2)}, Change: &protocol.ChangeBody{}}
	says := func(p *Process, want string) {
		t.Helper()
		if got := p.Called(); got != want {
			t.Errorf("called %q, not %q", got, want)
		}
	}
	says(&old, "rank 2")
	says(&comes, "new.1")
	old.Renamed([]wire.Set{{Members: now}}, other) // of another set
	says(&old, "rank 2")
	old.Renamed(in, now)
	comes.Renamed(in, now)
	says(&old, "rank 1")
	says(&comes, "rank 3")
	comes.Renamed([]wire.Set{{Members: now}}, members(5, 1))
	says(&comes, "rank 0")
	old.Renamed([]wire.Set{{Members: now}}, members(5, 1)) // it leaves
	says(&old, "rank 1")
}
