// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/bytepool"
	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/shmcoll"
)

// withNumber is a message of n bytes with its number.
func withNumber(i, n int) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint32(b, uint32(i))
	return b
}

// takeNumbered receives count messages of n bytes in their order.
func takeNumbered(to *node, from, tag, count, n int) error {
	in := make([]byte, n)
	for i := range count {
		st, f := to.recv(from, tag, in)
		if f != nil || st.Bytes != int64(n) || binary.LittleEndian.Uint32(in) != uint32(i) {
			return fmt.Errorf("message %d: number %d, %+v", i, binary.LittleEndian.Uint32(in), st)
		}
	}
	return nil
}

// With memory for them, messages go before anybody asks for them, however many;
// afterwards windows and pools are what they were.
func TestCreditGrowsAndShrinks(t *testing.T) {
	for _, c := range []struct {
		count, size, to int
	}{{50_000, 8, 1}, {1000, 4000, 1}, {20_000, 8, 0}, {500, 4000, 0}} {
		asked := 0
		ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) {
			c.Room = func() int64 { asked++; return 64 << 20 }
		})
		err := soon(t, "sends without receives", func() error {
			for i := range c.count {
				if f := ns[0].send(c.to, 1, withNumber(i, c.size)); f != nil {
					return fmt.Errorf("send %d: %+v", i, f)
				}
			}
			return takeNumbered(ns[c.to], 0, 1, c.count, c.size)
		})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if asked == 0 || asked > 10 {
			t.Errorf("%+v: asked for memory %d times", c, asked)
		}
		books(t, ns)
		n := ns[c.to]
		n.mu.Lock()
		p := n.peers[ns[0].Self()]
		if p.credit.Given() > 2*n.credit.Base()/credit.UnitBytes+credit.Envelopes || n.credit.Used() > n.credit.Base()/credit.UnitBytes || n.arrivals.blocks.Kept() > bytepool.MaxKept+1<<14 || len(n.arrivals.free) > maxArrivals {
			t.Errorf("%+v: window %d, %d of the budget, %d bytes and %d arrivals are kept", c, p.credit.Given(), n.credit.Used(), n.arrivals.blocks.Kept(), len(n.arrivals.free))
		}
		n.mu.Unlock()
	}
}

// held is how many bytes of payload a process keeps, and of how many messages.
func (n *node) held() (bytes, count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := range n.table.Walk {
		if count++; a.Val.kind == kindEager {
			bytes += len(a.Val.data)
		}
	}
	return bytes, count
}

// Two flooders get a third of the budget each, what is beyond stays with them,
// and a third process that comes later gets on.
func TestBudgetBounds(t *testing.T) {
	const budget, size, count = 8 << 20, 4000, 3000
	ns, _ := testJobOf(t, 4, nil, func(_ int, c *Config) { c.Budget = budget })
	var hs [2][]Handle
	for i := range count {
		for k := range hs {
			hs[k] = append(hs[k], ns[1+k].isend(0, 5, withNumber(i, size), Standard))
		}
	}
	within(t, "the floods", func() bool {
		for _, n := range ns {
			n.iprobe()
		}
		_, kept := ns[0].held()
		return kept == 2*count
	})
	bytes, _ := ns[0].held()
	if most := budget*7/8 + 2<<20; bytes > most || bytes < most/2 {
		t.Errorf("%d bytes are kept of a budget of %d", bytes, budget)
	}
	if text := ns[0].Queues(); !strings.Contains(text, "rank 0 holds ") ||
		!strings.Contains(text, " MB of unexpected messages from rank 2 and has no memory for more: it receives none of tag 5") {
		t.Errorf("the report names no flood:\n%s", text)
	}
	if text := ns[1].Queues(); !strings.Contains(text, "the receiver has no memory left") {
		t.Errorf("the report does not say what sends wait for:\n%s", text)
	}
	err := soon(t, "a third process", func() error {
		for i := range 400 {
			if f := ns[3].send(0, 7, withNumber(i, size)); f != nil {
				return fmt.Errorf("send %d: %+v", i, f)
			}
		}
		return takeNumbered(ns[0], 3, 7, 400, size)
	})
	if err == nil {
		err = soon(t, "the floods", func() error {
			for k := range hs {
				if err := takeNumbered(ns[0], 1+k, 5, count, size); err != nil {
					return err
				}
				for i, h := range hs[k] {
					if o := ns[1+k].Wait(h); o.Status.Fault != nil {
						return fmt.Errorf("send %d: %+v", i, o.Status.Fault)
					}
				}
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	books(t, ns)
	if ns[0].credit.Used() > 2*ns[0].credit.Base()/credit.UnitBytes {
		t.Errorf("%d units of the budget are still in use", ns[0].credit.Used())
	}
}

// When a process can keep no more, not even announcements, collectives and
// other communicators pass, as do those of a communicator that has not filled
// it; and what waits goes on when something was received.
func TestFullPassesOthers(t *testing.T) {
	for _, fixed := range []int64{0, 4096} {
		ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Credit, c.EagerMax = fixed, -1 })
		const count = credit.Envelopes + 300
		var hs []Handle
		for i := range count {
			hs = append(hs, ns[0].isend(1, 5, withNumber(i, 8), Standard))
		}
		id := wire.ContextID{Creator: ns[0].Self(), Serial: 2}
		other := make([]node, 2)
		for i, n := range ns {
			other[i] = node{Engine: n.Engine, ctl: n.ctl, ctx: n.world(t, id, n.ctx.Members)}
		}
		alg, err := selection.ByName(collectives.OpBcast, "binomial")
		if err != nil {
			t.Fatal(err)
		}
		got := soon(t, "a collective beside a flood", func() *fault.Fault {
			done := make(chan *fault.Fault, 2)
			for i := range ns {
				go func() {
					done <- ns[i].Collective(ns[i].ctx, &CollArgs{
						Op: "Bcast", Alg: alg,
						Call: shmcoll.Call{Unit: 8, Out: buffer.Of(make([]byte, 8)), Args: collectives.Args{Op: collectives.OpBcast, Rank: i, Size: 2, Count: 1}},
					})
				}()
			}
			if f := <-done; f != nil {
				return f
			}
			return <-done
		})
		if got != nil {
			t.Fatalf("collective: %+v", got)
		}
		sent := make(chan *fault.Fault, 1)
		go func() { sent <- other[0].send(1, 5, withNumber(7, 8)) }()
		in := make([]byte, 8)
		st := soon(t, "another communicator", func() Status { st, _ := other[1].recv(0, 5, in); return st })
		if f := <-sent; f != nil || st.Fault != nil || in[0] != 7 {
			t.Fatalf("another communicator: %+v, %+v, %v", f, st, in)
		}
		if _, kept := ns[1].held(); kept != credit.Envelopes {
			t.Fatalf("%d messages are kept, want %d", kept, credit.Envelopes)
		}
		if text := ns[1].Queues(); !strings.Contains(text, "and 65536 announcements of more from rank 0 and has no memory for more") {
			t.Errorf("the report names no flood:\n%s", text)
		}
		if text := ns[0].Queues(); !strings.Contains(text, "300 Isend to rank 1, tag 5 (waits until the receiver, which is full of messages, receives some), 8 B") {
			t.Errorf("the report does not say what sends wait for:\n%s", text)
		}
		// One of those that wait is withdrawn, from the middle.
		ns[0].Cancel(hs[credit.Envelopes+100])
		if o := ns[0].Wait(hs[credit.Envelopes+100]); !o.Status.Cancelled {
			t.Fatalf("a send that had not left: %+v", o)
		}
		err = soon(t, "the flood", func() error {
			for i := range count {
				if i == credit.Envelopes+100 {
					continue
				}
				if st, f := ns[1].recv(0, 5, in); f != nil || int(binary.LittleEndian.Uint32(in)) != i {
					return fmt.Errorf("message %d: number %d, %+v", i, binary.LittleEndian.Uint32(in), st)
				}
				if o := ns[0].Wait(hs[i]); o.Status.Fault != nil {
					return fmt.Errorf("send %d: %+v", i, o.Status.Fault)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		books(t, ns)
	}
}

// Announcements beyond the first window cost the budget what they take.
func TestAnnouncementsAreCharged(t *testing.T) {
	const count = credit.Envelopes/2 + 1 // the window has grown once
	ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.EagerMax, c.Budget = -1, 256<<20 })
	hs := make([]Handle, count)
	for i := range hs {
		hs[i] = ns[0].isend(1, 5, withNumber(i, 8), Standard)
	}
	within(t, "the flood", func() bool { ns[0].iprobe(); ns[1].iprobe(); _, kept := ns[1].held(); return kept == count })
	p := ns[1].peers[ns[0].Self()]
	more := p.credit.Given() - credit.Envelopes - ns[1].credit.Base()/credit.UnitBytes
	if most := more * 240 / credit.UnitBytes; more == 0 || ns[1].credit.Used() < most {
		t.Errorf("%d units of the budget are used for %d announcements more, at least %d expected", ns[1].credit.Used(), more, most)
	}
	soon(t, "the flood", func() any {
		for i, h := range hs {
			if st, f := ns[1].recv(0, 5, make([]byte, 8)); f != nil {
				t.Errorf("message %d: %+v, %+v", i, st, f)
			}
			ns[0].Wait(h)
		}
		return nil
	})
	if u := ns[1].credit.Used(); u != 0 {
		t.Errorf("%d units of the budget are still in use", u)
	}
	books(t, ns)
}

// The peer of a full process that dies leaves no share of the budget behind.
func TestDeadPeerFreesBudget(t *testing.T) {
	ns, hub := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Budget = 8 << 20 })
	for i := range 2000 {
		ns[0].Free(ns[0].isend(1, 5, withNumber(i, 4000), Standard))
	}
	within(t, "the flood", func() bool {
		ns[0].iprobe()
		ns[1].iprobe()
		_, kept := ns[1].held()
		return kept == 2000
	})
	hub.Kill(ns[0].Self())
	ns[1].ProcFailed(ns[0].Self(), "was killed")
	bytes, kept := ns[1].held()
	if bytes == 0 || bytes != 4000*kept {
		t.Fatalf("%d messages of %d bytes are left", kept, bytes)
	}
	if err := takeNumbered(ns[1], 0, 5, kept, 4000); err != nil {
		t.Fatal(err)
	}
	if u := ns[1].credit.Used(); u != 0 {
		t.Errorf("%d units of the budget are in use for nobody", u)
	}
}

// A sender is charged what its messages take, roughly.
func TestArrivalsAreSmall(t *testing.T) {
	if n := reflect.TypeFor[arrival]().Size(); n > 3*credit.UnitBytes {
		t.Errorf("an unexpected message takes %d bytes beside its payload", n)
	}
}

// Reports say once what many messages have in common.
func TestQueuesGroup(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	for i := range 211 {
		ns[0].Free(ns[0].isend(1, 5, make([]byte, 42+i%3), Standard))
	}
	for i := range 100 {
		ns[0].Free(ns[0].isend(1, 100+i, make([]byte, 1), Standard))
	}
	for range 3 {
		ns[1].irecv(0, 6, make([]byte, 9))
		ns[1].irecv(anySource, anySource+8, make([]byte, 9))
	}
	within(t, "arrival", func() bool {
		ns[0].iprobe()
		ns[1].iprobe()
		_, kept := ns[1].held()
		return kept == 311
	})
	text := ns[1].Queues()
	for _, line := range []string{
		"messages arrived, not received: 311\n  211 from rank 0, tag 5, 42 to 44 B, ",
		"  1 from rank 0, tag 100, 1 B, ",
		"  and 37 more\n",
		"  3 Irecv from rank 0, tag 6, 9 B, ",
		"  3 Irecv from rank any, tag 7, 9 B, ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}
