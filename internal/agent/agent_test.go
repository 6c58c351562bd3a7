// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"testing"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// A process that has ended is given no pid, though the head may not have known:
// it would never let go of it.
func TestContactAfterEnd(t *testing.T) {
	var reaped []uint32
	a := New(7, 0, func(p wire.ProcID) { reaped = append(reaped, p.Serial) })
	procs := BareProcs(2)
	a.Take(&control.Order{Kind: control.OrderBind, ID: a.Reserve(procs), Serial: 1, Count: 2})
	for i, s := range procs {
		pid := 100 + i
		if _, err := a.Hello(s.token, pid); err != nil {
			t.Fatal(err)
		}
		a.Started(a.id(s), pid)
	}
	asks, other := procs[0], procs[1]
	a.Exited(a.id(asks), "exited", true)
	a.Take(&control.Order{Kind: control.OrderContact, Serial: asks.serial, ID: 1, Contact: &wire.Contact{Proc: a.id(other)}})
	a.Exited(a.id(other), "exited", true)
	a.Flush(func(d *Deed) {
		if d.Call != nil {
			d.Call()
		}
		d.Files.Release()
	})
	if want := []uint32{asks.serial, other.serial}; !slices.Equal(reaped, want) {
		t.Errorf("reaped are %v, want %v", reaped, want)
	}
}
