// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync/atomic"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// moody is a transport that offers nothing to one peer and takes nothing for another.
type moody struct {
	transport.Transport
	noOffer, full atomic.Int64 // slot + 1; 0: none
}

func (m *moody) Offer(s transport.Slot, buf []byte, tok transport.Token, desc []byte) (int, error) {
	if m.noOffer.Load() == int64(s)+1 {
		return 0, errTest
	}
	return m.Transport.Offer(s, buf, tok, desc)
}

func (m *moody) Send(s transport.Slot, h *wire.Header, p []byte, tok transport.Token) transport.Status {
	if m.full.Load() == int64(s)+1 {
		return transport.Full
	}
	return m.Transport.Send(s, h, p, tok)
}

// TestPumpKeepsWhoIsListed: a send that fails when it is retried may withdraw others of its
// collective, whose peers take nothing at the moment: what they are to be told is not forgotten.
func TestPumpKeepsWhoIsListed(t *testing.T) {
	m := &moody{}
	ns, _ := testJobOf(t, 3, nil, func(i int, c *Config) {
		if i == 0 {
			m.Transport = c.Transports[0]
			c.Transports[0] = m
		}
	})
	n := ns[0]
	peer := func(i int) *Peer { return n.peers[ns[i].Self()] }
	for _, other := range ns[1:] {
		h := n.isend(int(other.Self().Serial)-1, 9, nil, Standard)
		if _, f := other.recv(0, 9, nil); f != nil {
			t.Fatal(f)
		}
		n.Wait(h)
	}
	n.iprobe() // nothing is queued any more
	n.mu.Lock()
	peer(1).full, peer(1).slow = true, true // what goes there waits in the queue
	n.mu.Unlock()
	out := make([]byte, 1<<20)
	h := n.icoll(out,
		collectives.Step{Kind: collectives.Send, Peer: 2, A: whole(out)},
		collectives.Step{Kind: collectives.Send, Peer: 1, A: whole(out)})
	n.mu.Lock()
	if p := peer(1); !p.listed || p.sends.first == nil || peer(2).listed {
		n.mu.Unlock()
		t.Fatalf("listed: %v and %v", p.listed, peer(2).listed)
	}
	m.noOffer.Store(int64(peer(1).slot) + 1)
	m.full.Store(int64(peer(2).slot) + 1)
	peer(1).full, peer(1).slow = false, false
	n.pumpAll()
	p := peer(2)
	if !p.listed || len(p.ctl) == 0 || !slices.Contains(n.blocked, p) {
		t.Errorf("listed %v, %d answers wait, retried: %v", p.listed, len(p.ctl), slices.Contains(n.blocked, p))
	}
	m.full.Store(0)
	p.full, p.slow = false, false
	n.prog.Wake()
	n.mu.Unlock()
	if o := soon(t, "the collective", func() Outcome { return n.Wait(h) }); o.Status.Fault.Code() != fault.Unreachable {
		t.Errorf("%+v", o)
	}
}
