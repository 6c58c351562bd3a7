// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/transport"
	"gompi/transport/faulty"
)

// Whoever sees a signal sees what a device was to put before it, and what frames
// have changed.
func TestSignalBehindDevice(t *testing.T) {
	ss := testDevices(t, faulty.DevicePlan{Latest: time.Millisecond})
	r, err := ss[1].Expose(make([]byte, 64), 1)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Desc()
	target, f := ss[0].Reach(ss[1].self, &d)
	ok(t, f)
	for round := range uint64(50) {
		v := make([]byte, 64)
		for i := 0; i < len(v); i += 8 {
			binary.LittleEndian.PutUint64(v[i:], round+1)
			ok(t, target.Put(buffer.Of(v[i:i+8]), Layout{int64(i), dtype.Byte, 8}))
		}
		ok(t, target.Signal(0, round+1))
		waitUntil(t, ss[1], func() bool { return r.Word(0) == round+1 })
		for i := 0; i < len(v); i += 8 {
			if got := binary.LittleEndian.Uint64(r.Mem()[i:]); got != round+1 {
				t.Fatalf("round %d: number %d is %d", round, i/8, got)
			}
		}
		ok(t, target.Flush(nil))
	}
}

// A description whose keys leave no room says nothing of devices, and its memory
// is reached in another way.
func TestKeyRoom(t *testing.T) {
	ss := testDevices(t, faulty.DevicePlan{})
	r, err := ss[1].Expose(make([]byte, 64), 1)
	if err != nil {
		t.Fatal(err)
	}
	before := r.posted
	if before == nil {
		t.Fatal("not exposed")
	}
	var full description
	full.keys.add(99, keysBytes-10)
	ss[1].post(r, &full)
	if kind, _, rest := full.keys.next(full.keys.all()); r.posted != nil || kind != 99 || len(rest) > 0 {
		t.Errorf("a key stands behind %d bytes of %d", full.keys.n, keysBytes)
	}
	r.posted = before
	r.Close()
}

// instant is a device that is done at once: what it costs is what the path costs.
type instant struct {
	transport.Poster
	s      *Space
	tokens []transport.Token
	rung   int
}

func (p *instant) Put(_, _ []byte, _ int64, tok transport.Token) transport.Status {
	p.tokens = append(p.tokens, tok)
	return transport.Queued
}
func (p *instant) Ring() { p.rung++ }

// end tells that all has ended, the last first, as a poll does.
func (p *instant) end() {
	p.s.e.Lock()
	defer p.s.e.Unlock()
	for _, tok := range slices.Backward(p.tokens) {
		p.s.Posted(tok, false, nil)
		p.s.Posted(tok, true, nil)
	}
	p.tokens = p.tokens[:0]
}

// instantTarget is a target of 64 bytes that an instant device reaches.
func instantTarget(t testing.TB) (*Target, *instant) {
	t.Helper()
	ss := testDevices(t, faulty.DevicePlan{})
	r, err := ss[1].Expose(make([]byte, 64), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	d := r.Desc()
	target, f := ss[0].Reach(ss[1].self, &d)
	ok(t, f)
	p := &instant{s: ss[0], Poster: target.peer.posts.poster}
	target.peer.posts.poster = p
	return target, p
}

// A Put is a post and no more: nothing is allocated, and the device is told of
// many at once.
func TestPostCost(t *testing.T) {
	target, p := instantTarget(t)
	src := buffer.Of(make([]byte, 8))
	at := Layout{8, dtype.Byte, 8}
	round := func() {
		for range 16 {
			if f := target.Put(src, at); f != nil {
				t.Fatal(f.Err)
			}
		}
		p.end()
		if f := target.Flush(nil); f != nil {
			t.Fatal(f.Err)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("16 Puts make %v allocations", n)
	}
	if p.rung != 0 {
		t.Errorf("rung %d times, though all had ended", p.rung)
	}
	ok(t, target.Put(src, at))
	ok(t, target.Put(src, at))
	done := make(chan *fault.Fault, 1)
	go func() { done <- target.Flush(nil) }()
	waitUntil(t, target.s, func() bool { return p.rung == 1 })
	p.end()
	target.s.e.Lock()
	target.s.e.WakeProcess(target.s.self)
	target.s.e.Unlock()
	ok(t, soon(t, "flush", func() *fault.Fault { return <-done }))
}

func BenchmarkPost(b *testing.B) {
	target, p := instantTarget(b)
	src := buffer.Of(make([]byte, 8))
	at := Layout{8, dtype.Byte, 8}
	for b.Loop() {
		for range 16 {
			target.Put(src, at)
		}
		p.end()
	}
}
