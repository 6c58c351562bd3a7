// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/shmcoll"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
)

func (n *node) isendBuf(dest, tag int, b buffer.Buf, m Mode) Handle {
	return n.Isend(n.ctx, &SendArgs{Op: "Isend", Buf: b, Dest: int32(dest), Tag: int32(tag), Mode: m})
}

func (n *node) irecvBuf(source, tag int, b buffer.Buf) Handle {
	return n.Irecv(n.ctx, &RecvArgs{Op: "Irecv", Buf: b, Source: int32(source), Tag: int32(tag)})
}

// stridedSizes lie around the limits between which messages go another way.
var stridedSizes = []int{
	0, 1, 8, 1000, 1 << 10, copiedMax - 1, copiedMax, copiedMax + 1, 32 << 10,
	100_000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5 << 20,
}

// transfer sends data from one shape to another and checks all memory.
func transfer(t *testing.T, from, to *node, out, in *shape, off int, data []byte, room int, m Mode, late bool) {
	t.Helper()
	src := newStriped(out, off, len(data), 0x55).put(data)
	dst := newStriped(in, 3*off, room, 0xaa)
	dest, source := int(to.ctx.Rank), int(from.ctx.Rank)
	var s, r Handle
	if late {
		s = from.isendBuf(dest, 3, src.buf(), m)
		r = to.irecvBuf(source, 3, dst.buf())
	} else {
		r = to.irecvBuf(source, 3, dst.buf())
		s = from.isendBuf(dest, 3, src.buf(), m)
	}
	what := fmt.Sprintf("%d bytes of %s into %d of %s", len(data), out.name, room, in.name)
	type pair struct{ s, r Outcome }
	both := soon(t, what, func() pair {
		done := make(chan Outcome, 1)
		go func() { done <- from.Wait(s) }()
		o := to.Wait(r)
		return pair{<-done, o}
	})
	if both.s.Status.Fault != nil {
		t.Fatalf("%s: send: %+v", what, both.s.Status.Fault)
	}
	got, st := min(len(data), room), both.r.Status
	if len(data) > room {
		wantClass(t, what, st.Fault, fault.Truncate)
		if st.Fault.Got != int64(len(data)) || st.Fault.Want != int64(room) {
			t.Fatalf("%s: %+v", what, st.Fault)
		}
	} else if st.Fault != nil || st.Bytes != int64(got) || st.Source != int32(source) || st.Tag != 3 {
		t.Fatalf("%s: %+v %+v", what, st, st.Fault)
	}
	if err := dst.want(data[:got], 0xaa); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := src.want(data, 0x55); err != nil {
		t.Fatalf("%s: the sender's memory: %v", what, err)
	}
}

// Every shape to every shape, in all sizes, between two processes and inside
// one.
func TestStridedTransfers(t *testing.T) {
	all := shapes()
	ns, _ := testJobOf(t, 2, nil, nil)
	for i := range all {
		for k := range all {
			for j, size := range stridedSizes {
				if size > 200_000 && k != (i+1)%len(all) {
					continue
				}
				data := noise(uint64(j), size)
				transfer(t, ns[0], ns[1], &all[i], &all[k], 0, data, size, Mode(j%2), j%3 == 0)
				if size < 200_000 {
					transfer(t, ns[0], ns[1], &all[i], &all[k], 5, data, size+j, Mode(j%2), j%3 == 1)
					transfer(t, ns[1], ns[1], &all[i], &all[k], 1, data, size, Standard, j%3 == 0)
				}
			}
		}
	}
	books(t, ns)
	quietStreams(t, ns)
}

// What is unpacked around the caches is all there when the receive is complete.
func TestStreamAroundCaches(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	long := rows()
	data := noise(1, cachedMax+1)
	transfer(t, ns[0], ns[1], &long, &long, 7, data, len(data), Standard, false)
	books(t, ns)
	quietStreams(t, ns)
}

// quietStreams checks that no stream is left.
func quietStreams(t *testing.T, ns []*node) {
	t.Helper()
	for _, n := range ns {
		n.mu.Lock()
		for _, p := range n.peers {
			if p.in.first != nil || p.in.last != nil || p.out.first != nil || p.out.last != nil {
				t.Errorf("streams are left with %v", p.proc)
			}
		}
		n.mu.Unlock()
	}
}

// The same with every limit on what may be eager, and transports that refuse,
// delay and cut their events short.
func TestStridedUnderRefusal(t *testing.T) {
	all := shapes()
	for seed := range uint64(6) {
		plan := &faulty.Plan{Seed: seed, Full: 0.4, Delay: 0.2, MaxEvents: 3}
		ns, _ := testJobOf(t, 2, plan, func(_ int, c *Config) {
			c.EagerMax = []int{0, -1, 100}[seed%3]
			c.Credit = 16 << 10
		})
		rnd := rand.New(rand.NewPCG(seed, 3))
		for j := range 40 {
			data := noise(uint64(j), rnd.IntN(1<<(4+rnd.IntN(15))))
			room := len(data)
			if rnd.IntN(3) == 0 {
				room = rnd.IntN(2*len(data) + 1)
			}
			transfer(t, ns[0], ns[1], &all[rnd.IntN(len(all))], &all[rnd.IntN(len(all))], rnd.IntN(50), data, room, Mode(rnd.IntN(2)), rnd.IntN(2) == 0)
		}
		quietStreams(t, ns)
	}
}

// Streams in both directions at once, with small messages between them that
// need not wait for their end.
func TestStreamsTogether(t *testing.T) {
	all := shapes()
	for _, plan := range []*faulty.Plan{nil, {Full: 0.2, Delay: 0.1}} {
		ns, _ := testJobOf(t, 2, plan, nil)
		const streams = 12
		size := 300_000
		data := noise(1, size)
		var hs [2][]Handle
		var dst [2][]*striped
		for i := range streams {
			for me, n := range ns {
				in := newStriped(&all[(i+me)%len(all)], 0, size, 0)
				dst[me] = append(dst[me], in)
				hs[me] = append(hs[me], n.irecvBuf(1-me, i, in.buf()))
			}
		}
		for i := range streams {
			for me, n := range ns {
				hs[me] = append(hs[me], n.isendBuf(1-me, i, newStriped(&all[(2*i+me)%len(all)], 0, size, 0).put(data).buf(), Standard))
			}
		}
		for i := range 50 {
			if f := ns[0].send(1, 1000, []byte{byte(i)}); f != nil {
				t.Fatal(f)
			}
			b := make([]byte, 1)
			if _, f := ns[1].recv(0, 1000, b); f != nil || b[0] != byte(i) {
				t.Fatal(f, b)
			}
		}
		soon(t, "streams", func() bool {
			done := make(chan bool)
			for me, n := range ns {
				go func() {
					for _, h := range hs[me] {
						if o := n.Wait(h); o.Status.Fault != nil {
							t.Errorf("rank %d: %+v", me, o.Status.Fault)
						}
					}
					done <- true
				}()
			}
			return <-done && <-done
		})
		for me := range ns {
			for i, a := range dst[me] {
				if err := a.want(data, 0); err != nil {
					t.Fatalf("rank %d stream %d: %v", me, i, err)
				}
			}
		}
		quietStreams(t, ns)
	}
}

// started makes a stream of which some pieces have passed, and no more pass
// until the valve of its receiver is opened.
func started(t *testing.T, size int) (ns []*node, hub *inproc.Hub, send, recv Handle, dst *striped, v *valve) {
	t.Helper()
	ns, hub = testJobOf(t, 2, nil, func(i int, c *Config) {
		if i == 1 {
			v = throughValve(c, 4)
		}
	})
	all := shapes()
	dst = newStriped(&all[2], 0, size, 0)
	send = ns[0].isendBuf(1, 1, newStriped(&all[1], 0, size, 0).put(noise(9, size)).buf(), Standard)
	recv = ns[1].irecvBuf(0, 1, dst.buf())
	within(t, "the first pieces", func() bool {
		ns[0].iprobe()
		ns[1].iprobe()
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		p := ns[1].peers[ns[0].Self()]
		return v.left.Load() == 0 && p.in.first != nil && p.in.first.passed > 0
	})
	return ns, hub, send, recv, dst, v
}

// A stream ends with the death of one of its processes, at the other.
func TestStreamDeath(t *testing.T) {
	for dead := range 2 {
		ns, hub, send, recv, _, v := started(t, 24<<20)
		kill(t, ns, hub, dead)
		v.open()
		if dead == 0 {
			wantClass(t, "receive", soon(t, "receive", func() Outcome { return ns[1].Wait(recv) }).Status.Fault, fault.ProcFailed)
		} else {
			wantClass(t, "send", soon(t, "send", func() Outcome { return ns[0].Wait(send) }).Status.Fault, fault.ProcFailed)
		}
		quietStreams(t, ns[1-dead:2-dead])
		within(t, "acknowledgement", func() bool { ns[1-dead].iprobe(); return ns[1-dead].ctl.deaths() == 1 })
	}
}

// What ends a communicator or gives up a request does not stop a stream: its
// message was matched.
func TestStreamGoesOn(t *testing.T) {
	const size = 8 << 20
	for _, how := range []string{"revoke", "free", "cancel"} {
		t.Run(how, func(t *testing.T) {
			ns, _, send, recv, dst, v := started(t, size)
			for i, n := range ns {
				switch how {
				case "revoke":
					n.Revoke(n.ctx)
				case "free":
					n.FreeContext(n.ctx)
				case "cancel":
					n.Cancel([]Handle{send, recv}[i])
				}
			}
			v.open()
			sent := soon(t, "send", func() Outcome { return ns[0].Wait(send) })
			got := soon(t, "receive", func() Outcome { return ns[1].Wait(recv) })
			if sent.Status.Fault != nil || sent.Status.Cancelled || got.Status.Fault != nil || got.Status.Bytes != size {
				t.Fatalf("send %+v, receive %+v", sent.Status, got.Status)
			}
			if err := dst.want(noise(9, size), 0); err != nil {
				t.Fatal(err)
			}
			quietStreams(t, ns)
		})
	}
}

// A strided message that nobody has matched is withdrawn as any other.
func TestStridedWithdrawal(t *testing.T) {
	all := shapes()
	ns, _ := testJobOf(t, 2, nil, nil)
	for _, size := range []int{100, 100_000} {
		h := ns[0].isendBuf(1, 1, newStriped(&all[1], 0, size, 0).buf(), Synchronous)
		within(t, "arrival", func() bool { return ns[1].iprobe() })
		ns[0].Cancel(h)
		if o := soon(t, "send", func() Outcome { return ns[0].Wait(h) }); !o.Status.Cancelled {
			t.Fatalf("%d bytes: %+v", size, o.Status)
		}
		if ns[1].iprobe() {
			t.Fatalf("%d bytes: the message is still there", size)
		}
	}
	books(t, ns)
}

// A finalized process leaves after what was pulled has left.
func TestStreamBeforeClose(t *testing.T) {
	const size = 8 << 20
	ns, _, send, recv, dst, v := started(t, size)
	ns[0].Free(send)
	time.AfterFunc(10*time.Millisecond, v.open) // while it is being closed
	soon(t, "Close", func() error { return ns[0].Close(t.Context()) })
	if o := soon(t, "receive", func() Outcome { return ns[1].Wait(recv) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	if err := dst.want(noise(9, size), 0); err != nil {
		t.Fatal(err)
	}
}

// Frames that break the protocol of streams end the connection, whatever has
// passed before.
func TestStreamProtocol(t *testing.T) {
	eight := func(b ...byte) []byte { return append(b, make([]byte, 8-len(b))...) }
	type frame struct {
		k       kind
		tag     int32
		payload []byte
	}
	piece := func(at int32, n int) frame { return frame{kindPiece, at, make([]byte, n)} }
	for _, c := range []struct {
		name   string
		length byte // of a message that comes first, and is received
		frames []frame
	}{
		{"pull of nothing", 0, []frame{{kindPull, 0, eight()}}},
		{"pull of too much", 0, []frame{{kindPull, 0, eight(0, 0, 0, 0, 1)}}},
		{"negative pull", 0, []frame{{kindPull, 0, []byte{7: 0x80}}}},
		{"short pull", 0, []frame{{kindPull, 0, []byte{1}}}},
		{"long pull", 0, []frame{{kindPull, 0, make([]byte, 9)}}},
		{"two pulls", 0, []frame{{kindPull, 0, eight(0, 0, 0x40)}, {kindPull, 0, eight(0, 0, 0x40)}}},
		{"refusal after a pull", 0, []frame{{kindPull, 0, eight(0, 0, 0x40)}, {kindRefuse, 0, nil}}},
		{"withdrawal after a pull", 0, []frame{{kindPull, 0, eight(0, 0, 0x40)}, {kindCancelOK, 0, nil}}},
		{"piece of no stream", 0, []frame{piece(0, 1)}},
		{"empty piece", 100, []frame{piece(0, 0)}},
		{"piece too long", 100, []frame{piece(0, 101)}},
		{"piece elsewhere", 100, []frame{piece(1, 1)}},
		{"piece again", 100, []frame{piece(0, 50), piece(0, 50)}},
		{"piece after the last", 100, []frame{piece(0, 50), piece(50, 50), piece(100, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns, _ := testJobOf(t, 2, nil, nil)
			all := shapes()
			h := ns[0].isendBuf(1, 1, newStriped(&all[1], 0, 5<<20, 0).buf(), Standard)
			recv := ns[0].irecvBuf(1, 2, newStriped(&all[1], 0, 100, 0).buf())
			within(t, "arrival", func() bool { return ns[1].iprobe() })
			ns[1].mu.Lock()
			p := ns[1].peers[ns[0].Self()]
			send := func(tag int32, k kind, flags uint8, aux uint32, payload []byte) {
				head := header(ns[1].ctx.wireKey(wire.TrafficP2P, tag), k, flags, aux)
				if st := p.link.Send(p.slot, &head, payload, 0); st != transport.Sent {
					t.Fatal(st)
				}
			}
			id := h.req.wireID()
			if c.length > 0 {
				send(2, kindRTS, flagStream, id, eight(c.length))
			}
			for _, f := range c.frames {
				send(f.tag, f.k, 0, id, f.payload)
			}
			ns[1].mu.Unlock()
			wantClass(t, "send", soon(t, "send", func() Outcome { return ns[0].Wait(h) }).Status.Fault, fault.Unreachable)
			soon(t, "receive", func() Outcome { return ns[0].Wait(recv) })
			quietStreams(t, ns[:1])
		})
	}
}

// Partitions are windows of strided memory, whatever the other side's are.
func TestStridedPartitions(t *testing.T) {
	all := shapes()
	ns, _ := testJobOf(t, 2, nil, nil)
	const size = 7 * 16 * 5000
	data := noise(2, size)
	for i := range all {
		out, in := newStriped(&all[i], 0, size, 1).put(data), newStriped(&all[(i+2)%len(all)], 3, size, 2)
		s := ns[0].PartInit(ns[0].ctx, &PartArgs{Op: "PsendInit", Buf: out.buf(), Send: true, Parts: 7, Peer: 1, Tag: int32(i)})
		r := ns[1].PartInit(ns[1].ctx, &PartArgs{Op: "PrecvInit", Buf: in.buf(), Parts: 4, Peer: 0, Tag: int32(i)})
		hs, hr := ns[0].PartStart(s), ns[1].PartStart(r)
		for k := range int32(7) {
			ns[0].PartReady(s, 6-k, 6-k)
		}
		for k, n := range ns {
			go n.iprobe()
			if o := soon(t, "partitions", func() Outcome { return n.Wait([]Handle{hs, hr}[k]) }); o.Status.Fault != nil {
				t.Fatal(o.Status.Fault)
			}
		}
		if err := in.want(data, 2); err != nil {
			t.Fatal(err)
		}
	}
	quietStreams(t, ns)
}

// Copy steps move between all shapes, and reductions see packed elements.
func TestStridedSteps(t *testing.T) {
	all := shapes()
	ns, _ := testJobOf(t, 1, nil, nil)
	const size = 50_000
	from, to := collectives.Ref{Buf: collectives.In, Len: size}, collectives.Ref{Buf: collectives.Out, Len: size}
	data, old := noise(3, size), noise(4, size)
	sum := make([]byte, size)
	for i := range sum {
		sum[i] = data[i] + old[i]
	}
	for i := range all {
		for k := range all {
			for _, kind := range []collectives.Kind{collectives.Copy, collectives.Reduce} {
				in, out := newStriped(&all[i], 2, size, 1).put(data), newStriped(&all[k], 1, size, 2).put(old)
				a := CollArgs{Op: "Test", Alg: roundOf(collectives.Step{Kind: kind, A: from, B: to}), Call: shmcoll.Call{In: in.buf(), Out: out.buf(), Unit: 1}}
				want := data
				if kind == collectives.Reduce {
					a.Kernel, a.Commutative, want = addBytes, true, sum
				}
				if f := ns[0].Collective(ns[0].ctx, &a); f != nil {
					t.Fatal(f)
				}
				if err := out.want(want, 2); err != nil {
					t.Fatalf("%v from %s: %v", kind, all[i].name, err)
				}
				if err := in.want(data, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
