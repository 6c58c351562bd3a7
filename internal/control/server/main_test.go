// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// When all of the main set have left in order while newcomers have still to vote, the main
// set is what the change makes of it if it is committed, and none if it is not.
func TestMainOfNewcomers(t *testing.T) {
	for _, commits := range []bool{true, false} {
		e := newElastic(t, 1, nil)
		old := e.joinAll()[0].follow(e.world)
		op := old.submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}}).Op
		news := e.newcomers(0)
		old.await(op, change.Ready)
		if ok, _ := old.page.Accept(old.begun()); !ok {
			t.Fatal("not accepted")
		}
		old.must(old.Tell(&protocol.StatusWord{Set: e.world.Number, Change: 1}))
		result := news[0].w.Change.Result
		news[0].await(op, change.Adopting)
		old.must(old.Finalize())
		old.Close()
		e.Exited(old.id, "exited with status 0", true)
		if !commits {
			e.Exited(news[1].id, "was killed", false)
			if b := news[0].await(op, change.Committed); b.State != change.RolledBack {
				t.Errorf("%+v", b)
			}
			if s, err := news[0].Lookup(protocol.MainURI); err == nil {
				t.Errorf("the main set is %v", s)
			}
			continue
		}
		for _, k := range news {
			k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op}))
		}
		if b := news[0].await(op, change.Committed); b.State != change.Done && b.State != change.Committed {
			t.Errorf("%+v", b)
		}
		if s, err := news[0].Lookup(protocol.MainURI); err != nil || s.Number != result.Number {
			t.Errorf("the main set is %v, %v, want %v", s, err, result)
		}
	}
}
