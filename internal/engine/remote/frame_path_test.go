// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
	"gompi/transport"
)

func soon[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v
	case <-time.After(testWait):
		t.Fatalf("%s: nothing happens", what)
		panic("")
	}
}

// servedPair is a region on the heap of one process and a served target of it
// in another.
func servedPair(t testing.TB, n int) (*Region, *Target) {
	t.Helper()
	ss := testJobOf(t, 2)
	ss[0].onlyServed = true
	r, err := ss[1].Expose(make([]byte, n), 0)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Desc()
	target, f := ss[0].Reach(ss[1].self, &d)
	ok(t, f)
	return r, target
}

// testContext is a communicator of the two processes of a test job.
func testContext(t testing.TB, s *Space) *engine.Context {
	t.Helper()
	m := wire.NewMembers(wire.Range{First: wire.ProcID{Job: testJob, Serial: 1}, Count: 2})
	c, err := s.e.NewContext(wire.ContextID{Creator: wire.ProcID{Job: testJob}, Serial: 1}, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Many requests at once from many goroutines: what is unanswered stays within
// the window, and all arrives.
func TestWindow(t *testing.T) {
	r, target := servedPair(t, 1<<20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			src := random(make([]byte, 1<<18))
			dst := make([]byte, 1<<18)
			base := int64(g) << 18
			for at := 0; at < len(src); {
				n := min(1+rand.IntN(100), len(src)-at)
				if rand.IntN(50) == 0 {
					n = min(60_000, len(src)-at)
				}
				if f := target.Put(buffer.Of(src[at:][:n]), Layout{base + int64(at), dtype.Byte, int64(n)}); f != nil {
					t.Error(f.Err)
				}
				target.s.e.Lock()
				o := &target.peer.out
				if o.bytes > windowBytes || o.begun-o.done[atTarget] > windowRequests || len(o.ring) > windowRequests {
					t.Errorf("%d bytes and %d requests are unanswered, ring of %d", o.bytes, o.begun-o.done[atTarget], len(o.ring))
				}
				target.s.e.Unlock()
				at += n
			}
			if f := target.Get(buffer.Of(dst), Layout{base, dtype.Byte, int64(len(dst))}); f != nil {
				t.Error(f.Err)
			}
			if f := target.Flush(nil); f != nil {
				t.Error(f.Err)
			}
			if !bytes.Equal(src, dst) || !bytes.Equal(src, r.Mem()[base:][:len(src)]) {
				t.Error("other bytes")
			}
		})
	}
	wg.Wait()
	o := &target.peer.out
	if o.bytes != 0 || o.begun != o.done[atTarget] || target.Pending() {
		t.Errorf("%d bytes of %d requests, %d done, are left", o.bytes, o.begun, o.done[atTarget])
	}
}

func TestRequests(t *testing.T) {
	_, target := servedPair(t, 1<<16)
	e, ctx := target.s.e, testContext(t, target.s)
	if o := soon(t, "request of nothing", func() engine.Outcome { return e.Wait(target.Request("Rput", ctx, 1, target.Mark())) }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	src, dst := random(make([]byte, 1<<16)), make([]byte, 1<<16)
	ok(t, target.Put(buffer.Of(src), Layout{0, dtype.Byte, 1 << 16}))
	put := target.Request("Rput", ctx, 1, Mark{})
	mark := target.Mark()
	ok(t, target.Get(buffer.Of(dst), Layout{0, dtype.Byte, 1 << 16}))
	get := target.Request("Rget", ctx, 1, mark)
	for _, h := range []engine.Handle{get, put} {
		if o := soon(t, "request", func() engine.Outcome { return e.Wait(h) }); o.Status.Fault != nil {
			t.Fatal(o.Status.Fault)
		}
	}
	if !bytes.Equal(src, dst) {
		t.Fatal("other bytes")
	}
	// A refusal is told by the request, if there is one for what was refused, else
	// by the next flush, and once.
	target.handle += 3
	ok(t, target.Put(buffer.Of(src[:8]), Layout{0, dtype.Byte, 8}))
	mark = target.Mark()
	ok(t, target.Get(buffer.Of(dst), Layout{0, dtype.Byte, 1 << 16}))
	get = target.Request("Rget", ctx, 1, mark)
	o := soon(t, "request", func() engine.Outcome { return e.Wait(get) })
	wantClass(t, "request", o.Status.Fault, fault.Closed)
	if f := o.Status.Fault; f.Got == 8 {
		t.Errorf("the request has the fault of an access before it: %v", f.Err)
	}
	f := target.Flush(nil)
	wantClass(t, "flush", f, fault.Closed)
	if f.Got != 8 {
		t.Errorf("the flush has the fault of an access with a request: %v", f.Err)
	}
	ok(t, target.Flush(nil))
}

// A flush that is given up leaves nothing that writes to the caller's memory.
func TestFlushGivenUp(t *testing.T) {
	r, target := servedPair(t, 1<<16)
	owner := r.s
	random(r.Mem())
	if !r.ctl.guardTry(99) { // so that the owner cannot serve what is atomic
		t.Fatal("guard")
	}
	dst := make([]byte, 1<<16)
	ok(t, target.GetAccumulate(buffer.Buf{}, buffer.Of(dst), Layout{0, dtype.Byte, 1 << 16}, kernel.NoOp))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if f := soon(t, "flush", func() *fault.Fault { return target.Flush(ended) }); f == nil || f.Class != fault.Cancelled {
		t.Fatalf("flush: %+v", f)
	}
	r.ctl.guardUnlock(99)
	flush(t, target)
	if !bytes.Equal(dst, make([]byte, 1<<16)) {
		t.Error("results came after the flush had failed")
	}
	waitUntil(t, owner, func() bool { return r.users == 0 })
}

// A request that ends with its communicator leaves nothing either.
func TestRequestRevoked(t *testing.T) {
	r, target := servedPair(t, 4096)
	random(r.Mem())
	e, ctx := target.s.e, testContext(t, target.s)
	if !r.ctl.guardTry(99) {
		t.Fatal("guard")
	}
	dst := make([]byte, 4096)
	ok(t, target.GetAccumulate(buffer.Buf{}, buffer.Of(dst), Layout{0, dtype.Byte, 4096}, kernel.NoOp))
	h := target.Request("Rget", ctx, 1, Mark{})
	e.Revoke(ctx)
	if o := soon(t, "request", func() engine.Outcome { return e.Wait(h) }); o.Status.Fault == nil || o.Status.Fault.Class != fault.Revoked {
		t.Fatalf("request: %+v", o.Status)
	}
	r.ctl.guardUnlock(99)
	flush(t, target)
	if !bytes.Equal(dst, make([]byte, 4096)) {
		t.Error("results came after the request had ended")
	}
}

// waitUntil waits for something that the engine's lock guards.
func waitUntil(t testing.TB, s *Space, f func() bool) {
	t.Helper()
	soon(t, "condition", func() bool {
		for {
			s.e.Lock()
			is := f()
			s.e.Unlock()
			if is {
				return true
			}
			select {
			case <-t.Context().Done():
				return false
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// What waits for a guard keeps its order with what comes behind it, and goes
// on when the holder gives the guard back, or dies.
func TestGuardHeld(t *testing.T) {
	for _, dies := range []bool{false, true} {
		r, target := servedPair(t, 4096)
		const holder = 99
		if !r.ctl.guardTry(holder) {
			t.Fatal("guard")
		}
		one, two := new(int64), new(int64)
		*one, *two = 1, 2
		var was int64
		word := Layout{8, int64Type, 1}
		ok(t, target.Accumulate(int64Buf(one), word, kernel.Sum))
		ok(t, target.Put(int64Buf(two), word))
		ok(t, target.GetAccumulate(int64Buf(one), int64Buf(&was), word, kernel.Sum))
		waitUntil(t, r.s, func() bool {
			p := r.s.peers[target.s.self]
			return p != nil && len(p.in.waiting) == 3
		})
		if v := binary.LittleEndian.Uint64(r.Mem()[8:]); v != 0 {
			t.Fatalf("%d is there while somebody has the guard", v)
		}
		if dies {
			r.s.queryFate(wire.ProcID{Job: testJob, Serial: holder}) // as a waiting process does
			r.s.e.ProcFailed(wire.ProcID{Job: testJob, Serial: holder}, "was killed")
		} else {
			r.ctl.guardUnlock(holder)
		}
		ok(t, soon(t, "flush", func() *fault.Fault { return target.Flush(nil) }))
		if v := binary.LittleEndian.Uint64(r.Mem()[8:]); was != 2 || v != 3 {
			t.Fatalf("%d was there, want 2; %d is, want 3", was, v)
		}
		waitUntil(t, r.s, func() bool { return r.users == 0 })
		if in := &r.s.peers[target.s.self].in; in.queued != 0 || in.waiting != nil {
			t.Fatalf("%d bytes still wait", in.queued)
		}
		if g := r.ctl.head.guard.Load(); g != 0 {
			t.Fatalf("process %d has the guard", g)
		}
	}
}

// The owner dies: what is on its way ends, what is asked later, too, and no
// memory of the caller is touched.
func TestOwnerDies(t *testing.T) {
	eachAccess(t, 1<<20, func(a access) {
		if a.target.peer == nil {
			return
		}
		e, dead := a.target.s.e, a.region.s.self
		src := make([]byte, 1<<20)
		// Requests that are never answered: the guard is somebody else's.
		a.region.ctl.guardTry(99)
		var pending engine.Handle
		if a.target.path.framed() {
			for range 2 {
				ok(t, a.target.Accumulate(strided(src, 0, 1, basicOf(dtype.Complex128)), Layout{0, basicOf(dtype.Complex128), 1}, kernel.Sum))
			}
			ok(t, a.target.GetAccumulate(buffer.Buf{}, strided(src, 0, 1, basicOf(dtype.Complex128)), Layout{0, basicOf(dtype.Complex128), 1}, kernel.NoOp))
			pending = a.target.Request("RgetAccumulate", testContext(t, a.target.s), 1, Mark{})
		}
		done := make(chan *fault.Fault, 1)
		go func() { done <- a.target.Flush(nil) }()
		if !a.target.path.framed() {
			ok(t, <-done)
		}
		e.ProcFailed(dead, "was killed by signal 9")
		if a.target.path.framed() {
			if f := soon(t, "flush", func() *fault.Fault { return <-done }); f == nil || f.Class != fault.ProcFailed {
				t.Errorf("%s: flush: %+v", a.name, f)
			}
			if o := soon(t, "request", func() engine.Outcome { return e.Wait(pending) }); o.Status.Fault == nil || o.Status.Fault.Class != fault.ProcFailed {
				t.Errorf("%s: request: %+v", a.name, o.Status)
			}
		}
		f := a.target.Put(buffer.Of(src), Layout{0, dtype.Byte, 1 << 20})
		if a.target.path != isMapped(a.target) && (f == nil || f.Class != fault.ProcFailed) {
			t.Errorf("%s: put: %+v", a.name, f)
		}
		if f := a.target.Flush(nil); f == nil || f.Class != fault.ProcFailed {
			t.Errorf("%s: flush: %+v", a.name, f)
		}
		a.region.ctl.guardUnlock(99)
		d := a.region.Desc()
		if _, f := a.target.s.Reach(dead, &d); f == nil || f.Class != fault.ProcFailed {
			t.Errorf("%s: reach: %+v", a.name, f)
		}
	})
}

// hostile is a process of which the frames are made up.
var hostile = wire.ProcID{Job: testJob, Serial: 2}

// Frames that make no sense are an error of the protocol or a refusal. The
// region's memory changes only by what is within it.
func FuzzFrame(f *testing.F) {
	q := request{kind: framePut, op: kernel.Sum, elem: dtype.Int64, number: 1, bytes: 8, groups: 1}
	for _, kind := range []byte{framePut, frameGet, frameAccumulate, frameFetch, frameSwap} {
		q.kind = kind
		b := make([]byte, requestBytes+groupBytes, 128)
		q.put(b)
		g := group{off: 8, stride: -8, length: 8, runs: 1}
		g.put(b[requestBytes:])
		f.Add(append(b, make([]byte, 8*q.operands())...))
		g = group{off: 1 << 62, stride: 1 << 62, length: 4, runs: 2}
		g.put(b[requestBytes:])
		f.Add(append(b, make([]byte, 8*q.operands())...))
	}
	for kind := range byte(20) {
		f.Add(append([]byte{kind}, make([]byte, 15)...))
		f.Add(append([]byte{kind, 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 31)...))
	}
	ss := testJobOf(f, 2)
	const size, around = 512, 64
	all := make([]byte, around+size+around)
	mem := all[around:][:size:size]
	heap, err := ss[0].Expose(mem, 2)
	if err != nil {
		f.Fatal(err)
	}
	other, err := ss[0].Allocate(size, 2)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > engine.FrameMax {
			return
		}
		s := ss[0]
		b = bytes.Clone(b)
		if len(b) >= requestBytes { // else nothing is ever found
			r := heap
			if b[3]&1 != 0 {
				r = other
			}
			if b[3]&2 == 0 {
				binary.LittleEndian.PutUint32(b[4:], r.handle)
				binary.LittleEndian.PutUint64(b[8:], r.nonce)
			}
			b[3] = 0
		}
		s.e.Lock()
		defer s.e.Unlock()
		p := s.peerOf(hostile)
		*p = peer{proc: hostile}
		if err := s.Frame(hostile, b); err != nil && !errors.Is(err, transport.ErrProtocol) {
			t.Fatal(err)
		}
		if p.in.number > 1 || p.in.number == 0 && p.in.bytes > 0 {
			t.Fatalf("%d requests were served", p.in.number)
		}
		for i, v := range all {
			if v != 0 && (i < around || i >= around+size) {
				t.Fatalf("byte %d outside the region was written", i-around)
			}
		}
	})
}

// Answers that make no sense end the protocol, and never write where nothing
// was asked for.
func TestHostileAnswers(t *testing.T) {
	answer := func(kind byte, number uint64, data int) []byte {
		b := make([]byte, replyBytes+data)
		b[0] = kind
		binary.LittleEndian.PutUint64(b[8:], number)
		for i := replyBytes; i < len(b); i++ {
			b[i] = 0xee
		}
		return b
	}
	refusal := func(why byte) []byte {
		b := answer(frameRefusal, 2, refusalBytes-replyBytes)
		b[1] = why
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		fine bool
	}{
		{"reply", answer(frameReply, 2, 64), true},
		{"done before the reply", answer(frameDone, 1, 0), true},
		{"refusal", refusal(byte(fault.Closed)), true},
		{"refusal for no reason", refusal(0), false},
		{"refusal for an unknown reason", refusal(byte(fault.Reported)), false},
		{"short", []byte{frameReply, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}, false},
		{"reply of another size", answer(frameReply, 2, 63), false},
		{"longer reply", answer(frameReply, 2, 65), false},
		{"reply to a put", answer(frameReply, 1, 64), false},
		{"empty reply to a put", answer(frameReply, 1, 0), false},
		{"done instead of a reply", answer(frameDone, 2, 0), false},
		{"done after a reply", answer(frameDone, 3, 0), false},
		{"request 0", answer(frameDone, 0, 0), false},
		{"request that was not sent", answer(frameDone, 4, 0), false},
		{"request far away", answer(frameReply, 1<<63, 64), false},
		{"long done", answer(frameDone, 1, 8), false},
		{"short refusal", answer(frameRefusal, 2, 8), false},
	} {
		r, target := servedPair(t, 4096)
		r.ctl.guardTry(99) // the owner itself stays silent
		dst := make([]byte, 64)
		ok(t, target.Accumulate(buffer.Of(dst), Layout{0, dtype.Byte, 64}, kernel.Replace))
		ok(t, target.Get(buffer.Of(dst), Layout{0, dtype.Byte, 64}))
		ok(t, target.Accumulate(buffer.Of(dst), Layout{0, dtype.Byte, 64}, kernel.Replace))
		s := target.s
		s.e.Lock()
		err := s.Frame(r.s.self, c.b)
		s.e.Unlock()
		if (err == nil) != c.fine || err != nil && !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("%s: %v", c.name, err)
		}
		want := make([]byte, 64)
		if c.name == "reply" {
			want = bytes.Repeat([]byte{0xee}, 64)
		}
		if !bytes.Equal(dst, want) {
			t.Errorf("%s: wrote %x", c.name, dst)
		}
		r.ctl.guardUnlock(99)
	}
}

// Whether runs are within a region, against numbers that do not overflow.
func TestWithin(t *testing.T) {
	pick := func(size int64) int64 {
		switch rand.IntN(4) {
		case 0:
			return rand.Int64() - rand.Int64()
		case 1:
			return []int64{math.MinInt64, math.MaxInt64, math.MinInt64 + 1, 1 << 62, -1 << 62, size, -size}[rand.IntN(7)]
		}
		return rand.Int64N(4*size+2) - 2*size
	}
	yes := 0
	for range 200_000 {
		size := int64(1 + rand.IntN(5000))
		g := group{off: pick(size), stride: pick(size), length: uint32(1 + rand.IntN(100)), runs: uint32(1 + rand.IntN(maxPacked/100))}
		if rand.IntN(2) == 0 {
			g.stride %= 50
		}
		first := big.NewInt(g.off)
		last := new(big.Int).Mul(big.NewInt(g.stride), big.NewInt(int64(g.runs)-1))
		last.Add(last, first)
		inside := func(at *big.Int) bool {
			return at.Sign() >= 0 && new(big.Int).Add(at, big.NewInt(int64(g.length))).Cmp(big.NewInt(size)) <= 0
		}
		want := inside(first) && inside(last)
		if got := g.within(size); got != want {
			t.Fatalf("%+v in %d bytes: %v", g, size, got)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 {
		t.Fatalf("only %d were inside", yes)
	}
}

// Runs that are described are those of the layout, and fit.
func TestCut(t *testing.T) {
	var groups [maxGroups]group
	for k := range 300 {
		size := int64(1 + rand.IntN(16))
		dt := &dtype.Type{Kind: dtype.Opaque, Size: size}
		for name, l := range layouts(t, dt, 4+rand.Int64N(3000)) {
			for _, data := range []bool{true, false} {
				total := l.Count * l.Type.Size
				for off := int64(0); off < total; {
					const room = engine.FrameMax - requestBytes
					count, n := l.cut(&groups, off, total-off, size, room, maxPacked-maxPacked%size, data)
					used := int64(count * groupBytes)
					if data {
						used += n
					}
					if n <= 0 || n%size != 0 || n > maxPacked || used > room {
						t.Fatalf("%d: %s: %d bytes of %d in %d groups", k, name, n, total-off, count)
					}
					i := off
					for _, g := range groups[:count] {
						for j := range int64(g.runs) {
							at, m := l.run(i, int64(g.length))
							if at != g.off+j*g.stride || m != int64(g.length) {
								t.Fatalf("%d: %s: byte %d: %d bytes at %d, want %d at %d", k, name, i, g.length, g.off+j*g.stride, m, at)
							}
							i += m
						}
					}
					if i != off+n {
						t.Fatalf("%d: %s: groups of %d bytes, %d said", k, name, i-off, n)
					}
					off = i
				}
			}
		}
	}
}

func FuzzDesc(f *testing.F) {
	ss := testJobOf(f, 2)
	for i, n := range []int64{0, 1, 4096} {
		r, err := ss[0].Allocate(n, 2)
		if i == 1 {
			r, err = ss[0].Expose(make([]byte, n), 3)
		}
		if err != nil {
			f.Fatal(err)
		}
		d := r.Desc()
		f.Add(d[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Desc
		copy(d[:], b)
		x, err := d.decode()
		if err != nil {
			return
		}
		if again := x.encode(); again != d {
			// What is not named is not looked at.
			if y, err := again.decode(); err != nil || y != x {
				t.Fatalf("%x became %x, %v", d, again, err)
			}
		}
		target, fault := ss[1].Reach(x.proc, &d)
		if fault != nil {
			return
		}
		defer target.Close()
		if target.mem != nil && int64(len(target.mem)) != target.size {
			t.Fatalf("%d bytes are mapped, %d said", len(target.mem), target.size)
		}
	})
}

// A request that waits for a guard keeps nothing of a process that has ended.
func TestEndsWhileOneWaits(t *testing.T) {
	r, target := servedPair(t, 64)
	owner := r.s
	if !r.ctl.guardTry(99) {
		t.Fatal("guard")
	}
	ok(t, target.Accumulate(buffer.Of(make([]byte, 8)), Layout{0, dtype.Byte, 8}, kernel.Replace))
	waitUntil(t, owner, func() bool { return r.users == 1 })
	r.Close()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	owner.e.Close(ended)
	waitUntil(t, owner, func() bool { return owner.heap.Live() == 0 && owner.heap.Kept() == 0 })
}

// What is put by frames is copied at once: a local flush waits for nothing, while
// the owner cannot even serve it; of what is read it waits for the reply.
func TestFlushLocal(t *testing.T) {
	r, target := servedPair(t, 4096)
	if !r.ctl.guardTry(99) {
		t.Fatal("guard")
	}
	word := Layout{8, int64Type, 1}
	one, was := int64(1), int64(0)
	ok(t, target.Accumulate(int64Buf(&one), word, kernel.Sum))
	mark := target.Mark()
	ok(t, target.Put(int64Buf(&one), word))
	e, ctx := target.s.e, testContext(t, target.s)
	ok(t, soon(t, "local flush", func() *fault.Fault { return target.FlushLocal(nil) }))
	put := soon(t, "request of a put", func() engine.Outcome { return e.Wait(target.Request("Rput", ctx, 1, mark)) })
	if put.Status.Fault != nil || target.PendingLocal() || !target.Pending() {
		t.Fatalf("fault %v; pending here: %v, there: %v", put.Status.Fault, target.PendingLocal(), target.Pending())
	}
	ok(t, target.GetAccumulate(buffer.Buf{}, int64Buf(&was), word, kernel.NoOp))
	if !target.PendingLocal() {
		t.Fatal("a result that has not come is not pending")
	}
	r.ctl.guardUnlock(99)
	ok(t, soon(t, "local flush", func() *fault.Fault { return target.FlushLocal(nil) }))
	if was != 1 {
		t.Fatalf("read %d", was)
	}
	flush(t, target)
}
