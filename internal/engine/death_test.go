// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/internal/engine/shmcoll"
	"gompi/transport"
)

// kill ends node i as a signal would, and tells the others.
func kill(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, i int) {
	t.Helper()
	id := ns[i].Self()
	hub.Kill(id)
	for j, n := range ns {
		if j != i {
			n.ProcFailed(id, "was killed")
		}
	}
}

// A death takes away what the dead has announced, and nothing else: not what a
// matched probe has taken, which fails, nor what others have.
func TestDeathTakesAnnouncements(t *testing.T) {
	ns, hub := testJobOf(t, 3, nil, nil)
	n := ns[0]
	big, in := pattern(make([]byte, 1<<20), 4), make([]byte, 1<<20)
	for i := range 3 {
		ns[1].isend(0, 1, big, Standard)
		ns[1].isend(0, 2, big[:8], Standard)
		if i > 0 {
			ns[2].isend(0, 1, big, Standard)
		}
	}
	within(t, "arrival", func() bool {
		n.iprobe()
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.table.ArrivedLen() == 8
	})
	var st Status
	m, found, _ := n.Probe(n.ctx, &ProbeArgs{Source: 1, Tag: 1, Take: true}, &st)
	if !found || st.Bytes != int64(len(big)) {
		t.Fatalf("probe: %v, %+v", found, st)
	}
	n.hangsTogether(t)
	kill(t, ns, hub, 1)
	n.mu.Lock()
	if k := n.table.ArrivedLen(); k != 3+2 {
		t.Errorf("%d messages are left, want the small ones of the dead and those of the other", k)
	}
	n.mu.Unlock()
	n.hangsTogether(t)
	wantClass(t, "what the probe took", n.Wait(n.Imrecv(n.ctx, m, &RecvArgs{Buf: buffer.Of(in)})).Status.Fault, fault.ProcFailed)
	for range 3 {
		if _, f := n.recv(1, 2, in[:8]); f != nil {
			t.Error(f)
		}
	}
	for range 2 {
		if _, f := n.recv(2, 1, in); f != nil {
			t.Error(f)
		}
	}
}

// Each end that the control plane tells is acknowledged once, however the news
// of it came; what this process finds out by itself is not.
func TestEndsAreAcknowledged(t *testing.T) {
	for _, met := range []bool{false, true} {
		for order, want := range map[string]int{
			"dead": 1, "dead dead": 1, "left": 1, "left left": 1, "left dead": 1,
			"link": 0, "link dead": 1, "link left": 1,
		} {
			ns, hub := testJobOf(t, 2, nil, nil)
			n, id := ns[0], ns[1].Self()
			if met {
				if f := n.send(1, 1, nil); f != nil {
					t.Fatal(f)
				}
			}
			for _, news := range strings.Fields(order) {
				switch news {
				case "dead":
					n.ProcFailed(id, "was killed")
				case "left":
					n.ProcGone(id, "")
				case "link":
					hub.Kill(id)
					within(t, "end of the link", func() bool {
						n.iprobe()
						n.mu.Lock()
						defer n.mu.Unlock()
						return !met || n.peers[id].state >= peerLost
					})
				}
			}
			within(t, "acknowledgement", func() bool { n.iprobe(); return n.ctl.deaths() >= want })
			for range 100 {
				n.iprobe()
			}
			if k := n.ctl.deaths(); k != want {
				t.Fatalf("met %v, %s: %d acknowledgements, want %d", met, order, k, want)
			}
		}
	}
}

// A peer whose connection has ended, and which takes part, cannot be reached, also in communicators made later.
func TestLinkLostWithoutVerdict(t *testing.T) {
	ns, hub := testJobOf(t, 2, nil, nil)
	n := ns[0]
	if f := n.send(1, 1, nil); f != nil {
		t.Fatal(f)
	}
	n.outlived(ns[1])
	hub.Kill(ns[1].Self())
	_, f := n.recv(1, 2, nil)
	wantClass(t, "receive", f, fault.Unreachable)
	c := n.world(t, wire.ContextID{Creator: n.Self(), Serial: 5}, n.ctx.Members)
	f = soon(t, "receive on a new communicator", func() *fault.Fault {
		var st Status
		return n.Recv(c, &RecvArgs{Source: 1, Tag: 2}, &st)
	})
	wantClass(t, "receive on a new communicator", f, fault.Unreachable)
}

// Two processes make contact at the same time, and the first message that one
// of them gets is large.
func TestCrossedContact(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	hold := make(chan struct{})
	ns[0].ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		<-hold
		return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
	}
	big, in := pattern(make([]byte, 1<<20), 4), make([]byte, 1<<20)
	out := ns[0].isend(1, 1, big, Standard) // waits for its contact
	got := ns[0].irecv(1, 2, in)
	sent := ns[1].isend(0, 2, big, Standard)
	if o := soon(t, "receive", func() Outcome { return ns[0].Wait(got) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	if err := checkPattern(in, 4); err != nil {
		t.Fatal(err)
	}
	if o := soon(t, "send", func() Outcome { return ns[1].Wait(sent) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	close(hold)
	if _, f := ns[1].recv(0, 1, in); f != nil {
		t.Fatal(f)
	}
	if o := soon(t, "send", func() Outcome { return ns[0].Wait(out) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
}

// A peer dies while this process fetches its contact: what waits for it fails,
// also if the answer says that all is well, or never comes before Close.
func TestDeathWhileConnecting(t *testing.T) {
	for _, answer := range []string{"error", "contact", "never"} {
		ns, hub := testJobOf(t, 2, nil, nil)
		n := ns[0]
		hold := make(chan struct{})
		n.ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
			<-hold
			if answer == "error" {
				return wire.Contact{}, errTest
			}
			return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
		}
		h := n.isend(1, 1, nil, Standard)
		kill(t, ns, hub, 1)
		if answer == "never" {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			soon(t, "Close", func() error { return n.Close(ended) })
			wantClass(t, "send", soon(t, "send", func() Outcome { return n.Wait(h) }).Status.Fault, fault.Finalized)
			close(hold)
			continue
		}
		close(hold)
		wantClass(t, answer, soon(t, "send", func() Outcome { return n.Wait(h) }).Status.Fault, fault.ProcFailed)
		within(t, "acknowledgement", func() bool { n.iprobe(); return n.ctl.deaths() == 1 })
	}
}

// roundOf is a schedule of one round with these steps.
func roundOf(steps ...collectives.Step) *collectives.Algorithm {
	return &collectives.Algorithm{
		Rounds: func(*collectives.Args) int { return 1 },
		Round: func(_ *collectives.Args, _ int, dst []collectives.Step) []collectives.Step {
			return append(dst, steps...)
		},
		Scratch: func(*collectives.Args) int64 { return 0 },
	}
}

func (n *node) icoll(out []byte, steps ...collectives.Step) Handle {
	return n.Icollective(n.ctx, &CollArgs{Op: "Test", Alg: roundOf(steps...), Call: shmcoll.Call{Out: buffer.Of(out), Unit: 1}})
}

func whole(b []byte) collectives.Ref {
	return collectives.Ref{Buf: collectives.Out, Len: int64(len(b))}
}

// Several sends of one collective wait in the queue of a peer that goes down.
func TestDeathUnderQueuedSteps(t *testing.T) {
	ns, hub := testJobOf(t, 2, nil, nil)
	n := ns[0]
	hold := make(chan struct{})
	n.ctl.contact = func(wire.ProcID) (wire.Contact, error) { <-hold; return wire.Contact{}, errTest }
	buf := make([]byte, 100)
	s := collectives.Step{Kind: collectives.Send, Peer: 1, A: whole(buf)}
	h := n.icoll(buf, s, s, s, s)
	h2 := n.isend(1, 1, buf, Standard)
	close(hold)
	wantClass(t, "collective", soon(t, "collective", func() Outcome { return n.Wait(h) }).Status.Fault, fault.Unreachable)
	wantClass(t, "send", soon(t, "send", func() Outcome { return n.Wait(h2) }).Status.Fault, fault.Unreachable)
	kill(t, ns, hub, 1)
	// The pool of requests is whole.
	seen := map[*Request]bool{}
	n.mu.Lock()
	defer n.mu.Unlock()
	free := 0
	for r := n.pool.free; r != nil; r = r.next {
		if seen[r] || r.kind != reqFree || r.done {
			t.Fatalf("request %d in the free list: twice %v, kind %d, done %v", r.index, seen[r], r.kind, r.done)
		}
		seen[r] = true
		free++
	}
	want := 0
	for _, chunk := range n.pool.chunks {
		for i := range chunk {
			if chunk[i].kind == reqFree {
				want++
			}
		}
	}
	if free != want {
		t.Fatalf("%d requests are free, want %d", free, want)
	}
}

// A rank that cannot send its step gives the collective up at once, although
// others still owe it theirs, and tells them.
func TestStepToDepartedRank(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	ns[0].ProcGone(ns[2].Self(), "")
	buf := make([]byte, 100)
	h := ns[0].icoll(buf, collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(buf)}, collectives.Step{Kind: collectives.Send, Peer: 2, A: whole(buf)})
	o := soon(t, "collective", func() Outcome { return ns[0].Wait(h) })
	wantClass(t, "collective", o.Status.Fault, fault.Left)
	b1 := make([]byte, 100)
	h = ns[1].icoll(b1, collectives.Step{Kind: collectives.Recv, Peer: 0, A: whole(b1)})
	o = soon(t, "collective of the other", func() Outcome { return ns[1].Wait(h) })
	wantClass(t, "collective of the other", o.Status.Fault, fault.Left)
	if o.Status.Fault.Peer != 2 {
		t.Fatalf("the other blames rank %d, want 2", o.Status.Fault.Peer)
	}
}

// What is told of a communicator before it exists here is not lost.
func TestNewsBeforeCreation(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	m := ns[0].ctx.Members
	id := func(s uint32) wire.ContextID { return wire.ContextID{Creator: ns[0].Self(), Serial: s} }
	revoked := ns[0].world(t, id(1), m)
	ns[0].Revoke(revoked)
	failed := ns[0].world(t, id(2), m)
	ns[0].mu.Lock()
	ns[0].tell(failed, kindCollFail, wire.TrafficColl, 0, 0)
	ns[0].mu.Unlock()
	within(t, "the news", func() bool {
		ns[1].iprobe()
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		return len(ns[1].notices) == 2
	})
	var st Status
	r := ns[1].world(t, id(1), m)
	wantClass(t, "receive", soon(t, "receive", func() *fault.Fault { return ns[1].Recv(r, &RecvArgs{}, &st) }), fault.Revoked)
	c := ns[1].world(t, id(2), m)
	b := make([]byte, 8)
	f := soon(t, "collective", func() *fault.Fault {
		return ns[1].Collective(c, &CollArgs{Alg: roundOf(collectives.Step{Kind: collectives.Recv, A: whole(b)}), Call: shmcoll.Call{Out: buffer.Of(b), Unit: 1}})
	})
	wantClass(t, "collective", f, fault.Aborted)
	if len(ns[1].notices) != 0 {
		t.Fatal("news is kept")
	}
	// Those of many communicators that never come are bounded.
	for s := range uint32(maxNotices + 100) {
		c := ns[0].world(t, id(10+s), m)
		ns[0].Revoke(c)
		ns[0].FreeContext(c)
	}
	within(t, "the news", func() bool {
		ns[1].iprobe()
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		return len(ns[1].notices) == maxNotices && ns[1].notices[maxNotices-1].id == id(10+maxNotices+99)
	})
}

// Members learn because of which change a communicator was revoked, in operations that
// are pending, also where it was freed, and where it does not exist yet.
func TestRevokedByChange(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	m := ns[0].ctx.Members
	id := wire.ContextID{Creator: ns[0].Self(), Serial: 1}
	const op = fault.Rollback(7)
	why := func(what string, f *fault.Fault) {
		t.Helper()
		wantClass(t, what, f, fault.Revoked)
		if f.Err != op || !errors.Is(f.Err, fault.RolledBack) {
			t.Errorf("%s: %v", what, f.Err)
		}
	}
	receive := func(i int, c *Context) func() *fault.Fault {
		h := ns[i].Irecv(c, &RecvArgs{Source: match.Any})
		return func() *fault.Fault { return ns[i].Wait(h).Status.Fault }
	}
	var waits []func() *fault.Fault
	for i := range 2 {
		c := ns[i].world(t, id, m)
		waits = append(waits, receive(i, c))
		if ns[i].FreeContext(c); i == 0 {
			c.RevokeBy(op)
		}
	}
	for i, wait := range waits {
		why(fmt.Sprint("receive of rank ", i), soon(t, "receive", wait))
	}
	within(t, "the news", func() bool {
		ns[2].iprobe()
		ns[2].mu.Lock()
		defer ns[2].mu.Unlock()
		return len(ns[2].notices) == 1
	})
	why("a later receive", soon(t, "receive", receive(2, ns[2].world(t, id, m))))
}

func TestFreedContextIsFinal(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	id := wire.ContextID{Creator: ns[0].Self(), Serial: 9}
	c := ns[0].world(t, id, ns[0].ctx.Members)
	ns[0].FreeContext(c)
	if _, err := ns[0].NewContext(id, c.Members, nil); err == nil {
		t.Fatal("a freed communicator was made again: its messages would be dropped")
	}
}

// Late calls after Close do not touch the transports.
func TestCallsAfterClose(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	big := make([]byte, 1<<20)
	ns[1].isend(0, 1, big, Standard)
	ns[1].isend(0, 1, big, Standard)
	ns[1].isend(0, 1, nil, Synchronous)
	var m *Message
	within(t, "arrival", func() bool {
		var st Status
		var found bool
		if m == nil {
			m, found, _ = n.Probe(n.ctx, &ProbeArgs{Source: 1, Tag: 1, Take: true}, &st)
			_ = found
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.table.ArrivedLen() == 2 && m != nil
	})
	other := n.world(t, wire.ContextID{Creator: n.Self(), Serial: 3}, n.ctx.Members)
	pending := n.irecv(1, 5, nil)
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	n.Revoke(other)
	wantClass(t, "Imrecv", n.Wait(n.Imrecv(n.ctx, m, &RecvArgs{Buf: buffer.Of(big)})).Status.Fault, fault.Finalized)
	n.FreeContext(n.ctx)
	n.TestAll([]Handle{pending})
	wantClass(t, "receive", n.Test(pending).Status.Fault, fault.Finalized)
	if n.iprobe() {
		t.Fatal("found a message")
	}
	n.ProcFailed(ns[1].Self(), "late")
	n.Kick()
	_, f := n.recv(1, 1, nil)
	if f.Code() != fault.Comm && f.Code() != fault.Finalized {
		t.Fatal(f)
	}
}

var errUnplugged = errors.New("the cable is unplugged")

// unplugged is a transport whose only connection has just broken.
type unplugged struct {
	loop
	down []transport.Event
}

func (u *unplugged) Caps() transport.Caps {
	return transport.Caps{Name: "unplugged", EagerMax: 4096, EagerBest: 1024}
}

func (u *unplugged) Connect(wire.Contact) (transport.Slot, error) {
	u.down = []transport.Event{{Kind: transport.EvDown, Slot: 1, Err: errUnplugged}}
	return 1, nil
}

func (u *unplugged) Send(transport.Slot, *wire.Header, []byte, transport.Token) transport.Status {
	return transport.Broken
}

func (u *unplugged) Offer(transport.Slot, []byte, transport.Token, []byte) (int, error) {
	return 0, transport.ErrPeerGone
}

func (u *unplugged) Poll(ev []transport.Event) int {
	n := copy(ev, u.down)
	u.down = u.down[n:]
	return n
}

func (u *unplugged) Arm() bool { return len(u.down) == 0 }

// A send that a broken connection refuses ends with the reason, which comes
// later.
func TestBrokenSendTellsWhy(t *testing.T) {
	for _, bytes := range []int{0, 8, 4096, 1 << 20} {
		for _, m := range []Mode{Standard, Synchronous} {
			ns, _ := testJobOf(t, 2, nil, func(i int, c *Config) {
				if i == 0 {
					c.Transports = []transport.Transport{&unplugged{loop: *newLoop(c.Sleeper.Wake)}}
				}
			})
			o := ns[0].Wait(ns[0].isend(1, 1, make([]byte, bytes), m))
			if f := o.Status.Fault; f == nil || f.Class != fault.Unreachable || f.Peer != 1 || !strings.Contains(f.Err.Error(), errUnplugged.Error()) {
				t.Errorf("%d bytes, mode %d: %+v", bytes, m, f)
			}
		}
	}
}

// Giving up many collectives takes time for each, not for each pair.
func TestRevokeUnderMany(t *testing.T) {
	const count = 20_000
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	hs, out := make([]Handle, count), make([]byte, 8)
	for i := range hs {
		hs[i] = n.icoll(out, collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(out)})
	}
	began := computed(t)
	n.Revoke(n.ctx)
	for i, h := range hs {
		if o := n.Wait(h); o.Status.Fault == nil || o.Status.Fault.Class != fault.Revoked {
			t.Fatalf("collective %d: %+v", i, o.Status.Fault)
		}
	}
	if d := computed(t) - began; d > time.Second {
		t.Errorf("giving up %d collectives took %v of a processor", count, d)
	}
}

// computed is how long processors have worked for this process.
func computed(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
