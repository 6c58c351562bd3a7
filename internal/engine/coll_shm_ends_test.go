// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// Ranks that make different calls are told, and the area serves the next one.
func TestAreaMismatch(t *testing.T) {
	ns := areaJob(t, 2, nil)
	for r, f := range everywhere(t, ns, func(i int) *CollArgs {
		return ns[i].call64(collectives.OpAllreduce, make([]uint64, 1+i), make([]uint64, 1+i), 1+i, 0)
	}) {
		if f.Code() != fault.Mismatch && f.Code() != fault.Aborted {
			t.Fatalf("rank %d: %+v", r, f)
		}
	}
	for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
		if f != nil {
			t.Fatalf("rank %d, afterwards: %+v", r, f)
		}
	}
}

// A rank that refuses a call, or hears of a failure before it starts one, goes
// on with the others at the next.
func TestAreaAfterRefusal(t *testing.T) {
	ns := areaJob(t, 3, nil)
	for k := range 3 * shmcoll.Cells {
		ns[2].Refuse(ns[2].ctx, ns[2].call64(collectives.OpBarrier, nil, nil, 0, 0))
		for i, n := range ns[:2] {
			wantClass(t, fmt.Sprint("rank ", i), soon(t, "barrier", func() *fault.Fault {
				return n.Collective(n.ctx, n.call64(collectives.OpAllreduce, make([]uint64, 1), make([]uint64, 1), 1, 0))
			}), fault.Aborted)
		}
		outs := make([][]uint64, len(ns))
		for r, f := range everywhere(t, ns, func(i int) *CollArgs {
			outs[i] = make([]uint64, 1)
			return ns[i].call64(collectives.OpAllreduce, []uint64{word64(k, i, 0)}, outs[i], 1, 0)
		}) {
			if f != nil || outs[r][0] != fold(k, 0, 2, 0) {
				t.Fatalf("rank %d, time %d: %x, %+v", r, k, outs[r][0], f)
			}
		}
	}
}

// Operations by messages between those on the area use numbers up: whoever
// waits for a slot must hear that the last operation in it has ended.
func TestAreaWithGaps(t *testing.T) {
	ns := areaJob(t, 3, nil)
	direct, err := selection.ByName(collectives.OpBarrier, "direct")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	for k := range 100 {
		for range rnd.IntN(2 * shmcoll.Cells) {
			everywhere(t, ns, func(i int) *CollArgs {
				a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
				a.Alg = direct
				return a
			})
		}
		op := []collectives.Op{collectives.OpBarrier, collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce}[rnd.IntN(4)]
		for r, f := range everywhere(t, ns, func(i int) *CollArgs {
			in, out, _ := areaCase(op, k, i, len(ns), 1, k%3, false)
			return ns[i].call64(op, in, out, 1, k%3)
		}) {
			if f != nil {
				t.Fatalf("call %d, %v, rank %d: %+v", k, op, r, f)
			}
		}
	}
}

// What ends a collective ends it on an area: a refusal, a death, a context, the
// end of the process.
func TestAreaEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(ns []*node)
		want fault.Class
	}{
		"refused":   {func(ns []*node) { ns[0].Refuse(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0)) }, fault.Aborted},
		"death":     {func(ns []*node) { ns[1].ProcFailed(proc(1), "was killed") }, fault.ProcFailed},
		"revoked":   {func(ns []*node) { ns[0].Revoke(ns[0].ctx) }, fault.Revoked},
		"finalized": {func(ns []*node) { ns[1].Close(ended()) }, fault.Finalized},
	} {
		t.Run(name, func(t *testing.T) {
			ns := areaJob(t, 2, nil)
			done := make(chan *fault.Fault, 1)
			go func() { done <- ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)) }()
			ns[1].asleep(t)
			go end.do(ns)
			wantClass(t, name, soon(t, "barrier", func() *fault.Fault { return <-done }), end.want)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ns := areaJob(t, 2, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan *fault.Fault, 1)
		go func() {
			a := ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)
			a.User = ctx
			done <- ns[1].Collective(ns[1].ctx, a)
		}()
		ns[1].asleep(t)
		cancel()
		wantClass(t, "cancelled", soon(t, "barrier", func() *fault.Fault { return <-done }), fault.Cancelled)
		// The first may succeed: both ranks have come to it.
		wantClass(t, "afterwards", soon(t, "barrier", func() (f *fault.Fault) {
			for range 2 {
				f = ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0))
			}
			return f
		}), fault.Revoked)
	})
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// withoutArea runs barriers, after which no rank has an area.
func withoutArea(t *testing.T, ns []*node, barriers int) {
	t.Helper()
	for range barriers {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for i, n := range ns {
		if n.ctx.SharedRoom() != 0 {
			t.Errorf("rank %d has an area", i)
		}
	}
}

// Where not everybody can share, nobody does.
func TestNoAreaWithoutSharer(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, func(i int, c *Config) {
		if i == 2 {
			c.Transports[0] = struct{ transport.Transport }{c.Transports[0]} // and nothing else
		}
	})
	withoutArea(t, ns, 4)
}

// A process that yields in an area's spin serves its other goroutines.
func TestAreaServesMessages(t *testing.T) {
	ns := areaJob(t, 2, func(_ int, c *Config) { c.Policy = wait.Policy{Spin: 1 << 30, PerCPU: 1} })
	done := make(chan *fault.Fault, 1)
	go func() { done <- ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)) }()
	b := make([]byte, 8)
	for k := range 100 {
		h := ns[1].irecv(0, k, b)
		if f := soon(t, "send", func() *fault.Fault { return ns[0].send(1, k, binary.LittleEndian.AppendUint64(nil, uint64(k))) }); f != nil {
			t.Fatal(f)
		}
		if o := soon(t, "receive", func() Outcome { return ns[1].Wait(h) }); o.Status.Fault != nil || binary.LittleEndian.Uint64(b) != uint64(k) {
			t.Fatalf("message %d: %v, %+v", k, b, o)
		}
	}
	if f := ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0)); f != nil {
		t.Fatal(f)
	}
	if f := soon(t, "barrier", func() *fault.Fault { return <-done }); f != nil {
		t.Fatal(f)
	}
}
