// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// The next change begins when no member that lives is behind in its queries, and not
// before; one that is withdrawn meanwhile never does.
func TestPageQueries(t *testing.T) {
	const set = 5
	r := newPageRig(t, 3)
	var members []*changepage.Member
	var page changepage.Page
	for i, s := range r.procs {
		r.follow(s, uint32(i+1), set)
		r.work(nil)
		page, _ = r.view(uint32(i + 1))
		members = append(members, page.Member(i, 1, 1))
	}
	do := func(c uint32, list ...protocol.PageDo) {
		for _, d := range list {
			r.do(protocol.PageCommand{Do: d, Set: set, Change: c, Votes: 3})
		}
	}
	begun := func(want changepage.Change) {
		t.Helper()
		if c, _ := page.Last(); c != want {
			t.Fatalf("change %d has begun last, want %d", c, want)
		}
	}
	// query is a call of a member, which tells the agent what there is to tell.
	query := func(i int, want changepage.Change) {
		t.Helper()
		m := members[i]
		k := m.BeginCall()
		if c, ok := m.Visible(k); c != want || !ok {
			t.Fatalf("call %d of member %d sees %d, %v, want %d", k.Number, i, c, ok, want)
		}
		if c := m.EndCall(k); c != 0 {
			word := protocol.StatusWord{Set: set, Change: uint32(c)}
			if _, err := r.Frame(r.procs[i].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&word)}); err != nil {
				t.Fatal(err)
			}
			r.settle()
		}
	}
	query(0, 0)
	do(1, protocol.PageBegin)
	query(0, 0)
	do(1, protocol.PageFix)
	query(0, 1)
	if ok, first := page.Accept(1); !ok || !first {
		t.Fatal("not accepted")
	}
	query(0, 1)
	do(1, protocol.PageBreak, protocol.PageOver) // seen by the calls 3 and 4
	query(0, 0)
	do(2, protocol.PageBegin, protocol.PageFix)
	begun(1)
	for _, want := range []changepage.Change{0, 0, 1, 1, 0} {
		query(1, want)
	}
	begun(1)
	r.words = nil
	do(2, protocol.PageWithdraw)
	r.said(protocol.Report{Set: set, Change: 2, Word: change.IsRolledBack})
	do(2, protocol.PageOver)
	do(3, protocol.PageBegin)
	begun(1)
	for _, want := range []changepage.Change{0, 0, 1, 1} {
		begun(1)
		query(2, want)
	}
	begun(3)
	if s, ok := page.Decision(2); s != changepage.RolledBack || !ok {
		t.Errorf("change 2 is %v, %v", s, ok)
	}
	// Nobody was handed the third.
	do(3, protocol.PageFix)
	query(0, 3)
	do(3, protocol.PageWithdraw, protocol.PageOver)
	query(0, 0)
	do(4, protocol.PageBegin)
	begun(4)
	// Who ends is not waited for, nor who leaves the page.
	do(4, protocol.PageFix)
	query(0, 4)
	page.Accept(4)
	do(4, protocol.PageBreak, protocol.PageOver)
	do(5, protocol.PageBegin)
	begun(4)
	r.end(r.procs[1])
	begun(4)
	x := r.bodies[3].X
	if _, err := r.Frame(r.procs[2].serial, protocol.Frame{Kind: protocol.KindLeaveCommon, Body: protocol.Encode(&protocol.LeaveCommon{Arena: x.Arena, Off: x.Off})}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	begun(5)
	r.end(r.procs[2])
	r.end(r.procs[0])
	do(0, protocol.PageDrop)
	r.empty()
	if n := r.Sizes(); n["pages behind"] != 0 {
		t.Errorf("%v in the end", n)
	}
}

// Where the head says from which call to which members see a change, those wait while
// it finds out, and the next change begins when it has and nobody is behind.
func TestPageQueriesOfHead(t *testing.T) {
	const set = 6
	r := newPageRig(t, 2)
	var members []*changepage.Member
	var page changepage.Page
	for i, s := range r.procs {
		r.follow(s, uint32(i+1), set)
		r.work(nil)
		page, _ = r.view(uint32(i + 1))
		members = append(members, page.Member(i, 1, 1))
	}
	do := func(d protocol.PageDo, c uint32, call uint64) {
		r.do(protocol.PageCommand{Do: d, Set: set, Change: c, Votes: 9, Agreed: 1, Call: call})
	}
	calls := func(want uint64) {
		t.Helper()
		if len(r.words) != 1 || r.words[0].Kind != protocol.ReportProgress || r.words[0].Change != 1 || r.words[0].Progress.Calls != want {
			t.Errorf("told %+v, want %d calls", r.words, want)
		}
		r.words = nil
	}
	end := func(i int, k changepage.QueryCall) {
		if c := members[i].EndCall(k); c != 0 {
			word := protocol.StatusWord{Set: set, Change: uint32(c)}
			if _, err := r.Frame(r.procs[i].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&word)}); err != nil {
				t.Fatal(err)
			}
			r.settle()
		}
	}
	see := func(i int, k changepage.QueryCall, want changepage.Change, known bool) {
		t.Helper()
		if c, ok := members[i].Visible(k); c != want || ok != known {
			t.Errorf("call %d of member %d sees %d, %v, want %d, %v", k.Number, i, c, ok, want, known)
		}
	}
	end(0, members[0].BeginCall())
	r.words = nil
	do(protocol.PageBegin, 1, 0)
	do(protocol.PageAsk, 1, 0)
	calls(1)
	second := members[0].BeginCall()
	see(0, second, 0, false)
	do(protocol.PagePublish, 1, 3) // a member elsewhere has called twice
	see(0, second, 0, true)
	end(0, second)
	third := members[0].BeginCall()
	see(0, third, 1, true)
	do(protocol.PageBreak, 1, 0)
	r.words = nil
	do(protocol.PageOver, 1, 0)
	calls(3)
	see(0, third, 0, false)
	do(protocol.PageBegin, 2, 0)
	do(protocol.PageBegun, 2, 0)
	if len(r.words) > 0 {
		t.Errorf("told %+v while it is not known until when a change is seen", r.words)
	}
	do(protocol.PageHide, 1, 4)
	see(0, third, 1, true)
	end(0, third)
	for _, want := range []changepage.Change{0, 0, 1} {
		if c, _ := page.Last(); c != 1 {
			t.Fatalf("change %d has begun while a member is behind", c)
		}
		k := members[1].BeginCall()
		see(1, k, want, true)
		end(1, k)
	}
	if c, _ := page.Last(); c != 2 || len(r.words) != 1 || r.words[0].Change != 2 {
		t.Errorf("change %d has begun, told %+v", c, r.words)
	}
	// Calls go on that wait for what never comes.
	do(protocol.PageAsk, 2, 0)
	k := members[1].BeginCall()
	see(1, k, 0, false)
	do(protocol.PageBreak, 2, 0)
	do(protocol.PageOver, 2, 0)
	see(1, k, 0, true)
	end(1, k)
	do(protocol.PageDrop, 0, 0)
	r.end(r.procs[0])
	r.end(r.procs[1])
	r.empty()
}
