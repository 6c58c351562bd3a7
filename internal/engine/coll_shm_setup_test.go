// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/inproc"
)

// handed is a transport whose common memory comes from the control plane.
type handed struct {
	*inproc.Transport
	held *atomic.Int32 // pieces of memory that are in use
}

func (h handed) Preallocated() bool { return true }

func (h handed) Attach(k transport.SharedKey, n int, x wire.ArenaRange) ([]byte, error) {
	h.held.Add(1)
	return h.Transport.Attach(k, n, x)
}

func (h handed) Leave(mem []byte) {
	h.held.Add(-1)
	h.Transport.Leave(mem)
}

// joining is a job whose control plane keeps rank 1 waiting for its memory, and
// then gives it, or says why not.
type joining struct {
	ns    []*node
	held  atomic.Int32 // pieces of memory that are in use
	given atomic.Int32 // and for which the control plane knows of users
	asked chan struct{}
	goOn  chan error
	done  chan *fault.Fault // of each rank that has called
	stop  [3]context.CancelFunc
}

// common is what a process of joining is asked for.
type commonControl struct {
	*testControl
	wait  func() error
	given *atomic.Int32
}

func (c commonControl) Common(wire.ContextID, wire.Members, int, int, uint64) (wire.ArenaRange, error) {
	err := c.wait()
	if err == nil {
		c.given.Add(1)
	}
	return wire.ArenaRange{Arena: 2, Off: 4096, File: -1}, err
}

func (c commonControl) LeaveCommon(x wire.ArenaRange) error {
	if x.Arena == 2 && x.Off == 4096 {
		c.given.Add(-1)
	}
	return nil
}

// newLending is a joining without a call, whose memory is lent.
func newLending(t *testing.T) *joining {
	x := idleJoining(t)
	for _, n := range x.ns {
		n.Lend(n.ctx)
	}
	return x
}

func idleJoining(t *testing.T) *joining {
	x := &joining{asked: make(chan struct{}, 1), goOn: make(chan error, 3), done: make(chan *fault.Fault, 3)}
	x.ns, _ = testJobOf(t, 3, nil, func(i int, c *Config) {
		c.Transports[0] = handed{c.Transports[0].(*inproc.Transport), &x.held}
		c.Control = commonControl{c.Control.(*testControl), func() error {
			if i != 1 {
				return nil
			}
			x.asked <- struct{}{}
			return <-x.goOn
		}, &x.given}
	})
	return x
}

func newJoining(t *testing.T, callers int) *joining {
	x := idleJoining(t)
	for i := range callers {
		var user context.Context
		user, x.stop[i] = context.WithCancel(context.Background())
		t.Cleanup(x.stop[i])
		go func() {
			a := x.ns[i].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0)
			a.User = user
			x.done <- x.ns[i].Collective(x.ns[i].ctx, a)
		}()
	}
	<-x.asked
	return x
}

func (x *joining) faults(t *testing.T, callers int) (classes []fault.Class) {
	for range callers {
		classes = append(classes, soon(t, "the call", func() *fault.Fault { return <-x.done }).Code())
	}
	slices.Sort(classes)
	return classes
}

// The first call has the area.
func TestAreaFromFirstCall(t *testing.T) {
	for _, size := range []int{2, 5, 70} {
		ns, _ := testJobOf(t, size, nil, nil)
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil || ns[r].ctx.area == nil {
				t.Fatalf("rank %d of %d: area %v, %+v", r, size, ns[r].ctx.area != nil, f)
			}
		}
	}
}

// A communicator that may not live long asks for memory in a later call, all ranks
// in the same one, also if some of them sleep in the calls before.
func TestAreaLater(t *testing.T) {
	ns, _ := testJobOf(t, 5, nil, nil)
	for _, n := range ns {
		c, err := n.NewContextIn(n.ctx, 0, wire.ContextID{Creator: proc(1), Serial: 1}, n.ctx.Members, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.ctx = c
	}
	for call := range int32(lateShare + 2) {
		fs := everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) })
		for r, f := range fs {
			if f != nil {
				t.Fatalf("call %d, rank %d: %+v", call, r, f)
			}
			ns[r].Lock()
			if made, asked := ns[r].ctx.area != nil, ns[r].ctx.areaState != areaUndecided; made != (call >= lateShare) || asked != made {
				t.Errorf("call %d, rank %d: area %v, asked %v", call, r, made, asked)
			}
			ns[r].Unlock()
		}
	}
}

// A call that another rank gives up after the decision, before the goroutine that
// waited for it goes on, does not begin.
func TestGivenUpAfterDecision(t *testing.T) {
	x := newJoining(t, 2)
	n := x.ns[1]
	n.mu.Lock()
	n.absent(n.ctx)
	n.prog.Step()
	if r := n.ctx.blocking; r == nil || !r.done {
		t.Errorf("nothing is decided")
	}
	n.giveUp(n.ctx, n.ctx.tag, &fault.Fault{Class: fault.Aborted})
	n.mu.Unlock()
	if got := x.faults(t, 2); !slices.Equal(got, []fault.Class{fault.OK, fault.Aborted}) {
		t.Errorf("classes %v", got)
	}
	x.goOn <- nil
}

// Whatever happens while a rank waits for the memory, nobody waits for ever.
func TestAreaJoiningEnds(t *testing.T) {
	for name, c := range map[string]struct {
		callers int
		do      func(x *joining)
		want    []fault.Class
	}{
		"no memory": {3, func(x *joining) { x.goOn <- errTest }, []fault.Class{fault.OK, fault.OK, fault.OK}},
		"refused": {2, func(x *joining) {
			x.ns[2].Refuse(x.ns[2].ctx, x.ns[2].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0))
		}, []fault.Class{fault.Aborted, fault.Aborted}},
		"context of the one that waits": {3, func(x *joining) { x.stop[1]() }, []fault.Class{fault.Revoked, fault.Revoked, fault.Cancelled}},
		"context of another":            {3, func(x *joining) { x.stop[0]() }, []fault.Class{fault.Revoked, fault.Revoked, fault.Cancelled}},
		"revoked":                       {2, func(x *joining) { x.ns[2].Revoke(x.ns[2].ctx) }, []fault.Class{fault.Revoked, fault.Revoked}},
		"death": {2, func(x *joining) {
			x.ns[0].ProcFailed(proc(3), "was killed")
			x.ns[1].ProcFailed(proc(3), "was killed")
		}, []fault.Class{fault.ProcFailed, fault.ProcFailed}},
		"one has left": {2, func(x *joining) {
			x.ns[2].Close(ended())
			x.ns[0].ProcGone(proc(3), "")
			x.ns[1].ProcGone(proc(3), "")
			x.goOn <- nil
		}, []fault.Class{fault.OK, fault.Left}}, // the root has sent
	} {
		t.Run(name, func(t *testing.T) {
			x := newJoining(t, c.callers)
			c.do(x)
			got := x.faults(t, c.callers)
			if name == "one has left" { // and needs what nobody will take
				if slices.ContainsFunc(got, func(k fault.Class) bool { return k != fault.OK && k != fault.Left }) {
					t.Fatalf("classes %v", got)
				}
			} else if !slices.Equal(got, c.want) {
				t.Fatalf("classes %v, want %v", got, c.want)
			}
			select {
			case x.goOn <- nil: // too late
			default:
			}
			if name == "no memory" {
				withoutArea(t, x.ns, 3)
			}
		})
	}
}

// A call that was refused decides nothing: the next one has the area.
func TestAreaAfterRefusedFirst(t *testing.T) {
	x := newJoining(t, 2)
	x.ns[2].Refuse(x.ns[2].ctx, x.ns[2].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0))
	x.faults(t, 2)
	x.goOn <- nil
	warmArea(t, x.ns)
}

// The memory is left with its communicator, decided or not.
func TestAreasAreFreed(t *testing.T) {
	x := newJoining(t, 3)
	x.goOn <- nil
	x.faults(t, 3)
	for i := range 5 {
		x.goOn <- nil
		for _, n := range x.ns {
			n.FreeContext(n.ctx)
			n.ctx = n.world(t, wire.ContextID{Creator: proc(1), Serial: uint32(i + 1)}, wire.NewMembers(wire.Range{First: proc(1), Count: 3}))
		}
		warmArea(t, x.ns)
		<-x.asked
	}
	for _, n := range x.ns {
		n.FreeContext(n.ctx)
	}
	if n, g := x.held.Load(), x.given.Load(); n != 0 || g != 0 {
		t.Errorf("%d pieces are held, %d given", n, g)
	}
}

// A communicator that is freed while a rank waits for its memory lives until the
// call has ended.
func TestFreeWhileAreaIsJoined(t *testing.T) {
	x := newJoining(t, 3)
	x.ns[1].FreeContext(x.ns[1].ctx)
	x.goOn <- nil
	if got := x.faults(t, 3); !slices.Equal(got, []fault.Class{fault.OK, fault.OK, fault.OK}) {
		t.Fatalf("classes %v", got)
	}
	x.ns[1].gone(t)
}

// Where one cannot read the others' memory, nobody does.
func TestNobodyReads(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, func(i int, c *Config) {
		if i == 1 {
			c.Transports[0] = blind{c.Transports[0].(*inproc.Transport)}
		}
	})
	const count = 10_000
	var wg sync.WaitGroup
	for i, n := range ns {
		wg.Go(func() {
			in, out, want := areaCase(collectives.OpAllreduce, 1, i, 3, count, 0, false)
			a := n.call64(collectives.OpAllreduce, in, out, count, 0)
			if !a.Alg.Reads {
				t.Error("it does not count on reading")
			}
			if f := n.Collective(n.ctx, a); f != nil || n.ctx.Reads() || out[7] != want(7) {
				t.Errorf("rank %d: %+v, reads %v", i, f, n.ctx.Reads())
			}
		})
	}
	soon(t, "Allreduce", func() error { wg.Wait(); return nil })
}

// blind reaches nobody's memory.
type blind struct{ *inproc.Transport }

func (blind) Reach(wire.Contact, uint64, uint64) (transport.Memory, error) {
	return nil, errors.New("blind")
}

// Too many votes of others make no rank read what it has not reached.
func TestReadsHostile(t *testing.T) {
	ns := areaJob(t, 2, nil)
	liar, n := ns[1], ns[0]
	liar.mu.Lock()
	for range ns {
		liar.ctx.area.VoteReads(true)
	}
	liar.mu.Unlock()
	n.mu.Lock()
	early := n.readsDecided(n.ctx) && n.ctx.area.regions.memories == nil
	n.mu.Unlock()
	if early {
		t.Fatal("it would read from memory that it does not have")
	}
	const count = 1 << 16
	for r, f := range everywhere(t, ns, func(i int) *CollArgs {
		return ns[i].call64(collectives.OpAllgather, make([]uint64, count), make([]uint64, 2*count), count, 0)
	}) {
		if f != nil {
			t.Errorf("rank %d: %+v", r, f)
		}
	}
}
