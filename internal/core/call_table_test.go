// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	"gompi/collectives"
	"gompi/internal/engine"
)

// TestCallTableForgets: a call that other ranks make unseen is forgotten when the
// communicator is freed, and no rank enters a call afterwards.
func TestCallTableForgets(t *testing.T) {
	world := worldOf(t, 3)
	var table CallTable
	call := &engine.CollArgs{Op: "Barrier"}
	call.Args.Op = collectives.OpBarrier
	for _, c := range world {
		c.Proc.calls = &table
	}
	for number := range int64(100) {
		c := world[number%2] // rank 2 makes all its calls unseen
		if f := table.compare(c, call, number, false); f != nil {
			t.Fatal(f.Err)
		}
	}
	if n := len(table.comms[keyOf(world[0])]); n != 100 {
		t.Fatalf("%d calls are open, want 100", n)
	}
	for _, c := range world {
		if !c.Last() {
			t.Fatal("freed twice")
		}
		c.Free()
	}
	if f := table.compare(world[0], call, 200, false); f != nil {
		t.Fatal(f.Err)
	}
	if len(table.comms) != 0 {
		t.Errorf("calls of %d communicators are left, the first has %d", len(table.comms), len(table.comms[keyOf(world[0])]))
	}
}
