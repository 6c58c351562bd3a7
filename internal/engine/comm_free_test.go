// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/shmcoll"
)

// gone waits until nothing of a freed context is left.
func (n *node) gone(t *testing.T) {
	t.Helper()
	within(t, "the end of the freed context", func() bool {
		n.Kick()
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.contexts[n.ctx.ID] == nil && n.freeing == 0 && n.table.PostedLen() == 0 && n.table.ArrivedLen() == 0
	})
}

func (n *node) lives(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.contexts[n.ctx.ID] == nil || n.freeing != 1 {
		t.Fatal("the freed context is gone while operations are pending")
	}
}

func (n *node) ended(t *testing.T, what string, h Handle, want fault.Class) Outcome {
	t.Helper()
	o := soon(t, what, func() Outcome { return n.Wait(h) })
	wantClass(t, what, o.Status.Fault, want)
	return o
}

// What was pending when a context was freed completes, in any order, and the
// context ends with the last of it.
func TestFreeWithPending(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Credit = 8 << 10 })
	a, b := ns[0], ns[1]
	big, in := pattern(make([]byte, 1<<20), 3), make([]byte, 1<<20)
	small := make([]byte, 8)
	recvs := []Handle{a.irecv(1, 1, small), a.irecv(1, 2, in), a.irecv(anySource, anySource, nil)}
	sends := []Handle{a.isend(1, 3, small, Synchronous), a.isend(1, 4, big, Standard)}
	for range 20 { // more than the credit
		sends = append(sends, a.isend(1, 5, big[:1000], Standard))
	}
	other := a.NewOther(a.ctx, "Other", buffer.Buf{})
	a.FreeContext(a.ctx)
	a.FreeContext(a.ctx)

	wantClass(t, "Isend", a.Wait(a.isend(1, 1, small, Standard)).Status.Fault, fault.Comm)
	wantClass(t, "Send", a.send(1, 1, small), fault.Comm)
	wantClass(t, "Irecv", a.Wait(a.irecv(1, 1, small)).Status.Fault, fault.Comm)
	wantClass(t, "collective", a.Wait(a.icoll(small)).Status.Fault, fault.Comm)
	var st Status
	_, _, f := a.Probe(a.ctx, &ProbeArgs{Source: 1}, &st)
	wantClass(t, "Probe", f, fault.Comm)
	wantClass(t, "PartStart", a.Wait(a.PartStart(a.PartInit(a.ctx, &PartArgs{Parts: 1, Peer: 1, Buf: buffer.Of(small)}))).Status.Fault, fault.Comm)
	for range 100 {
		a.recv(1, 1, nil) // counts for nothing
	}
	a.lives(t)

	// A message that nobody expects is refused though the context lives.
	b.ended(t, "unwanted message", b.isend(0, 9, big, Standard), 0)
	wantClass(t, "any message", a.ended(t, "receive from anybody", recvs[2], fault.Truncate).Status.Fault, fault.Truncate)
	b.ended(t, "unwanted message", b.isend(0, 9, big, Standard), 0)
	b.ended(t, "unwanted synchronous message", b.isend(0, 9, small, Synchronous), 0)

	b.ended(t, "large send", b.isend(0, 2, big, Standard), 0)
	b.ended(t, "small send", b.isend(0, 1, pattern(make([]byte, 8), 5), Standard), 0)
	for i, h := range recvs[:2] {
		a.ended(t, fmt.Sprint("receive ", i), h, 0)
	}
	for i, err := range []error{checkPattern(small, 5), checkPattern(in, 3)} {
		if err != nil {
			t.Fatalf("receive %d: %v", i, err)
		}
	}
	for i := range 22 {
		r := b.irecv(0, []int{5, 4, 3}[max(0, i-19)], in)
		if o := b.ended(t, fmt.Sprint("message ", i), r, 0); i == 20 && o.Status.Bytes != 1<<20 {
			t.Fatal(o.Status)
		}
	}
	for i, h := range sends {
		a.ended(t, fmt.Sprint("send ", i), h, 0)
	}
	a.lives(t)
	if !a.Complete(other, Status{}) {
		t.Fatal("the request of the layer above is gone")
	}
	a.gone(t)
	b.ended(t, "message after the end", b.isend(0, 1, big, Standard), 0)
}

// What arrived unmatched before is refused, and the context ends at once
// without anything pending; so it does with the last detached send, and with
// the last receive that is cancelled.
func TestFreeDropsUnmatched(t *testing.T) {
	for _, last := range []string{"", "send", "receive"} {
		ns, _ := testJobOf(t, 2, nil, nil)
		a, b := ns[0], ns[1]
		big := make([]byte, 1<<20)
		var h Handle
		switch last {
		case "send":
			a.Free(a.isend(1, 1, big, Standard))
		case "receive":
			h = a.irecv(1, 1, nil)
		}
		hs := []Handle{b.isend(0, 2, big, Standard), b.isend(0, 2, nil, Synchronous), b.isend(0, 2, nil, Standard)}
		a.arrived(t, 3, b)
		a.FreeContext(a.ctx)
		for i, h := range hs {
			b.ended(t, fmt.Sprint("send ", i), h, 0)
		}
		switch last {
		case "send":
			a.lives(t)
			if _, f := b.recv(0, 1, big); f != nil {
				t.Fatal(f)
			}
		case "receive":
			a.lives(t)
			a.Cancel(h)
		}
		a.gone(t)
	}
}

// Deaths and revocation reach what is pending on a freed context.
func TestFreedContextFails(t *testing.T) {
	for _, how := range []string{"death", "gone", "revoke"} {
		ns, hub := testJobOf(t, 2, nil, nil)
		a, b := ns[0], ns[1]
		if f := b.send(0, 7, nil); f != nil {
			t.Fatal(f)
		}
		buf := make([]byte, 8)
		hs := []Handle{
			a.irecv(1, 1, nil), a.irecv(anySource, 2, nil), a.isend(1, 1, nil, Synchronous),
			a.icoll(buf, collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(buf)}),
		}
		a.FreeContext(a.ctx)
		a.Revoke(a.ctx) // a new call: in vain
		a.lives(t)
		want := fault.ProcFailed
		switch how {
		case "death":
			kill(t, ns, hub, 1)
		case "gone":
			hub.Kill(b.Self())
			a.ProcGone(b.Self(), "")
			want = fault.Left
			hs = hs[:3] // collectives fail by messages that do not come
		case "revoke":
			b.Revoke(b.ctx)
			want = fault.Revoked
		}
		for i, h := range hs {
			a.ended(t, fmt.Sprint(how, ": operation ", i), h, want)
		}
		if how != "gone" {
			a.gone(t)
		}
	}
}

// A collective goes on through all its rounds after Free, also with messages
// of later rounds that came before. One that was numbered starts.
func TestFreeUnderCollective(t *testing.T) {
	for _, early := range []bool{false, true} {
		for _, numbered := range []bool{false, true} {
			ns, _ := testJobOf(t, 3, nil, nil)
			n := ns[0]
			buf, one := make([]byte, 2), []byte{42}
			part := func(i int64) collectives.Ref { return collectives.Ref{Buf: collectives.Out, Off: i, Len: 1} }
			alg := roundOf()
			alg.Rounds = func(*collectives.Args) int { return 2 }
			alg.Round = func(_ *collectives.Args, i int, dst []collectives.Step) []collectives.Step {
				return append(dst, collectives.Step{Kind: collectives.Recv, Peer: int32(i + 1), A: part(int64(i))})
			}
			args := CollArgs{Op: "Test", Alg: alg, Call: shmcoll.Call{Out: buffer.Of(buf), Unit: 1}}
			var h, other Handle
			if numbered {
				args.Tag = n.ctx.NumberColl()
				other = n.NewOther(n.ctx, "Other", buffer.Buf{})
			} else {
				h = n.Icollective(n.ctx, &args)
			}
			later := func() {
				ns[2].ended(t, "step", ns[2].icoll(one, collectives.Step{Kind: collectives.Send, Peer: 0, A: whole(one)}), 0)
				within(t, "arrival", func() bool {
					n.Kick()
					n.mu.Lock()
					defer n.mu.Unlock()
					return n.table.ArrivedLen() == 1
				})
			}
			if early {
				later()
			}
			n.FreeContext(n.ctx)
			if !early {
				later()
			}
			if numbered {
				n.lives(t)
				h = n.Icollective(n.ctx, &args)
				n.Complete(other, Status{})
			}
			n.lives(t)
			ns[1].ended(t, "step", ns[1].icoll(one, collectives.Step{Kind: collectives.Send, Peer: 0, A: whole(one)}), 0)
			n.ended(t, "collective", h, 0)
			if buf[0] != 42 || buf[1] != 42 {
				t.Fatal(buf)
			}
			n.gone(t)
		}
	}
}

// A partitioned transfer under way ends after Free, whether or not its
// description has come; it cannot be started again.
func TestFreeUnderPartitioned(t *testing.T) {
	for _, known := range []bool{false, true} {
		ns, _ := testJobOf(t, 2, nil, nil)
		a, b := ns[0], ns[1]
		in, out := make([]byte, 4), pattern(make([]byte, 4), 1)
		r := a.PartInit(a.ctx, &PartArgs{Op: "r", Buf: buffer.Of(in), Parts: 1, Peer: 1, Tag: 1})
		idle := a.PartInit(a.ctx, &PartArgs{Op: "idle", Buf: buffer.Of(in), Parts: 1, Peer: 1, Tag: 2})
		hr := a.PartStart(r)
		var s *Partitioned
		init := func() {
			s = b.PartInit(b.ctx, &PartArgs{Op: "s", Buf: buffer.Of(out), Send: true, Parts: 2, Peer: 0, Tag: 1})
		}
		if known {
			init()
			within(t, "description", func() bool {
				a.Kick()
				b.Kick()
				a.mu.Lock()
				defer a.mu.Unlock()
				return r.known
			})
		}
		a.FreeContext(a.ctx)
		a.lives(t)
		if !known {
			init()
		}
		hs := b.PartStart(s)
		b.PartReady(s, 0, 1)
		b.ended(t, "sender", hs, 0)
		a.ended(t, "receiver", hr, 0)
		if err := checkPattern(in, 1); err != nil {
			t.Fatal(err)
		}
		a.ended(t, "second start", a.PartStart(r), fault.Comm)
		a.ended(t, "start", a.PartStart(idle), fault.Comm)
		a.gone(t)
	}
}

// A partition that has overtaken the description of its sender is kept for the
// receive; one that belongs to no start is not.
func TestFreeKeepsEarlyPartition(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	a, b := ns[0], ns[1]
	in, out := make([]byte, 4), pattern(make([]byte, 4), 1)
	r := a.PartInit(a.ctx, &PartArgs{Op: "r", Buf: buffer.Of(in), Parts: 1, Peer: 1, Tag: 1})
	h := a.PartStart(r)
	a.FreeContext(a.ctx)
	part := func(tag int32, m Mode) Handle {
		return b.Isend(b.ctx, &SendArgs{Op: "part", Buf: buffer.Of(out), Plane: wire.TrafficPart, Tag: tag, Mode: m})
	}
	early := part(0, Synchronous)
	a.arrived(t, 1, b)
	if b.Test(early).Done {
		t.Fatal("the partition was dropped")
	}
	b.PartInit(b.ctx, &PartArgs{Op: "s", Buf: buffer.Of(out), Send: true, Parts: 1, Peer: 0, Tag: 1})
	a.ended(t, "receiver", h, 0)
	if err := checkPattern(in, 1); err != nil {
		t.Fatal(err)
	}
	b.ended(t, "partition", early, 0)
	b.ended(t, "partition of a second start", part(0, Synchronous), 0)
	a.gone(t)
}

// A waiting probe has nothing that could complete it.
func TestFreeUnderProbe(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	done := make(chan *fault.Fault, 1)
	go func() {
		var st Status
		_, _, f := n.Probe(n.ctx, &ProbeArgs{Source: 1, Tag: 1, Wait: true}, &st)
		done <- f
	}()
	n.asleep(t)
	n.FreeContext(n.ctx)
	wantClass(t, "probe", soon(t, "probe", func() *fault.Fault { return <-done }), fault.Comm)
	n.gone(t)
}

// A collective that another rank gives up before its numbered call starts here
// fails when it starts, and what has come for it is thrown away. Numbers that
// are never used do not pile up.
func TestNumberedCollectiveHearsOfFailure(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	a, b := ns[0], ns[1]
	out := b.isend(0, 1, nil, Synchronous) // makes contact
	if _, f := a.recv(1, 1, nil); f != nil {
		t.Fatal(f)
	}
	b.ended(t, "first message", out, 0)
	for range 2 * maxEarly {
		a.ctx.NumberColl()
	}
	tag := a.ctx.NumberColl()
	buf := make([]byte, 8)
	b.mu.Lock()
	b.ctx.collSeq = uint64(tag) - 1
	b.mu.Unlock()
	// It sends one step and fails at the next.
	h := b.icoll(buf, collectives.Step{Kind: collectives.Send, Peer: 0, A: whole(buf)}, collectives.Step{Kind: collectives.Recv, Peer: 0, A: whole(buf)})
	b.mu.Lock()
	for k := range b.ctx.colls.Each {
		b.abort(k, &fault.Fault{Class: fault.Mismatch, Peer: 0}, true)
	}
	b.mu.Unlock()
	b.ended(t, "collective", h, fault.Mismatch)
	within(t, "the news", func() bool {
		a.Kick()
		b.Kick()
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ctx.faults != nil && len(a.ctx.faults.early) == 1 && a.table.ArrivedLen() == 1
	})
	h = a.Icollective(a.ctx, &CollArgs{
		Op: "Test", Tag: tag, Alg: roundOf(collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(buf)}, collectives.Step{Kind: collectives.Recv, Peer: 1, A: whole(buf)}),
		Call: shmcoll.Call{Out: buffer.Of(buf), Unit: 1},
	})
	a.ended(t, "numbered collective", h, fault.Aborted)
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, n := len(a.ctx.faults.early), a.table.ArrivedLen(); k != 0 || n != 0 || len(a.ctx.numbered) >= maxEarly {
		t.Fatalf("%d failures, %d messages and %d numbers are kept", k, n, len(a.ctx.numbered))
	}
	if a.ctx.ahead(int32(tag - 1)) {
		t.Fatal("a call that has ended may start")
	}
}

// A process that is left alone gets what it has sent to itself before it is
// told that nobody can send any more.
func TestAloneReceivesOwnMessages(t *testing.T) {
	t.Run("posted after the death", func(t *testing.T) {
		for _, probe := range []bool{false, true} {
			ns, hub := testJobOf(t, 2, nil, nil)
			n := ns[0]
			kill(t, ns, hub, 1)
			n.ctx.AckFailed()
			n.isend(0, 6, nil, Standard)
			n.isend(0, 7, pattern(make([]byte, 100), 2), Standard)
			in := make([]byte, 100)
			if probe {
				var st Status
				_, found, f := n.Probe(n.ctx, &ProbeArgs{Source: anySource, Tag: 7, Wait: true}, &st)
				if !found || f != nil || st.Source != 0 || st.Bytes != 100 {
					t.Fatal(found, f, st)
				}
			}
			h := n.irecv(anySource, 7, in)
			n.ended(t, "receive", h, 0)
			if err := checkPattern(in, 2); err != nil {
				t.Fatal(err)
			}
			n.ended(t, "second receive", n.irecv(anySource, 7, in), fault.ProcFailed)
			_, _, f := n.Probe(n.ctx, &ProbeArgs{Source: anySource, Tag: 7, Wait: true}, &Status{})
			wantClass(t, "second probe", f, fault.ProcFailed)
		}
	})
	t.Run("posted before", func(t *testing.T) {
		for _, size := range []int{8, 1 << 20} {
			ns, hub := testJobOf(t, 2, nil, nil)
			n := ns[0]
			if f := n.send(1, 1, nil); f != nil {
				t.Fatal(f)
			}
			n.outlived(ns[1])
			in := make([]byte, size)
			h, second := n.irecv(anySource, 7, in), n.irecv(anySource, 7, nil)
			n.mu.Lock() // nobody polls until all is sent
			for range len(n.events) {
				n.startSend(n.ctx, n.peerOf(n.Self()), &SendArgs{Buf: buffer.Of(nil), Tag: 8}, nil).detach = true
			}
			n.startSend(n.ctx, n.peerOf(n.Self()), &SendArgs{Buf: buffer.Of(pattern(make([]byte, size), 2)), Tag: 7}, nil).detach = true
			hub.Kill(ns[1].Self())
			n.mu.Unlock()
			n.ended(t, "receive", h, 0)
			if err := checkPattern(in, 2); err != nil {
				t.Fatal(err)
			}
			n.ended(t, "second receive", second, fault.Unreachable)
		}
	})
}

// The id of a freed context whose operations are pending is not free.
func TestPendingContextKeepsID(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	id := wire.ContextID{Creator: n.Self(), Serial: 9}
	c := n.world(t, id, n.ctx.Members)
	h := n.Irecv(c, &RecvArgs{Source: 0})
	n.FreeContext(c)
	if _, err := n.NewContext(id, c.Members, nil); err == nil {
		t.Fatal("made again while a receive is pending")
	}
	n.Cancel(h)
	if _, err := n.NewContext(id, c.Members, nil); err == nil {
		t.Fatal("made again")
	}
}

// arrived waits until n messages lie unexpected here; both ends are asleep and
// are kicked.
func (a *node) arrived(t testing.TB, n int, from *node) {
	t.Helper()
	within(t, "arrival", func() bool {
		a.Kick()
		from.Kick()
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.table.ArrivedLen() == n
	})
}
