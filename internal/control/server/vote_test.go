// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// A member that has voted and leaves in order before the decision counts once; one that
// has not is voted for. The change is committed when the last that lives has voted.
func TestVoterLeaves(t *testing.T) {
	e := newElastic(t, 4, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	page := ws[3].page
	op := ws[3].submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}}).Op
	news := e.newcomers(0)
	ws[3].await(op, change.Ready)
	ws[3].begun()
	ws[0].checkVote()
	ws[1].checkVote()
	news[0].must(news[0].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op}))
	controltest.WaitFor(t, "three votes", func() bool { return page.Missing(1) == 2 })
	for i, left := range []int{0, 2} { // one has voted, the other has not
		ws[left].must(ws[left].Finalize())
		ws[left].Close()
		e.Exited(ws[left].id, "exited with status 0", true)
		ws[3].await(op, change.Adopting) // behind what the head has ordered
		if s, ok := page.Decision(1); s != changepage.Accepted || !ok || page.Missing(1) != 2-i {
			t.Fatalf("%v, and %d votes are missing when %d have left", s, page.Missing(1), i+1)
		}
	}
	ws[3].checkVote()
	if b := ws[1].await(op, change.Committed); b.State != change.Committed && b.State != change.Done {
		t.Errorf("%+v", b)
	}
}
