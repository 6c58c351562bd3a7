// SPDX-License-Identifier: Apache-2.0

package head

import (
	"testing"

	"gompi/internal/control/protocol"
)

// What is kept for a slow reader is one entry an operation, and bounded.
func TestHappenedBounded(t *testing.T) {
	h, x := New(Config{Job: 7}, 1), &interest{sets: map[uint32]struct{}{4: {}}, ops: map[*op]struct{}{}}
	for range maxHappened + 5 {
		o := new(op)
		for range 3 {
			h.happens(x, happened{what: protocol.SetEventOp, set: 4, op: o})
		}
	}
	h.happens(x, happened{what: protocol.SetEventGone, set: 4})
	if len(x.happened) != maxHappened+1 || x.missed != 5 || x.happened[maxHappened].what != protocol.SetEventGone {
		t.Errorf("%d things are kept, %d missed", len(x.happened), x.missed)
	}
	for range maxEnds + 5 {
		h.happens(x, happened{what: protocol.SetEventDied, set: 4})
	}
	if len(x.happened) != maxHappened+maxEnds || x.missed != 5+6 || len(x.ops) != maxHappened {
		t.Errorf("%d things are kept, %d of them operations, %d missed", len(x.happened), len(x.ops), x.missed)
	}
}
