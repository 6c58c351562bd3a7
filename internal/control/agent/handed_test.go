// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// begin is a change of set 5 whose Result is set 6.
func (r *pageRig) beginTo(c uint32, body []byte) {
	r.Take(&protocol.Command{Kind: protocol.CmdSubscribe, Members: r.members, Page: protocol.PageCommand{Set: 6}})
	r.settle()
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: 5, Change: c, Votes: 3, Next: 6, Body: body})
}

// onPage is what stands on a page of a change.
func (r *pageRig) onPage(p changepage.Page, c changepage.Change) (b protocol.PageBody, ok bool) {
	r.t.Helper()
	raw, ok := p.Body(c)
	if ok {
		if err := protocol.Decode(&b, raw); err != nil {
			r.t.Fatal(err)
		}
	}
	return b, ok
}

func (r *pageRig) uncommon(s *Proc, x wire.ArenaRange) {
	if _, err := r.Frame(s.serial, protocol.Frame{Kind: protocol.KindLeaveCommon, Body: protocol.Encode(&protocol.LeaveCommon{Arena: x.Arena, Off: x.Off})}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}

// Members find the page of the Result on that of the input, and may touch it; after a
// roll-back those who have not claimed it may not any more, and its memory is free
// when the others have let go.
func TestHanded(t *testing.T) {
	r := newPageRig(t, 3)
	var page changepage.Page
	for i, s := range r.procs[:2] {
		r.follow(s, uint32(i+1), 5)
		r.work(nil)
		page, _ = r.view(uint32(i + 1))
	}
	for c := changepage.Change(1); c <= 2; c++ {
		r.beginTo(uint32(c), []byte("body"))
		if at, _ := page.Last(); at == c {
			t.Fatal("the change begins before the page of its Result is there")
		}
		r.work(nil)
		b, ok := r.onPage(page, c)
		if !ok || string(b.Rest) != "body" || b.Members != 3 || b.X.Bytes < int64(changepage.Bytes(3)) {
			t.Fatalf("change %d: %+v, %v", c, b, ok)
		}
		next := r.pages[6].extent
		if c == 1 { // the third begins to watch in its midst
			r.follow(r.procs[2], 3, 5)
		}
		if next.holders != 4 {
			t.Errorf("%d hold the page of the Result, not the agent and its members", next.holders)
		}
		if ok, _ := page.Member(1, 1, 1).Take(c); !ok {
			t.Error("not claimed")
		}
		r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: 5, Change: uint32(c)})
		r.do(protocol.PageCommand{Do: protocol.PageOver, Set: 5, Change: uint32(c)})
		r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 6})
		if next.holders != 1 || r.procs[1].holds[next.place()] != next {
			t.Errorf("%d hold the page of the Result after the roll-back, not who has claimed it", next.holders)
		}
		if ok, _ := page.Member(0, 1, 1).Take(c); ok {
			t.Error("claimed after the roll-back")
		}
		r.uncommon(r.procs[1], b.X)
		r.work(nil)
		if n := r.Sizes(); n["pages"] != 1 || n["ranges"] != 1 {
			t.Errorf("%v after the roll-back", n)
		}
	}
	// A member that goes on leaves the page of the input without a word.
	r.follow(r.procs[0], 7, 8)
	r.follow(r.procs[1], 8, 8)
	r.work(nil)
	old, _ := r.view(7)
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 8})
	if n := r.Sizes(); n["pages left"] != 1 || n["ranges"] != 2 {
		t.Errorf("%v while members have a page that is dropped", n)
	}
	old.Member(0, 1, 1).Leave()
	r.uncommon(r.procs[1], r.bodies[7].X)
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: 5, Change: 3, Votes: 3})
	r.work(nil)
	if n := r.Sizes(); n["pages left"] != 0 || n["ranges"] != 1 {
		t.Errorf("%v when all have left it", n)
	}
	// Nobody is given what does not fit, nor memory that cannot be had: they ask.
	r.beginTo(4, make([]byte, changepage.Bytes(3)))
	r.work(nil)
	if _, ok := r.onPage(page, 4); ok || r.pages[6].extent.holders != 1 {
		t.Error("a long body is on the page")
	}
	r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: 5, Change: 4})
	r.do(protocol.PageCommand{Do: protocol.PageOver, Set: 5, Change: 4})
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 6})
	r.work(nil)
	r.beginTo(5, []byte("body"))
	r.works[0].Files.Release()
	r.works[0].Done(protocol.ErrRefused)
	r.works = nil
	r.settle()
	if b, ok := r.onPage(page, 5); !ok || b.X.Bytes != 0 || string(b.Rest) != "body" {
		t.Errorf("without the memory of the page: %+v, %v", b, ok)
	}
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 5})
	for _, s := range r.procs {
		r.end(s)
	}
	r.empty()
}

// Those are woken first of a decision who have one among them that stays; the others
// a while after the page is dropped.
func TestWokenFirst(t *testing.T) {
	const n = 3 << bellShift
	for _, last := range []int{0, n - 1} { // whose word is heard when another has decided
		r := newPageRig(t, n)
		var bells []int
		for i, s := range r.procs {
			r.follow(s, uint32(i+1), 5)
			r.work(nil)
			bells = append(bells, r.epoll(uint32(i+1)))
		}
		all := r.members
		r.members = wire.MembersOf(all.At(0), all.At(1), all.At(1<<bellShift))
		r.beginTo(1, []byte("body"))
		r.work(nil)
		page, _ := r.view(1)
		page.Accept(1)
		page.Commit(1)
		r.word(r.procs[last], 5, 1)
		for i, b := range bells {
			if stays := bellOf(r.procs[i].serial) <= 1; r.rung(b) != stays {
				t.Errorf("after the word of %d member %d is woken: not %v", last, i, stays)
			}
		}
		r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 5})
		for i, b := range bells {
			if bellOf(r.procs[i].serial) > 1 && r.rung(b) {
				t.Errorf("member %d, which leaves, is woken at once", i)
			}
		}
		r.work(nil)
		for i, b := range bells {
			if stays := bellOf(r.procs[i].serial) <= 1; r.rung(b) == stays {
				t.Errorf("after the word of %d, when the page is dropped, member %d is woken: %v", last, i, stays)
			}
		}
		r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 6})
		for _, s := range r.procs {
			r.end(s)
		}
		r.empty()
	}
}

func (r *pageRig) word(s *Proc, set, c uint32) {
	if _, err := r.Frame(s.serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&protocol.StatusWord{Set: set, Change: c})}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}
