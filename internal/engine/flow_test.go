// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/transport/faulty"
)

// books checks what both ends of a quiet pair say about credit.
func books(t *testing.T, ns []*node) {
	t.Helper()
	for i, n := range ns {
		for j, m := range ns {
			if i == j {
				continue
			}
			within(t, "frames of credit", func() bool {
				n.iprobe()
				m.iprobe()
				n.mu.Lock()
				defer n.mu.Unlock()
				m.mu.Lock()
				defer m.mu.Unlock()
				p, q := n.peers[m.Self()], m.peers[n.Self()]
				return p == nil || q == nil ||
					p.credit.Balanced(&q.credit)
			})
		}
	}
}

// A flood stays with its sender beyond the credit, and all of it arrives.
func TestFlowControlBounds(t *testing.T) {
	const eager = 64 << 10
	for _, size := range []int{1, 20_000} {
		ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Credit = eager })
		const count = credit.Envelopes + 4000
		var hs []Handle
		b := make([]byte, size)
		for range count {
			hs = append(hs, ns[0].isend(1, 1, b, Standard))
		}
		// The receiver takes in what it gets, as a process that sleeps does.
		within(t, "the flood", func() bool {
			for range 1000 { // and then some, if it is all there
				ns[1].iprobe()
				ns[0].iprobe()
			}
			ns[1].mu.Lock()
			defer ns[1].mu.Unlock()
			return ns[1].table.ArrivedLen() >= credit.Envelopes
		})
		ns[1].mu.Lock()
		kept, bytes := ns[1].table.ArrivedLen(), 0
		for a := range ns[1].table.EachArrived {
			if a.Val.kind == kindEager {
				bytes += len(a.Val.data)
			}
		}
		ns[1].mu.Unlock()
		if kept > credit.Envelopes+eager/credit.UnitBytes || bytes > eager {
			t.Fatalf("size %d: the receiver keeps %d messages and %d eager bytes", size, kept, bytes)
		}

		in := make([]byte, size)
		err := soon(t, "the flood", func() error {
			for i := range count {
				if st, f := ns[1].recv(0, 1, in); f != nil || st.Bytes != int64(size) {
					return fmt.Errorf("message %d: %+v", i, st)
				}
			}
			for i, h := range hs {
				if o := ns[0].Wait(h); o.Status.Fault != nil {
					return fmt.Errorf("send %d: %+v", i, o.Status.Fault)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		books(t, ns)
	}
}

// Every way in which a message can end returns its credit: received, probed
// and received, truncated, withdrawn, dropped with its communicator.
func TestCreditComesBack(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Credit = 16 << 10 })
		var sends []Handle
		for i := range 300 {
			b := make([]byte, []int{0, 1, 100, 5000, 50_000}[rnd.IntN(5)])
			sends = append(sends, ns[0].isend(1, i%3, b, Mode(rnd.IntN(2))))
		}
		in := make([]byte, 2000) // truncates some
		for range 150 {
			ns[0].iprobe()
			switch rnd.IntN(4) {
			case 0:
				ns[0].Cancel(sends[rnd.IntN(len(sends))])
			case 1:
				var st Status
				if m, found, _ := ns[1].Probe(ns[1].ctx, &ProbeArgs{Source: anySource, Tag: anySource, Take: true}, &st); found {
					h := ns[1].Imrecv(ns[1].ctx, m, &RecvArgs{Buf: buffer.Of(in)})
					within(t, "matched receive", func() bool { ns[0].iprobe(); return ns[1].Test(h).Done })
				}
			default:
				if ns[1].iprobe() {
					h := ns[1].irecv(anySource, anySource, in)
					within(t, "receive", func() bool { ns[0].iprobe(); return ns[1].Test(h).Done })
				}
			}
		}
		ns[1].FreeContext(ns[1].ctx)
		for i, h := range sends {
			within(t, fmt.Sprintf("send %d", i), func() bool {
				ns[1].Kick()
				return ns[0].Test(h).Done
			})
		}
		if k := ns[1].table.ArrivedLen(); k != 0 {
			t.Fatalf("%d messages are kept", k)
		}
		// The others of the test look through a communicator that lives.
		id := wire.ContextID{Creator: ns[0].Self(), Serial: 2}
		for _, n := range ns {
			n.ctx = n.world(t, id, n.ctx.Members)
		}
		books(t, ns)
	}
}

// Withdrawing many sends, the youngest first, takes time for each, not for each
// pair.
func TestWithdrawMany(t *testing.T) {
	const count = 60_000
	ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.EagerMax = -1 })
	hs := make([]Handle, count)
	for i := range hs {
		hs[i] = ns[0].isend(1, 1, make([]byte, 1), Standard)
	}
	within(t, "arrival", func() bool { ns[1].iprobe(); ns[0].iprobe(); _, kept := ns[1].held(); return kept == count })
	soon(t, "withdrawing", func() any {
		for i := range hs {
			ns[0].Cancel(hs[count-1-i])
		}
		for i, h := range hs {
			if o := ns[0].Wait(h); !o.Status.Cancelled {
				t.Errorf("send %d: %+v", i, o.Status)
			}
		}
		return nil
	})
	books(t, ns)
}

// Messages of one pair keep their order whatever the transports refuse, over
// all sizes and modes, also beside messages that are withdrawn.
func TestOrderUnderRefusal(t *testing.T) {
	for seed := range uint64(8) {
		plan := &faulty.Plan{Seed: seed, Full: 0.4, Delay: 0.2, MaxEvents: 3}
		ns, _ := testJobOf(t, 2, plan, func(_ int, c *Config) { c.Credit = 16 << 10 })
		rnd := rand.New(rand.NewPCG(seed, 2))
		const count = 400
		withdrawn := map[int]Handle{}
		var sends []Handle
		for i := range count {
			b := make([]byte, 4+[]int{0, 60, 3000, 70_000}[rnd.IntN(4)])
			b[0], b[1] = byte(i), byte(i>>8)
			h := ns[0].isend(1, 1, b, Mode(rnd.IntN(2)))
			if rnd.IntN(6) == 0 {
				ns[0].Cancel(h)
				withdrawn[i] = h
			} else {
				sends = append(sends, h)
			}
		}
		gone := make(chan map[int]bool, 1)
		go func() {
			m := map[int]bool{}
			for i, h := range withdrawn {
				m[i] = ns[0].Wait(h).Status.Cancelled
			}
			for _, h := range sends {
				ns[0].Wait(h)
			}
			gone <- m
		}()
		var got []int
		in := make([]byte, 100_000)
		last := ns[0].isend(1, 2, nil, Standard)
		for {
			var st Status
			f := soon(t, "receive", func() *fault.Fault {
				return ns[1].Recv(ns[1].ctx, &RecvArgs{Buf: buffer.Of(in), Source: 0, Tag: anySource}, &st)
			})
			if f != nil {
				t.Fatal(f)
			}
			if st.Tag == 2 {
				break
			}
			got = append(got, int(in[0])|int(in[1])<<8)
		}
		was := soon(t, "sends", func() map[int]bool { return <-gone })
		ns[0].Wait(last)
		next := 0
		for i := range count {
			if was[i] {
				continue
			}
			if next == len(got) || got[next] != i {
				t.Fatalf("seed %d: message %d of those received is %v, want %d", seed, next, got[min(next, len(got)-1)], i)
			}
			next++
		}
		if next != len(got) {
			t.Fatalf("seed %d: %d messages too many", seed, len(got)-next)
		}
	}
}

// An answer to Cancel that comes when the send has ended, and its request is another one with
// the same number in messages, is not taken for an answer about that one.
func TestLateRecallAnswer(t *testing.T) {
	var v *valve
	ns, _ := testJobOf(t, 2, nil, func(i int, c *Config) {
		if i == 1 {
			v = throughValve(c, 1)
		}
	})
	first := ns[0].isend(1, 1, []byte("first"), Synchronous)
	within(t, "arrival", func() bool { return ns[1].iprobe() })
	ns[0].Cancel(first) // the receiver hears of it when the valve is open
	recv := ns[1].irecv(0, 1, make([]byte, 5))
	if o := soon(t, "send", func() Outcome { return ns[0].Wait(first) }); o.Status.Cancelled || o.Status.Fault != nil {
		t.Fatalf("the message was matched: %+v", o.Status)
	}
	ns[0].mu.Lock()
	for range 255 {
		ns[0].freeRequest(ns[0].newRequest(reqDone))
	}
	ns[0].mu.Unlock()
	second := ns[0].isend(1, 1, []byte("second"), Synchronous)
	if a, b := first.req.index<<8|first.gen&0xff, second.req.wireID(); a != b {
		t.Fatalf("the second has number %#x, the first had %#x", b, a)
	}
	ns[0].Cancel(second)
	v.open()
	if o := soon(t, "send", func() Outcome { return ns[0].Wait(second) }); !o.Status.Cancelled || o.Status.Fault != nil {
		t.Errorf("the second message: %+v", o.Status)
	}
	soon(t, "receive", func() Outcome { return ns[1].Wait(recv) })
	if f := soon(t, "send", func() *fault.Fault { return ns[0].send(1, 2, nil) }); f != nil {
		t.Errorf("the connection: %v", f)
	}
	recv = ns[1].irecv(0, 2, nil)
	soon(t, "receive", func() Outcome { return ns[1].Wait(recv) })
	books(t, ns)
}
