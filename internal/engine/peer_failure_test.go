// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/internal/engine/shmcoll"
	"gompi/internal/test/testlab"
	"gompi/transport"
)

// unreach makes node i lose its connection to node k, which lives.
func unreach(ns []*node, i, k int) {
	n := ns[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.protocol(n.ctx.peer(member(k)), transport.ErrUnreachable)
}

// disturbed waits until a node knows of something that forbids to use its
// communicator.
func (n *node) disturbed(t *testing.T) {
	t.Helper()
	within(t, "the end of a connection", func() bool {
		n.iprobe()
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ctx.faults != nil
	})
}

// A rank that cannot talk to another, which lives: collectives fail on all, and
// nobody takes the other for dead.
func TestUnreachableIsToldToMembers(t *testing.T) {
	for _, count := range []int{1, 100_000} {
		for _, early := range []bool{false, true} {
			ns := areaJob(t, 3, nil)
			everywhere(t, ns, func(i int) *CollArgs { // puts all in contact
				a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
				a.Alg = algorithm(collectives.OpBarrier, "direct")
				return a
			})
			if early {
				unreach(ns, 0, 1)
				ns[0].disturbed(t)
				ns[1].disturbed(t)
			}
			got := make(chan *fault.Fault, 3)
			begin := func(i int) {
				in, out, _ := areaCase(collectives.OpAllreduce, 1, i, 3, count, 0, false)
				got <- ns[i].Collective(ns[i].ctx, ns[i].call64(collectives.OpAllreduce, in, out, count, 0))
			}
			go begin(0)
			go begin(1)
			if !early {
				ns[1].asleep(t)
				unreach(ns, 0, 1)
			}
			go begin(2)
			for range ns {
				f := soon(t, "Allreduce", func() *fault.Fault { return <-got })
				// Whoever had all that it needs may have come through.
				if f.Code() != fault.Unreachable && f.Code() != fault.Aborted && (early || f != nil) {
					t.Errorf("%d elements, early %v: %+v", count, early, f)
				}
			}
			for i, n := range ns {
				if k := n.ctx.Failed(); len(k) > 0 || n.ctl.deaths() > 0 {
					t.Errorf("rank %d takes %v for dead", i, k)
				}
			}
		}
	}
}

// A contact that cannot be made fails what wanted it, and that alone: the next
// call tries again.
func TestContactFailsForNow(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	n.ctl.mu.Lock()
	n.ctl.contact = func(wire.ProcID) (wire.Contact, error) { return wire.Contact{}, errTest }
	n.ctl.mu.Unlock()
	wantClass(t, "send", n.send(1, 1, nil), fault.Unreachable)
	n.ctl.mu.Lock()
	n.ctl.contact = nil
	n.ctl.mu.Unlock()
	if f := n.send(1, 1, nil); f != nil {
		t.Fatal(f)
	}
	if _, f := ns[1].recv(0, 1, nil); f != nil {
		t.Fatal(f)
	}
}

// What waits for a peer whose connection has ended fails when the control plane
// has said why, and then everybody knows.
func TestFailureIsKnownFirst(t *testing.T) {
	for _, size := range []int{0, 1 << 20} {
		ns, hub := testJobOf(t, 3, nil, nil)
		n, id := ns[0], ns[1].Self()
		n.ctl.mu.Lock()
		n.ctl.ping = nil
		n.ctl.mu.Unlock()
		if f := n.send(1, 1, nil); f != nil {
			t.Fatal(f)
		}
		in, out := make([]byte, size), make([]byte, size)
		hs := []Handle{n.irecv(1, 1, in), n.isend(1, 2, out, Synchronous), n.icoll(in, collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(in)})}
		hub.Kill(id)
		within(t, "the end of the link", func() bool {
			n.iprobe()
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.peers[id].state == peerLost
		})
		hs = append(hs, n.isend(1, 3, out, Standard), n.irecv(1, 3, in))
		for i, h := range hs {
			if o := n.Test(h); o.Done {
				t.Fatalf("%d bytes: operation %d ends before anybody knows why: %+v", size, i, o.Status.Fault)
			}
		}
		n.ProcFailed(id, "was killed")
		for i, h := range hs {
			wantClass(t, fmt.Sprint("operation ", i), soon(t, "operation", func() Outcome { return n.Wait(h) }).Status.Fault, fault.ProcFailed)
			if len(n.ctx.Failed()) != 1 {
				t.Fatal("failed, and Failed does not know")
			}
		}
	}
}

// Whoever is leaving closes its connections long before the control plane has
// told of it: nobody takes it for a process that lives and cannot be reached. One
// that answers does, and the pair is cut.
func TestLostPeerIsAsked(t *testing.T) {
	ns, hub := testJobOf(t, 2, nil, nil)
	n, id := ns[0], ns[1].Self()
	asked := make(chan uint64, 8)
	n.ctl.mu.Lock()
	n.ctl.ping = func(p wire.ProcID, k uint64) {
		if p == id {
			asked <- k
		}
	}
	n.ctl.mu.Unlock()
	cut := make(chan string, 1)
	n.ctl.mu.Lock()
	n.ctl.cut = func(_ wire.ProcID, why string) { cut <- why }
	n.ctl.mu.Unlock()
	if f := n.send(1, 1, nil); f != nil {
		t.Fatal(f)
	}
	b := make([]byte, 8)
	in := n.irecv(1, 1, b)
	hub.Kill(id)
	k := soon(t, "question", func() uint64 { n.iprobe(); return <-asked })
	for name, answer := range map[string]func(){
		"of another":      func() { n.Ponged(n.Self(), k) },
		"another's":       func() { n.Ponged(id, k+1) },
		"of none at all":  func() { n.Ponged(wire.ProcID{}, 0) },
		"old, of a death": func() { n.Ponged(id, 0) },
	} {
		answer()
		if o := n.Test(in); o.Done {
			t.Fatalf("an answer %s ends the receive: %+v", name, o.Status.Fault)
		}
	}
	select {
	case why := <-cut:
		t.Fatal("cut: ", why)
	default:
	}
	n.ProcGone(id, "")
	wantClass(t, "receive", soon(t, "receive", func() Outcome { return n.Wait(in) }).Status.Fault, fault.Left)
	n.Lock()
	if len(n.pings) > 0 {
		t.Errorf("%d questions are kept", len(n.pings))
	}
	n.Unlock()

	ns, hub = testJobOf(t, 2, nil, nil)
	n, id = ns[0], ns[1].Self()
	told := make(chan string, 1)
	n.ctl.mu.Lock()
	n.ctl.cut = func(_ wire.ProcID, why string) { told <- why }
	n.ctl.mu.Unlock()
	n.outlived(ns[1])
	if f := n.send(1, 1, nil); f != nil {
		t.Fatal(f)
	}
	in = n.irecv(1, 1, b)
	hub.Kill(id)
	wantClass(t, "receive", soon(t, "receive", func() Outcome { return n.Wait(in) }).Status.Fault, fault.Unreachable)
	soon(t, "word to the other", func() string { return <-told })
}

// Of a death that another has told of, Failed knows when the call fails, however
// late the control plane's word comes; and where there is none nobody waits.
func TestLearnFailure(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n, id := ns[0], ns[1].Self()
	if f := soon(t, "answer", func() *fault.Fault { return n.LearnFailure(n.ctx, "", nil) }); f != nil {
		t.Errorf("nobody has died: %+v", f)
	}
	n.ctl.mu.Lock()
	n.ctl.ping = func(p wire.ProcID, k uint64) {
		n.ProcFailed(id, "was killed")
		n.Ponged(p, k)
	}
	n.ctl.mu.Unlock()
	wantClass(t, "fate", soon(t, "answer", func() *fault.Fault { return n.LearnFailure(n.ctx, "", nil) }), fault.ProcFailed)
	if len(n.ctx.Failed()) != 1 {
		t.Error("failed, and Failed does not know")
	}
}

// Who closes its engine answers no more, so that nobody cuts it off.
func TestLeaverDoesNotAnswer(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	var answers atomic.Int32
	n := ns[0]
	n.ctl.pong = func(wire.ProcID, uint64) { answers.Add(1) }
	n.Pinged(wire.ProcID{Job: testJob, Serial: 9}, 1)
	within(t, "the answer", func() bool { return answers.Load() == 1 })
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Pinged(wire.ProcID{Job: testJob, Serial: 9}, 2)
	n.ctl.mu.Lock()
	defer n.ctl.mu.Unlock()
	if n.ctl.pongs != 1 {
		t.Errorf("%d answers, of which one was given before", n.ctl.pongs)
	}
}

// played is a head that knows who has ended, and tells who asks.
type played struct {
	ns    []*node
	ended map[wire.ProcID]bool // failed
}

func (h *played) play() {
	for _, n := range h.ns {
		n.ctl.mu.Lock()
		n.ctl.watch = func(m wire.Members) {
			for _, p := range m.All() {
				if failed, ended := h.ended[p]; ended && failed {
					n.ProcFailed(p, "was killed")
				} else if ended {
					n.ProcGone(p, "")
				}
			}
		}
		n.ctl.mu.Unlock()
	}
}

// Who makes a communicator hears of those who ended before, however long ago,
// and remembers them as long as it has it.
func TestEarlierEndsAreTold(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	h := &played{ns, map[wire.ProcID]bool{proc(2): true, proc(3): false}}
	h.play()
	m := wire.MembersOf(proc(1), proc(2), proc(3), proc(4))
	for round := range uint32(3) {
		c := n.world(t, wire.ContextID{Creator: n.Self(), Serial: 5 + 2*round}, m)
		d := n.world(t, wire.ContextID{Creator: n.Self(), Serial: 6 + 2*round}, m)
		within(t, "the news", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return c.faults != nil && c.faults.away == 2 && d.faults.away == 2
		})
		if f := c.Failed(); len(f) != 1 || f[0] != 1 {
			t.Fatalf("failed: %v, want 1", f)
		}
		n.FreeContext(c)
		n.mu.Lock()
		kept := len(n.dead)
		n.mu.Unlock()
		n.FreeContext(d)
		n.mu.Lock()
		if kept != 2 || len(n.dead) != 0 || len(n.watched) != 1 {
			t.Errorf("of 2 who have ended %d are kept by one communicator, %d by none; %d are heard of", kept, len(n.dead), len(n.watched))
		}
		n.mu.Unlock()
	}
}

// A rank that has left: what needs it fails on every member, the rest goes on.
func TestLeft(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	a, b, c := ns[0], ns[1], ns[2]
	if f := c.send(0, 1, nil); f != nil {
		t.Fatal(f)
	}
	waiting := a.irecv(2, 9, nil)
	anybody := a.irecv(anySource, 8, nil)
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	a.ProcGone(c.Self(), "")
	if _, f := a.recv(2, 1, nil); f != nil {
		t.Fatalf("what it had sent: %+v", f)
	}
	f := soon(t, "receive", func() Outcome { return a.Wait(waiting) }).Status.Fault
	wantClass(t, "receive", f, fault.Left)
	if got := f.Err.Error(); got != "rank 2 has finalized; nothing more will come" {
		t.Errorf("error %q", got)
	}
	var st Status
	if _, found, f := a.Probe(a.ctx, &ProbeArgs{Source: 2, Tag: 1}, &st); found || f != nil {
		t.Errorf("Iprobe: %v, %+v", found, f)
	}
	_, _, f = a.Probe(a.ctx, &ProbeArgs{Source: 2, Tag: 1, Wait: true}, &st)
	wantClass(t, "Probe", f, fault.Left)
	wantClass(t, "send", a.send(2, 1, nil), fault.Left)
	if f := b.send(0, 8, nil); f != nil {
		t.Fatal(f)
	}
	if o := soon(t, "receive from anybody", func() Outcome { return a.Wait(anybody) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	if k := a.ctx.Failed(); len(k) > 0 {
		t.Errorf("failed: %v", k)
	}
	// b has not heard: a tells it.
	got := make(chan *fault.Fault, 2)
	for _, n := range ns[:2] {
		go func() {
			got <- n.Collective(n.ctx, &CollArgs{
				Op: "Barrier", Alg: algorithm(collectives.OpBarrier, "dissemination"),
				Call: shmcoll.Call{Args: collectives.Args{Op: collectives.OpBarrier, Rank: n.ctx.Rank, Size: 3}},
			})
		}()
	}
	for range 2 {
		f := soon(t, "Barrier", func() *fault.Fault { return <-got })
		wantClass(t, "Barrier", f, fault.Left)
		if f.Peer != 2 {
			t.Errorf("Barrier blames rank %d", f.Peer)
		}
	}
	a.ProcGone(b.Self(), "")
	_, f = a.recv(anySource, 7, nil)
	wantClass(t, "receive from anybody when all have left", f, fault.Left)
}

// One of whom somebody has asked by name is remembered until nobody does, one
// that never was, too.
func TestAskedAreForgotten(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	n.ctl.watch = func(m wire.Members) {
		for _, p := range m.All() {
			switch p.Serial % 3 {
			case 0:
				n.ProcFailed(p, "was killed")
			case 1:
				n.ProcGone(p, "")
			default:
				n.ProcNone(p)
			}
		}
	}
	known := func(p wire.ProcID) bool {
		n.Lock()
		defer n.Unlock()
		return n.dead[p] != nil
	}
	for i := range uint32(30) {
		p := proc(100 + int(i))
		n.Lock()
		n.Ask(p)
		n.Unlock()
		within(t, "an answer", func() bool { return known(p) })
		wantClass(t, "fate", n.Fate(p), [...]fault.Class{fault.ProcFailed, fault.Left, fault.Unreachable}[p.Serial%3])
		if !known(p) {
			t.Fatal("forgotten while somebody asks")
		}
		n.Lock()
		n.Unask(p)
		n.Unlock()
	}
	n.Lock()
	defer n.Unlock()
	if len(n.dead)+len(n.asked)+len(n.watched) > 0 {
		t.Errorf("kept: %d ends, %d asked for, %d heard of", len(n.dead), len(n.asked), len(n.watched))
	}
}

// What became of a process is known once, however many communicators have it.
func TestDeathsAreKeptOnce(t *testing.T) {
	const contexts, deaths = 500, 60
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	m := wire.NewMembers(wire.Range{First: proc(1), Count: deaths + 2})
	cs := make([]*Context, contexts)
	for i := range cs {
		cs[i] = n.world(t, wire.ContextID{Creator: n.Self(), Serial: uint32(5 + i)}, m)
	}
	before := testlab.Take()
	for i := range deaths {
		n.ProcFailed(proc(2+i), "was killed by signal 9 (SIGKILL)")
	}
	after := testlab.Take()
	if grown := int64(after.HeapBytes) - int64(before.HeapBytes); grown > 1<<20 {
		t.Errorf("%d KiB for %d deaths in %d communicators", grown>>10, deaths, contexts)
	}
	for _, c := range cs {
		if f := c.Failed(); len(f) != deaths || f[0] != 1 || f[deaths-1] != deaths {
			t.Fatalf("failed: %v", f)
		}
	}
	if k := cs[0].AckFailed(); k != deaths {
		t.Errorf("%d failures were acknowledged", k)
	}
	n.mu.Lock()
	f, last := cs[1].awaitFault(match.Any, wire.TrafficP2P), cs[0].awaitFault(match.Any, wire.TrafficP2P)
	n.mu.Unlock()
	if f == nil || f.Class != fault.ProcFailed || f.Peer != deaths {
		t.Errorf("a receive from anybody: %v, want the last death", f)
	}
	if last != nil {
		t.Errorf("a receive from anybody after all were acknowledged: %v", last)
	}
	for _, c := range cs {
		n.FreeContext(c)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.dead)+len(n.lost) != 0 {
		t.Errorf("%d deaths are remembered, and %d losses", len(n.dead), len(n.lost))
	}
}
