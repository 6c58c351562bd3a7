// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/shmcoll"
	"gompi/transport"
)

// started are the arguments of a call that does not block; it goes through a ring if
// it can.
func (n *node) started(op collectives.Op, in, out []uint64) *CollArgs {
	a := n.call64(op, in, out, len(out), 0)
	a.Args.Shared, a.Args.Reads = n.ctx.RingRoom(op)/8, false
	a.Alg = a.Table.Select(&a.Args, 8, false)
	return a
}

func (n *node) ibarrier() Handle {
	return n.Icollective(n.ctx, n.started(collectives.OpBarrier, nil, nil))
}

// ended waits for a call and gives its fault.
func (n *node) endOf(h Handle) *fault.Fault { return n.Wait(h).Status.Fault }

// running is one call that a rank of lineProgram has started.
type running struct {
	what string
	h    Handle
	out  []uint64
	wide []uint64 // of which out is every second element, if it is strided
	want func(i int) uint64
}

func (x *running) check(n *node) error {
	if f := n.endOf(x.h); f != nil {
		return fmt.Errorf("%s: %+v", x.what, f)
	}
	for i := range x.out {
		v := x.out[i]
		if x.wide != nil {
			v = x.wide[2*i]
		}
		if v != x.want(i) {
			return fmt.Errorf("%s: element %d is %x, want %x", x.what, i, v, x.want(i))
		}
	}
	return nil
}

// lineCall is a call of a program: blocking, nonblocking or a set of starts.
type lineCall struct {
	how     int
	op      collectives.Op
	count   int
	inPlace bool
	starts  []int
}

const (
	callBlocks = iota
	callStarts
	callPersists
)

// linePersists is how many persistent calls a program has: more than rings.
const linePersists = shmcoll.PersistentRings + 3

func linePrograms(rnd *rand.Rand, calls int) (p []lineCall) {
	for range calls {
		c := lineCall{op: collectives.OpAllreduce, count: []int{0, 1, 1, 2, 7, 62, 63, 500}[rnd.IntN(8)], inPlace: rnd.IntN(3) == 0}
		switch rnd.IntN(10) {
		case 0:
			c.op, c.count = collectives.OpBarrier, 0
		case 1:
			c.op = collectives.OpAllgather
		}
		switch k := rnd.IntN(8); {
		case k < 2:
			c.how = callBlocks
		case k < 6:
			c.how = callStarts
		default:
			c.how = callPersists
			for i := range linePersists {
				if rnd.IntN(3) == 0 {
					c.starts = append(c.starts, i)
				}
			}
		}
		p = append(p, c)
	}
	return p
}

// lineRank plays one rank's part, with waits in an order of its own.
func lineRank(t *testing.T, n *node, program []lineCall, rnd *rand.Rand) error {
	rank, size := n.ctx.Rank, n.ctx.Members.Len()
	args := func(k int, op collectives.Op, count int, inPlace, started bool) (*CollArgs, running) {
		in, out, want := areaCase(op, k, rank, size, max(count, 0), 0, inPlace)
		x := running{what: fmt.Sprintf("call %d, %v of %d", k, op, count), out: out, want: want}
		a := n.call64(op, in, out, count, 0)
		if started {
			if a.Args.Shared, a.Args.Reads = n.ctx.RingRoom(op)/8, false; op == collectives.OpAllgather {
				a.Args.Shared = 0
			}
			a.Alg = a.Table.Select(&a.Args, 8, false)
		}
		a.Args.InPlace = a.In.Overlaps(a.Out)
		if !a.Args.InPlace && count > 0 && op == collectives.OpAllreduce && rnd.IntN(3) == 0 {
			_, a.In = spread(t, in)
			x.wide, a.Out = spread(t, out)
		}
		return a, x
	}
	type persistent struct {
		a   *CollArgs
		x   running
		own []uint64 // what it starts from
	}
	persists := make([]persistent, linePersists)
	for i := range persists {
		op := collectives.OpAllreduce
		if i%4 == 3 {
			op = collectives.OpBarrier
		}
		p := &persists[i]
		p.a, p.x = args(1000+i, op, (i+1)%4, false, true)
		p.a.Tag = n.ctx.NumberPersistent()
	}
	var open []running
	wait := func(i int) error {
		x := open[i]
		open = append(open[:i], open[i+1:]...)
		return x.check(n)
	}
	for k, c := range program {
		switch c.how {
		case callBlocks:
			a, x := args(k, c.op, c.count, c.inPlace, false)
			if f := n.Collective(n.ctx, a); f != nil {
				return fmt.Errorf("%s: %+v", x.what, f)
			}
		case callStarts:
			a, x := args(k, c.op, c.count, c.inPlace, true)
			x.h = n.Icollective(n.ctx, a)
			open = append(open, x)
		case callPersists:
			for _, i := range c.starts { // of the start before
				for j := 0; j < len(open); j++ {
					if open[j].what == persists[i].x.what {
						if err := wait(j); err != nil {
							return err
						}
						break
					}
				}
			}
			order := rnd.Perm(len(c.starts))
			for _, j := range order {
				p := &persists[c.starts[j]]
				p.x.h = n.Icollective(n.ctx, p.a)
				open = append(open, p.x)
			}
		}
		for len(open) > 30 || len(open) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(open))
			if rnd.IntN(3) == 0 && !n.Test(open[i].h).Done {
				break
			} else if n.Alive(open[i].h) {
				if err := wait(i); err != nil {
					return err
				}
			} else {
				open = append(open[:i], open[i+1:]...)
			}
		}
	}
	for len(open) > 0 {
		if err := wait(rnd.IntN(len(open))); err != nil {
			return err
		}
	}
	return nil
}

func playLine(t *testing.T, ns []*node, seed uint64, calls int) {
	t.Helper()
	program := linePrograms(rand.New(rand.NewPCG(seed, 7)), calls)
	soon(t, "program", func() error {
		var wg sync.WaitGroup
		for rank, n := range ns {
			wg.Go(func() {
				if err := lineRank(t, n, program, rand.New(rand.NewPCG(seed, uint64(rank)))); err != nil {
					t.Errorf("seed %d, rank %d of %d: %v", seed, rank, len(ns), err)
				}
			})
		}
		wg.Wait()
		return nil
	})
	for rank, n := range ns {
		n.mu.Lock()
		if l := n.ctx.queue; l != nil && len(l.calls)+len(l.persistent) > 0 || n.prog.Hooked() {
			t.Errorf("rank %d has left something in its line, or a hook", rank)
		}
		n.mu.Unlock()
	}
}

// Calls that block, that do not, and starts in another order on each rank, with
// many under way.
func TestLine(t *testing.T) {
	for _, size := range []int{2, 3, 5, 17} {
		ns, _ := testJobOf(t, size, nil, nil)
		playLine(t, ns, uint64(size), 200)
		if l := ns[0].ctx.queue; l == nil || !l.open {
			t.Errorf("%d ranks used no ring", size)
		}
	}
}

// The same where not all get the memory, which the first call finds out: it goes by
// messages.
func TestLineWithoutMemory(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, func(i int, c *Config) {
		if i == 2 {
			c.Transports[0] = struct{ transport.Transport }{c.Transports[0]} // and nothing else
		}
	})
	playLine(t, ns, 1, 100)
	for rank, n := range ns {
		if n.ctx.SharedRoom() != 0 || n.ctx.queue != nil && n.ctx.queue.open {
			t.Errorf("rank %d has an area", rank)
		}
	}
}

// What may not live long asks for memory later, for nonblocking calls by their
// number, for persistent ones by that of the calls before their Init.
func TestLineLater(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	for _, n := range ns {
		c, err := n.NewContextIn(n.ctx, 0, wire.ContextID{Creator: proc(1), Serial: 1}, n.ctx.Members, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.ctx = c
	}
	playLine(t, ns, 3, 200)
	for rank, n := range ns {
		if c := n.ctx; c.queue == nil || !c.queue.open || c.ringFrom >= 0 {
			t.Errorf("rank %d: line %v, rings from Init %d", rank, c.queue != nil, c.ringFrom)
		}
	}
}

// Refused calls, before and after the others start theirs, leave the ring in order.
func TestLineAfterRefusal(t *testing.T) {
	ns := areaJob(t, 3, nil)
	for k := range 5 * shmcoll.RingSlots {
		var hs [3]Handle
		if k%2 == 0 {
			ns[2].Refuse(ns[2].ctx, ns[2].started(collectives.OpBarrier, nil, nil))
		}
		for i, n := range ns[:2] {
			hs[i] = n.ibarrier()
		}
		if k%2 != 0 {
			ns[2].Refuse(ns[2].ctx, ns[2].started(collectives.OpBarrier, nil, nil))
		}
		for i, n := range ns[:2] {
			wantClass(t, fmt.Sprint("rank ", i), soon(t, "barrier", func() *fault.Fault { return n.endOf(hs[i]) }), fault.Aborted)
		}
		outs := make([][]uint64, len(ns))
		for i, n := range ns {
			outs[i] = make([]uint64, 1)
			hs[i] = n.Icollective(n.ctx, n.started(collectives.OpAllreduce, []uint64{word64(k, i, 0)}, outs[i]))
		}
		for i, n := range ns {
			if f := soon(t, "allreduce", func() *fault.Fault { return n.endOf(hs[i]) }); f != nil || outs[i][0] != fold(k, 0, 2, 0) {
				t.Fatalf("rank %d, time %d: %x, %+v", i, k, outs[i][0], f)
			}
		}
	}
}

// What ends a collective ends it in a ring, whether the memory is known or not.
func TestLineEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(ns []*node)
		want fault.Class
	}{
		"refused":   {func(ns []*node) { ns[0].Refuse(ns[0].ctx, ns[0].started(collectives.OpBarrier, nil, nil)) }, fault.Aborted},
		"death":     {func(ns []*node) { ns[1].ProcFailed(proc(1), "was killed") }, fault.ProcFailed},
		"left":      {func(ns []*node) { ns[1].ProcGone(ns[0].Self(), "") }, fault.Left},
		"revoked":   {func(ns []*node) { ns[0].Revoke(ns[0].ctx) }, fault.Revoked},
		"finalized": {func(ns []*node) { ns[1].Close(ended()) }, fault.Finalized},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known %v", name, known), func(t *testing.T) {
				ns, _ := testJobOf(t, 2, nil, nil)
				if known {
					warmArea(t, ns)
				}
				done := make(chan *fault.Fault, 1)
				hs := []Handle{ns[1].ibarrier(), ns[1].ibarrier()}
				go func() { done <- ns[1].endOf(hs[0]) }()
				ns[1].asleep(t)
				go end.do(ns)
				wantClass(t, name, soon(t, "barrier", func() *fault.Fault { return <-done }), end.want)
				if name != "refused" {
					wantClass(t, name+", the second", soon(t, "barrier", func() *fault.Fault { return ns[1].endOf(hs[1]) }), end.want)
				}
			})
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ns := areaJob(t, 2, nil)
		ctx, cancel := context.WithCancel(context.Background())
		a := ns[1].started(collectives.OpBarrier, nil, nil)
		a.User = ctx
		h := ns[1].Icollective(ns[1].ctx, a)
		done := make(chan *fault.Fault, 1)
		go func() { done <- ns[1].endOf(h) }()
		ns[1].asleep(t)
		cancel()
		wantClass(t, "cancelled", soon(t, "barrier", func() *fault.Fault { return <-done }), fault.Cancelled)
		wantClass(t, "afterwards", soon(t, "barrier", func() (f *fault.Fault) {
			for range 2 {
				f = ns[0].endOf(ns[0].ibarrier())
			}
			return f
		}), fault.Revoked)
	})
}

// A communicator that is freed serves what is pending, and lets its memory go then.
func TestLineFreed(t *testing.T) {
	for _, known := range []bool{false, true} {
		ns, _ := testJobOf(t, 2, nil, nil)
		if known {
			warmArea(t, ns)
		}
		var hs [2][]Handle
		for i, n := range ns {
			for range 3 * shmcoll.RingSlots {
				hs[i] = append(hs[i], n.ibarrier())
			}
			n.FreeContext(n.ctx)
		}
		for i, n := range ns {
			for k, h := range hs[i] {
				if f := soon(t, "barrier", func() *fault.Fault { return n.endOf(h) }); f != nil {
					t.Fatalf("rank %d, barrier %d: %+v", i, k, f)
				}
			}
			n.mu.Lock()
			if n.ctx.area != nil || n.contexts[n.ctx.ID] != nil {
				t.Errorf("rank %d: freed, and has its area still", i)
			}
			n.mu.Unlock()
		}
	}
}

// Ranks of which one does not block in a call, and the other does, or goes by
// messages, or has another length, do not wait for each other.
func TestLineMismatch(t *testing.T) {
	one := func() []uint64 { return make([]uint64, 1) }
	long := func() []uint64 { return make([]uint64, 10_000) }
	for name, other := range map[string]func(n *node) *fault.Fault{
		"blocks": func(n *node) *fault.Fault {
			return n.Collective(n.ctx, n.call64(collectives.OpBarrier, nil, nil, 0, 0))
		},
		"blocks by messages": func(n *node) *fault.Fault {
			a := n.call64(collectives.OpBcast, nil, long(), 10_000, 1)
			a.Alg = algorithm(collectives.OpBcast, "linear")
			return n.Collective(n.ctx, a)
		},
		"messages": func(n *node) *fault.Fault {
			return n.endOf(n.Icollective(n.ctx, n.started(collectives.OpAllreduce, long(), long())))
		},
		"operations": func(n *node) *fault.Fault {
			return n.endOf(n.Icollective(n.ctx, n.started(collectives.OpAllreduce, one(), one())))
		},
		"persistent": func(n *node) *fault.Fault {
			a := n.started(collectives.OpAllreduce, one(), one())
			a.Tag = n.ctx.NumberPersistent()
			return n.endOf(n.Icollective(n.ctx, a))
		},
	} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reverse %v", name, reverse), func(t *testing.T) {
				ns := areaJob(t, 2, nil)
				calls := []func() *fault.Fault{
					func() *fault.Fault { return ns[0].endOf(ns[0].ibarrier()) },
					func() *fault.Fault { return other(ns[1]) },
				}
				if name == "persistent" {
					calls[0] = func() *fault.Fault {
						a := ns[0].started(collectives.OpAllreduce, long()[:2], long()[:2])
						a.Tag = ns[0].ctx.NumberPersistent()
						return ns[0].endOf(ns[0].Icollective(ns[0].ctx, a))
					}
				}
				first, second := 0, 1
				if reverse {
					first, second = 1, 0
				}
				done := make(chan *fault.Fault, 1)
				go func() { done <- calls[first]() }()
				ns[first].asleep(t)
				fs := []*fault.Fault{soon(t, "the second", calls[second]), soon(t, "the first", func() *fault.Fault { return <-done })}
				told := false
				for _, f := range fs {
					told = told || f.Code() == fault.Mismatch
					if c := f.Code(); c != fault.Mismatch && c != fault.Aborted && c != fault.OK {
						t.Errorf("%+v", f)
					}
				}
				if !told {
					t.Errorf("nobody is told: %+v, %+v", fs[0], fs[1])
				}
			})
		}
	}
}

// A process in which nobody waits is not woken for what the others publish; one that
// could not publish is.
func TestLineWakes(t *testing.T) {
	ns := areaJob(t, 2, nil)
	mark := func(n *node) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.prog.Armed()
	}
	h := ns[1].ibarrier()
	within(t, "sleep", func() bool { return mark(ns[1]) })
	if w := ns[0].ctx.area.Waiting(); w != 0 {
		t.Errorf("%d ranks want to be woken, and none waits", w)
	}
	if f := soon(t, "barrier", func() *fault.Fault { return ns[0].endOf(ns[0].ibarrier()) }); f != nil {
		t.Fatal(f)
	}
	if f := soon(t, "barrier", func() *fault.Fault { return ns[1].endOf(h) }); f != nil {
		t.Fatal(f)
	}
	// More than there are slots, of which rank 0 waits for the last only.
	var hs [2][]Handle
	for i, n := range ns {
		for range 4 * shmcoll.RingSlots {
			hs[i] = append(hs[i], n.ibarrier())
		}
	}
	last := len(hs[0]) - 1
	if f := soon(t, "the last barrier", func() *fault.Fault { return ns[0].endOf(hs[0][last]) }); f != nil {
		t.Fatal(f)
	}
	for i, n := range ns {
		for k, h := range hs[i] {
			if i == 0 && k == last {
				continue
			}
			if f := soon(t, "barrier", func() *fault.Fault { return n.endOf(h) }); f != nil {
				t.Fatal(f)
			}
		}
	}
}
