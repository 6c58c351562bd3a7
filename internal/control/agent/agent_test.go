// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// A process that has ended is given no pid, though the head may not have known:
// it would never let go of it.
func TestContactAfterEnd(t *testing.T) {
	var reaped []uint32
	a := New(7, 0, func(p wire.ProcID) { reaped = append(reaped, p.Serial) })
	procs := BareProcs(2)
	a.Take(&protocol.Command{Kind: protocol.CmdBind, ID: a.Reserve(procs), Serial: 1, Count: 2})
	for i, s := range procs {
		pid := 100 + i
		if _, err := a.Hello(s.token, pid); err != nil {
			t.Fatal(err)
		}
		a.Started(a.id(s), pid)
	}
	asks, other := procs[0], procs[1]
	a.Exited(a.id(asks), "exited", true)
	a.Take(&protocol.Command{Kind: protocol.CmdContact, Serial: asks.serial, ID: 1, Contact: &wire.Contact{Proc: a.id(other)}})
	a.Exited(a.id(other), "exited", true)
	a.Flush(func(d *Action) {
		if d.Call != nil {
			d.Call()
		}
		d.Files.Release()
	})
	if want := []uint32{asks.serial, other.serial}; !slices.Equal(reaped, want) {
		t.Errorf("reaped are %v, want %v", reaped, want)
	}
}

// A process whose place was given up while it started is told that nobody wants it, and
// not that it is a stranger.
func TestUnwantedHello(t *testing.T) {
	a := New(7, 0, func(wire.ProcID) {})
	s := BareProcs(1)[0]
	a.Take(&protocol.Command{Kind: protocol.CmdBind, ID: a.Reserve([]*Proc{s}), Serial: 1, Count: 1})
	a.Started(a.id(s), 100)
	a.Take(&protocol.Command{Kind: protocol.CmdOver, Serial: 1, State: protocol.Exited})
	a.Take(&protocol.Command{Kind: protocol.CmdAbandon, Serial: 1})
	if _, err := a.Hello(s.token, 100); !errors.Is(err, protocol.ErrEnding) {
		t.Error(err)
	}
	a.Exited(a.id(s), "killed", false)
	if _, err := a.Hello(s.token, 100); !errors.Is(err, protocol.ErrRefused) || len(a.tokens)+len(a.procs) != 0 {
		t.Errorf("%v, %d tokens, %d places", err, len(a.tokens), len(a.procs))
	}
}
