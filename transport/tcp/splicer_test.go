// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"testing"

	"gompi/transport"
)

// offered offers n bytes to a process, which accepts them into target.
func offered(t *testing.T, p, to *proc, fill byte, n int) (target []byte) {
	t.Helper()
	slot, err := p.Connect(to.contact())
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the connection", func() bool { return p.at(slot).state == peerUp && to.count(transport.EvUp) == 1 }, p, to)
	var d [transport.MaxDesc]byte
	k, err := p.Offer(slot, bytes.Repeat([]byte{fill}, n), 1, d[:])
	if err != nil {
		t.Fatal(err)
	}
	target = make([]byte, n)
	if err := to.Accept(to.first(transport.EvUp).Slot, d[:k], target, 2); err != nil {
		t.Fatal(err)
	}
	return target
}

// TestLentToTheSilent: slots that are lent to a peer that says nothing more are not missed by
// others, and what it has not read stays as it was sent.
func TestLentToTheSilent(t *testing.T) {
	opt := Options{spliceFrom: spliceMin}
	p, q, r := open(t, 1, opt), open(t, 2, opt), open(t, 3, opt)
	got := offered(t, p, q, 'q', spliceMin)
	silent := p.byProc[q.env.Self].link
	until(t, "all of it in the kernel", func() bool { return silent.slotsInUse == spliceMin/slotBytes && p.count(transport.EvBulk) == 1 }, p)
	if p.splicer.off {
		t.Skip("this kernel does not splice")
	}
	other := offered(t, p, r, 'r', 4*slots*slotBytes)
	most := 0
	until(t, "the transfer to another", func() bool {
		most = max(most, p.byProc[r.env.Self].link.slotsInUse)
		return r.count(transport.EvBulk) == 1
	}, p, r)
	if most < slots || silent.slotsInUse > 0 {
		t.Errorf("%d of %d slots were lent at a time, %d still are to one that is silent", most, slots, silent.slotsInUse)
	}
	until(t, "the end", func() bool { return q.count(transport.EvBulk) == 1 }, q)
	for _, x := range []struct {
		got  []byte
		want rune
	}{{got, 'q'}, {other, 'r'}} {
		if i := bytes.IndexFunc(x.got, func(c rune) bool { return c != x.want }); i >= 0 {
			t.Errorf("byte %d of %d is %q, not %q", i, len(x.got), x.got[i], x.want)
		}
	}
}

// TestLentIsKept: what a peer has not read when its link is closed stays as it was sent,
// whatever is sent to others from then on.
func TestLentIsKept(t *testing.T) {
	opt := Options{spliceFrom: spliceMin}
	p, q, r := open(t, 1, opt), open(t, 2, opt), open(t, 3, opt)
	got := offered(t, p, q, 'q', slots*slotBytes)
	l := p.byProc[q.env.Self].link
	until(t, "a loan", func() bool { return l.slotsInUse > 0 && p.splicer.owner == nil || l.blocked }, p)
	lent := l.slotsInUse
	if p.splicer.off || lent == 0 {
		t.Fatalf("%d slots are lent, off: %v", lent, p.splicer.off)
	}
	p.fail(p.byProc[q.env.Self], transport.ErrPeerGone)
	if p.splicer.owner != nil || l.slotsInUse != 0 {
		t.Fatalf("after the end of the link %d slots are lent to it", l.slotsInUse)
	}

	other := offered(t, p, r, 'r', 2*slots*slotBytes)
	until(t, "the transfer to another", func() bool { return r.count(transport.EvBulk) == 1 }, p, r)
	if i := bytes.IndexFunc(other, func(c rune) bool { return c != 'r' }); i >= 0 {
		t.Errorf("byte %d of what another got is %q", i, other[i])
	}

	in := q.peers[q.first(transport.EvUp).Slot].recvs[1]
	until(t, "the end", func() bool { return q.count(transport.EvDown) == 1 }, q)
	if n := q.first(transport.EvBulk).Bytes; n == 0 {
		t.Fatalf("nothing of %d slots has come (%+v)", lent, in)
	} else if i := bytes.IndexFunc(got[:n], func(c rune) bool { return c != 'q' }); i >= 0 {
		t.Errorf("byte %d of %d, of %d slots, is %q", i, n, lent, got[i])
	}
}

// TestLentReturns: slots are free again when the peer has read what they held, and without
// the kernel's help everything goes as ever.
func TestLentReturns(t *testing.T) {
	for _, off := range []bool{false, true} {
		p := newPinger(t, Options{spliceFrom: spliceMin})
		p.t.splicer.off = off
		b := make([]byte, slots*slotBytes+1)
		for round := range 8 {
			for i := range b {
				b[i] = byte(i*7 + round)
			}
			want := bytes.Clone(b)
			p.bulk(b)
			if !bytes.Equal(b, want) {
				t.Fatalf("round %d, off %v: other bytes came back", round, off)
			}
			if n := p.t.peers[p.slot].link.slotsInUse; n > slots || off != (p.t.splicer.mem == nil) {
				t.Fatalf("round %d, off %v: %d of %d slots are lent", round, off, n, slots)
			}
		}
		if l := p.t.peers[p.slot].link; !off && l.slotsInUse == slots {
			t.Error("no slot has come back")
		}
	}
}
