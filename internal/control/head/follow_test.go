// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// What an agent has said of a change is nothing about another one of the same set, whose
// pages were made anew meanwhile: all had ended their watch.
func TestPagesMadeAnew(t *testing.T) {
	w := watching(t, 1, 3)
	sub := change.Request{Kind: change.Sub, In: []uint32{1}, Leave: 1, Whole: 5 * time.Second}
	first := w.taken(1, sub)
	w.ask(w.procs[1], &protocol.Op{Kind: protocol.KindWithdraw, Op: first.Op})
	w.now += 10 * time.Second
	w.h.Tick()
	w.flush()
	if len(w.reports) != 2 {
		t.Fatalf("two orders have %d answers", len(w.reports))
	}
	w.deliver()
	for serial := uint32(1); serial <= 3; serial++ {
		w.tell(w.procs[serial], &protocol.Set{Kind: protocol.KindUnsubscribe, Number: 1})
	}
	if len(w.pages) != 0 {
		t.Fatalf("%d pages are left", len(w.pages))
	}
	for serial := uint32(1); serial <= 3; serial++ {
		w.ask(w.procs[serial], &protocol.Subscribe{Set: 1, Options: protocol.Options{Step: 1, Lookahead: 1}})
	}
	next := w.taken(1, sub)
	w.deliver() // the second answer
	var b protocol.OpBody
	if err := w.got(1, &protocol.Await{Op: next.Op, Until: change.Granted}, &b); err != nil || b.State != change.Ready {
		t.Errorf("the next change is %v, %v", b.State, err)
	}
	if err := w.got(1, &protocol.GetChange{Set: 1, Change: 1}, nil); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("who asks for the change before is handed another: %v", err)
	}
	w.ask(w.procs[1], &protocol.Op{Kind: protocol.KindWithdraw, Op: next.Op})
	for len(w.reports) > 0 {
		w.deliver()
	}
	w.consistent()
	w.finish()
}
