// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/setpage"
)

// The next change begins when no member that lives is behind in its queries, and not
// before; one that is withdrawn meanwhile never does.
func TestPageQueries(t *testing.T) {
	const set = 5
	r := newPageRig(t, 3)
	var members []*setpage.Member
	var page setpage.Page
	for i, s := range r.procs {
		r.follow(s, uint32(i+1), set)
		r.work(nil)
		page, _ = r.view(uint32(i + 1))
		members = append(members, page.Member(i, 1, 1))
	}
	do := func(c uint32, list ...control.PageDo) {
		for _, d := range list {
			r.do(control.PageOrder{Do: d, Set: set, Change: c, Votes: 3})
		}
	}
	begun := func(want setpage.Change) {
		t.Helper()
		if c, _ := page.Last(); c != want {
			t.Fatalf("change %d has begun last, want %d", c, want)
		}
	}
	// query is a call of a member, which tells the agent what there is to tell.
	query := func(i int, want setpage.Change) {
		t.Helper()
		m := members[i]
		k := m.Count()
		if c, ok := m.See(k); c != want || !ok {
			t.Fatalf("call %d of member %d sees %d, %v, want %d", k.Number, i, c, ok, want)
		}
		if c := m.Seen(k); c != 0 {
			word := control.Word{Set: set, Change: uint32(c)}
			if _, err := r.Frame(r.procs[i].serial, control.Frame{Kind: control.KindWord, Body: control.Encode(&word)}); err != nil {
				t.Fatal(err)
			}
			r.settle()
		}
	}
	query(0, 0)
	do(1, control.PageBegin)
	query(0, 0)
	do(1, control.PageFix)
	query(0, 1)
	if ok, first := page.Accept(1); !ok || !first {
		t.Fatal("not accepted")
	}
	query(0, 1)
	do(1, control.PageBreak, control.PageOver) // seen by the calls 3 and 4
	query(0, 0)
	do(2, control.PageBegin, control.PageFix)
	begun(1)
	for _, want := range []setpage.Change{0, 0, 1, 1, 0} {
		query(1, want)
	}
	begun(1)
	r.words = nil
	do(2, control.PageWithdraw)
	r.said(control.Report{Set: set, Change: 2, Word: change.IsRolledBack})
	do(2, control.PageOver)
	do(3, control.PageBegin)
	begun(1)
	for _, want := range []setpage.Change{0, 0, 1, 1} {
		begun(1)
		query(2, want)
	}
	begun(3)
	if s, ok := page.Verdict(2); s != setpage.RolledBack || !ok {
		t.Errorf("change 2 is %v, %v", s, ok)
	}
	// Nobody was handed the third.
	do(3, control.PageFix)
	query(0, 3)
	do(3, control.PageWithdraw, control.PageOver)
	query(0, 0)
	do(4, control.PageBegin)
	begun(4)
	// Who ends is not waited for, nor who leaves the page.
	do(4, control.PageFix)
	query(0, 4)
	page.Accept(4)
	do(4, control.PageBreak, control.PageOver)
	do(5, control.PageBegin)
	begun(4)
	r.end(r.procs[1])
	begun(4)
	x := r.bodies[3].X
	if _, err := r.Frame(r.procs[2].serial, control.Frame{Kind: control.KindUncommon, Body: control.Encode(&control.Uncommon{Arena: x.Arena, Off: x.Off})}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	begun(5)
	r.end(r.procs[2])
	r.end(r.procs[0])
	do(0, control.PageDrop)
	r.empty()
	if n := r.Sizes(); n["pages behind"] != 0 {
		t.Errorf("%v in the end", n)
	}
}
