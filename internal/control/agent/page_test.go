// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// pageRig is an agent, processes that are joined, and what the agent says.
type pageRig struct {
	*Agent
	t       *testing.T
	procs   []*Proc
	members wire.Members
	works   []Action
	bodies  map[uint32]protocol.PageBody // by request
	fails   map[uint32]error
	files   map[uint32][2]int
	words   []protocol.Report
}

func newPageRig(t *testing.T, n int) *pageRig {
	r := &pageRig{
		Agent: New(6, 0, nil), t: t, procs: BareProcs(n),
		bodies: map[uint32]protocol.PageBody{}, fails: map[uint32]error{}, files: map[uint32][2]int{},
	}
	r.heap.most = modelArena
	r.Take(&protocol.Command{Kind: protocol.CmdBind, ID: r.Reserve(r.procs), Serial: 1, Count: uint32(n)})
	var ids []wire.ProcID
	for i, s := range r.procs {
		if _, err := r.Hello(s.token, 100+i); err != nil {
			t.Fatal(err)
		}
		r.Started(r.id(s), 100+i)
		ids = append(ids, r.id(s))
	}
	r.members = wire.MembersOf(ids...)
	r.settle()
	r.words = nil
	t.Cleanup(func() {
		for _, fds := range r.files {
			unix.Close(fds[0])
			unix.Close(fds[1])
		}
		r.Close()
	})
	return r
}

func (r *pageRig) settle() {
	r.Report(func(w *protocol.Report) {
		if w.Kind == protocol.ReportStatusWord || w.Kind == protocol.ReportProgress {
			r.words = append(r.words, *w)
		}
	})
	r.Flush(func(d *Action) {
		if d.Work != nil {
			r.works = append(r.works, *d)
			return
		}
		if d.Frame != nil {
			r.answered(d)
		}
		d.Files.Release()
	})
}

// answered takes what a process that has asked for a page gets.
func (r *pageRig) answered(d *Action) {
	f, n, err := protocol.ParseHead(d.Frame)
	if err != nil {
		r.t.Fatal(err)
	}
	var reply protocol.Reply
	if err := protocol.Decode(&reply, d.Frame[protocol.FrameHead:][:n]); err != nil {
		r.t.Fatal(err)
	}
	if err := reply.Err(); err != nil {
		r.fails[f.ID] = err
		return
	}
	var b protocol.PageBody
	if err := protocol.Decode(&b, reply.Body); err != nil {
		r.t.Fatal(err)
	}
	r.bodies[f.ID] = b
	if f.FDs > 0 {
		var fds [2]int
		for i, fd := range []int{d.Files.segment, d.Files.bell} {
			if fds[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
				r.t.Fatal(err)
			}
		}
		r.files[f.ID] = fds
	}
}

// work carries out what takes long, or lets it fail.
func (r *pageRig) work(fail error) {
	for len(r.works) > 0 {
		d := r.works[0]
		r.works = r.works[1:]
		err := fail
		if err == nil {
			err = d.Work()
		}
		d.Files.Release()
		d.Done(err)
		r.settle()
	}
}

func (r *pageRig) follow(s *Proc, id, set uint32) {
	r.Take(&protocol.Command{
		Kind: protocol.CmdSubscribe, Serial: s.serial, ID: id, Members: r.members,
		Page: protocol.PageCommand{Set: set}, Frame: []byte{byte(id)},
	})
	r.settle()
}

func (r *pageRig) do(o protocol.PageCommand) {
	r.Take(&protocol.Command{Kind: protocol.CmdPage, Page: o})
	r.settle()
}

// view is the page as the process has it that has asked by this request.
func (r *pageRig) view(id uint32) (p changepage.Page, memory []byte) {
	r.t.Helper()
	b, ok := r.bodies[id]
	if !ok {
		r.t.Fatalf("request %d: %v", id, r.fails[id])
	}
	if err := segment.CheckArena(r.files[id][0], b.X.Total); err != nil {
		r.t.Fatal(err)
	}
	mem, err := segment.Map(r.files[id][0], b.X.Off, b.X.Bytes, true)
	if err == nil {
		p, err = changepage.View(mem, b.Members)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { segment.Unmap(mem) })
	return p, mem
}

// rung reports whether a process's bell was rung since the last time, as epoll tells
// it of one that nobody reads.
func (r *pageRig) rung(epoll int) bool {
	n, err := unix.EpollWait(epoll, make([]unix.EpollEvent, 1), 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return n > 0
}

func (r *pageRig) epoll(id uint32) int {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, r.files[id][1], &ev)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { unix.Close(ep) })
	r.rung(ep)
	return ep
}

// said takes what the head was told of words.
func (r *pageRig) said(want ...protocol.Report) {
	r.t.Helper()
	ok := len(r.words) == len(want)
	for i := 0; ok && i < len(want); i++ {
		w := &r.words[i]
		ok = w.Set == want[i].Set && w.Change == want[i].Change && w.Word == want[i].Word && w.Iteration == want[i].Iteration
	}
	if !ok {
		r.t.Errorf("the head was told %+v, want %+v", r.words, want)
	}
	r.words = nil
}

func (r *pageRig) end(s *Proc) {
	r.HungUp(s.serial)
	r.Exited(r.id(s), "ended", true)
	r.settle()
}

// empty checks that nothing is left.
func (r *pageRig) empty() {
	r.t.Helper()
	r.work(nil)
	if n := r.Sizes(); n["pages"] != 0 || n["ranges"] != 0 {
		r.t.Errorf("%v in the end", n)
	}
	for _, a := range r.heap.arenas {
		var st unix.Stat_t
		if err := unix.Fstat(a.files.segment, &st); err != nil || st.Blocks != 0 {
			r.t.Errorf("arena %d keeps %d pages, %v", a.number, st.Blocks/8, err)
		}
	}
}

// A change goes its way over a page: all members have one and the same, all are woken
// by each of the agent's writes, and the head is told each state of the word once.
func TestPage(t *testing.T) {
	const set = 5
	r := newPageRig(t, 3)
	r.follow(r.procs[0], 1, set)
	r.follow(r.procs[1], 2, set)
	if len(r.bodies) > 0 {
		t.Fatal("answered before the pages are there")
	}
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 4}) // waits likewise
	r.work(nil)
	r.follow(r.procs[2], 3, set)
	var members []*changepage.Member
	var bells []int
	var page changepage.Page
	for i := range r.procs {
		id := uint32(i + 1)
		if b := r.bodies[id]; b.Place != i || b.Members != 3 || b.X != (r.bodies[1].X) || string(b.Rest) != string([]byte{byte(id)}) {
			t.Fatalf("process %d is given %+v, the first %+v", i, b, r.bodies[1])
		}
		page, _ = r.view(id)
		members = append(members, page.Member(i, 2, 1))
		bells = append(bells, r.epoll(id))
	}
	for i, m := range members {
		if c := m.Check(uint64(10 + 2*i)); c != 0 {
			t.Fatalf("member %d is handed change %d", i, c)
		}
	}
	members[1].SetIterationTime(2000)
	members[1].AddBytes(7)
	r.do(protocol.PageCommand{Do: protocol.PagePoll, Set: set})
	if l := r.words[0].Progress; l != (protocol.Progress{Of: protocol.PagePoll, Least: 10, Most: 14, Begun: 3, Mean: 2000, Bytes: 7}) {
		t.Errorf("the head sees %+v", l)
	}
	r.words = nil
	r.do(protocol.PageCommand{Do: protocol.PageFix, Set: set, Change: 1, Options: protocol.Options{Step: 2, Lookahead: 1}})
	for i, m := range members {
		if c := m.Check(14); c != 0 {
			t.Fatalf("member %d is handed change %d before the agreed iteration", i, c)
		}
		if c := m.Check(16); c != 1 || m.First() != (i == 0) {
			t.Fatalf("member %d is handed change %d, first %v", i, c, m.First())
		}
		if _, err := r.Frame(r.procs[i].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&protocol.StatusWord{Set: set, Change: 1})}); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsAccepted, Iteration: 17})
	r.do(protocol.PageCommand{Do: protocol.PageWithdraw, Set: set, Change: 1})
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsAccepted, Iteration: 17})
	for _, m := range bells {
		if !r.rung(m) || r.rung(m) {
			t.Error("a member is not woken once, for what may have been decided")
		}
	}
	for range members {
		page.Vote(1)
	}
	r.do(protocol.PageCommand{Do: protocol.PageVote, Set: set, Change: 1})
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsCommitted, Iteration: 17})
	for _, m := range bells {
		if !r.rung(m) {
			t.Error("a member is not told of the commit")
		}
	}
	r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: set, Change: 1})
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsCommitted, Iteration: 17})
	r.do(protocol.PageCommand{Do: protocol.PageOver, Set: set, Change: 1})

	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 2, Votes: 3})
	r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: set, Change: 2})
	r.said(protocol.Report{Set: set, Change: 2, Word: change.IsRolledBack})
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set})
	x := r.bodies[1].X
	if _, err := r.Frame(r.procs[0].serial, protocol.Frame{Kind: protocol.KindLeaveCommon, Body: protocol.Encode(&protocol.LeaveCommon{Arena: x.Arena, Off: x.Off})}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if n := r.Sizes(); n["pages"] != 0 || n["ranges"] != 1 {
		t.Errorf("%v while two members have the page", n)
	}
	r.end(r.procs[1])
	r.end(r.procs[2])
	r.empty()
}

// Who is no member, or has ended, gets no page; where there is none, nobody was handed
// anything; and memory that cannot be had is had later.
func TestNoPage(t *testing.T) {
	const set = 9
	r := newPageRig(t, 3)
	all := r.members
	r.members = wire.MembersOf(all.At(0), all.At(1))
	r.follow(r.procs[2], 1, set)
	if !errors.Is(r.fails[1], protocol.ErrRefused) || len(r.works) > 0 {
		t.Errorf("no member: %v", r.fails[1])
	}
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 3})
	r.do(protocol.PageCommand{Do: protocol.PageWithdraw, Set: set, Change: 1})
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsRolledBack})

	errTest := errors.New("no pages")
	r.follow(r.procs[0], 2, set)
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 3})
	r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: set, Change: 1})
	r.said()
	r.work(errTest)
	if r.fails[2] == nil {
		t.Error("a page without memory was given")
	}
	r.said(protocol.Report{Set: set, Change: 1, Word: change.IsRolledBack})
	r.works = nil
	if r.heap.lost != 1 { // nor could the range be cleared
		t.Errorf("%d ranges are lost", r.heap.lost)
	}
	r.heap.used, r.heap.lost = 0, 0

	r.follow(r.procs[0], 3, set)
	r.follow(r.procs[1], 4, set)
	r.end(r.procs[0])
	r.work(nil)
	if _, ok := r.bodies[3]; ok {
		t.Error("who has ended is given a page")
	}
	if b := r.bodies[4]; b.Members != 2 || b.Place != 1 {
		t.Errorf("the other is given %+v", b)
	}
	r.members = wire.Members{}
	r.follow(r.procs[2], 6, set)
	if b := r.bodies[6]; b.X.Bytes != 0 || string(b.Rest) != "\x06" {
		t.Errorf("who leaves is given %+v", b)
	}
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set})
	r.members = all
	r.Take(&protocol.Command{Kind: protocol.CmdSubscribe, Members: all, Page: protocol.PageCommand{Set: set}}) // for nobody
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 1})
	r.work(nil)
	r.follow(r.procs[2], 8, set)
	if page, _ := r.view(8); page.Missing(1) != 1 {
		t.Error("a page that the head asked for has not begun")
	}
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set})
	r.end(r.procs[2])
	r.members = wire.MembersOf(all.At(1))
	r.follow(r.procs[1], 7, set+1)
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set + 1}) // while it is made
	r.work(nil)
	if !errors.Is(r.fails[7], protocol.ErrNotFound) {
		t.Errorf("a page that is dropped while it is made: %v", r.fails[7])
	}
	r.end(r.procs[1])
	r.empty()
}

// Whatever members write, the head is told nothing that the messages do not allow,
// and its orders are carried out.
func TestScribbledPage(t *testing.T) {
	const set = 3
	r := newPageRig(t, 2)
	r.follow(r.procs[0], 1, set)
	r.work(nil)
	_, mem := r.view(1)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at := rng.IntN(changepage.Bytes(2)/8) * 8
		binary.LittleEndian.PutUint64(mem[at:], rng.Uint64()>>rng.IntN(64))
		c := uint32(rng.IntN(4))
		r.do(protocol.PageCommand{Do: [...]protocol.PageDo{
			protocol.PageBegin, protocol.PageFix, protocol.PageWithdraw, protocol.PageBreak, protocol.PageVote, protocol.PageCommit, protocol.PageOver, protocol.PagePoll, protocol.PageAsk, protocol.PagePublish, protocol.PageHide, protocol.PageBegun, protocol.PageNoVote,
		}[rng.IntN(13)], Set: set, Change: c, Votes: 2, Agreed: rng.Uint64() >> rng.IntN(64), Call: rng.Uint64() >> rng.IntN(64), Options: protocol.Options{Step: 1, Lookahead: 1}, Members: r.members})
		if _, err := r.Frame(r.procs[0].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&protocol.StatusWord{Set: set, Change: c})}); err != nil {
			t.Fatal(err)
		}
		r.settle()
		for i := range r.words {
			var back protocol.Report
			if err := protocol.Decode(&back, protocol.Encode(&r.words[i])); err != nil {
				t.Fatalf("%+v: %v", r.words[i], err)
			}
			if w := &r.words[i]; w.Kind == protocol.ReportStatusWord && w.Word == 0 || w.Iteration > changepage.MaxNumber {
				t.Fatalf("the head is told %+v", w)
			}
		}
		r.words = nil
	}
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set})
	r.end(r.procs[0])
	r.empty()
}

// Of many members some have a bell in common, not all: the kernel would refuse that.
// What one of them says of the word wakes all: another may have swapped it since.
func TestPageBells(t *testing.T) {
	const set, n = 5, 2<<bellShift + 1
	r := newPageRig(t, n)
	var bells []int
	for i, s := range r.procs {
		r.follow(s, uint32(i+1), set)
		r.work(nil)
		bells = append(bells, r.epoll(uint32(i+1)))
	}
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 1})
	rung := func(want func(i int) bool) {
		t.Helper()
		for i, b := range bells {
			if r.rung(b) != want(i) {
				t.Errorf("member %d of %d: woken is not %v", i, n, want(i))
			}
		}
	}
	one := [8]byte{1}
	unix.Write(r.files[1][1], one[:])
	rung(func(i int) bool { return bellOf(r.procs[i].serial) == bellOf(1) })
	page, _ := r.view(1)
	if page.Accept(1); !page.Commit(1) {
		t.Fatal("not committed")
	}
	if _, err := r.Frame(r.procs[0].serial, protocol.Frame{Kind: protocol.KindStatusWord, Body: protocol.Encode(&protocol.StatusWord{Set: set, Change: 1})}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	rung(func(int) bool { return true })
	r.do(protocol.PageCommand{Do: protocol.PageOver, Set: set, Change: 1})
	rung(func(int) bool { return true })
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: set})
	for _, s := range r.procs {
		r.end(s)
	}
	r.empty()
}

// A change for which all have voted, before anybody was handed it, holds: who has a vote has
// left, and nobody might come.
func TestPageOfThoseWhoHaveLeft(t *testing.T) {
	const set = 5
	for what, orders := range map[string][]protocol.PageCommand{
		"votes before it is handed out": {{Do: protocol.PageVote}, {Do: protocol.PageVote}, {Do: protocol.PageFix}},
		"votes afterwards":              {{Do: protocol.PageVote}, {Do: protocol.PageFix}, {Do: protocol.PageVote}},
	} {
		t.Run(what, func(t *testing.T) {
			r := newPageRig(t, 2)
			r.follow(r.procs[0], 1, set)
			r.work(nil)
			r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: set, Change: 1, Votes: 2})
			for i, o := range orders {
				if n := len(r.words); n != 0 {
					t.Errorf("before order %d the head hears %+v", i, r.words)
				}
				o.Set, o.Change, o.Options = set, 1, protocol.Options{Step: 1, Lookahead: 1}
				r.do(o)
			}
			if n := len(r.words); n != 1 || r.words[0].Word != change.IsCommitted {
				t.Errorf("the head hears %+v", r.words)
			}
		})
	}
}
