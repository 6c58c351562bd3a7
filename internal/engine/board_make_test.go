// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"gompi/collectives"
	"gompi/internal/fault"
	"gompi/internal/wire"
)

// asking is a job of three ranks that make a Bcast after which they would have a
// board. The control plane keeps rank 1 waiting, which has been told where the
// memory is.
type asking struct {
	ns   []*node
	done chan *fault.Fault // of each rank that has called
	goOn chan struct{}
	stop [3]context.CancelFunc
}

func newAsking(t *testing.T, callers int) *asking {
	ns, _ := testJobOf(t, 3, nil, nil)
	for range boardAfter {
		everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) })
	}
	x := &asking{ns: ns, done: make(chan *fault.Fault, callers), goOn: make(chan struct{})}
	asked := make(chan struct{}, len(ns))
	ns[1].ctl.mu.Lock()
	ns[1].ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		asked <- struct{}{}
		<-x.goOn
		return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
	}
	ns[1].ctl.mu.Unlock()
	for i := range callers {
		var user context.Context
		user, x.stop[i] = context.WithCancel(context.Background())
		t.Cleanup(x.stop[i])
		go func() {
			a := ns[i].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0)
			a.User = user
			x.done <- ns[i].Collective(ns[i].ctx, a)
		}()
	}
	<-asked
	return x
}

func (x *asking) kept() int {
	x.ns[0].mu.Lock()
	defer x.ns[0].mu.Unlock()
	return len(x.ns[0].retired)
}

// Whatever happens while a rank joins the memory, nobody waits for a board that
// will not be: the call succeeds, and the memory is kept until that rank will
// not touch it any more.
func TestBoardMakingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		callers int
		do      func(x *asking)
		usable  bool // the communicator afterwards
	}{
		"refused": {2, func(x *asking) {
			x.ns[2].Refuse(x.ns[2].ctx, x.ns[2].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0))
		}, true},
		"context of the one that asks": {3, func(x *asking) { x.stop[1]() }, true},
		"context of another":           {3, func(x *asking) { x.stop[0]() }, true},
		"revoked":                      {2, func(x *asking) { x.ns[2].Revoke(x.ns[2].ctx) }, false},
		"a failed collective": {3, func(x *asking) {
			x.ns[1].mu.Lock()
			x.ns[1].noBoard(x.ns[1].ctx)
			x.ns[1].mu.Unlock()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newAsking(t, c.callers)
			c.do(x)
			for range c.callers {
				if f := soon(t, "the call", func() *fault.Fault { return <-x.done }); f != nil {
					t.Fatalf("%+v", f)
				}
			}
			within(t, "giving the memory back", func() bool { return x.kept() == 0 })
			close(x.goOn) // too late
			if c.usable {
				withoutBoard(t, x.ns, 3)
			}
		})
	}
}

// What rank 0 has given up is not used for anything else while a rank that has
// not heard of that may write there.
func TestBoardMemoryIsKept(t *testing.T) {
	x := newAsking(t, 2)
	x.ns[1].mu.Lock() // it hears of nothing
	x.ns[2].Refuse(x.ns[2].ctx, x.ns[2].call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0))
	if f := soon(t, "rank 0", func() *fault.Fault { return <-x.done }); f != nil {
		t.Fatalf("rank 0: %+v", f)
	}
	n := x.kept()
	x.ns[1].mu.Unlock()
	if n != 1 {
		t.Errorf("rank 0 keeps %d boards", n)
	}
	if f := soon(t, "rank 1", func() *fault.Fault { return <-x.done }); f != nil {
		t.Fatalf("rank 1: %+v", f)
	}
	within(t, "giving the memory back", func() bool { return x.kept() == 0 })
}

// A communicator that is freed while its board is made lives until the call in
// which that happens has ended.
func TestFreeWhileBoardIsMade(t *testing.T) {
	x := newAsking(t, 3)
	x.ns[1].FreeContext(x.ns[1].ctx)
	close(x.goOn)
	for range x.ns {
		if f := soon(t, "the call", func() *fault.Fault { return <-x.done }); f != nil {
			t.Fatalf("%+v", f)
		}
	}
	x.ns[1].gone(t)
}

// A context that ends in the last exchange of the making, in which others may
// have come to have the board, ends the communicator.
func TestBoardMakingCannotEnd(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	for range boardAfter {
		everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) })
	}
	asked, goOn := make(chan struct{}), make(chan struct{})
	ns[1].ctl.mu.Lock()
	ns[1].ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		if p == proc(3) { // it has joined
			close(asked)
			<-goOn
		}
		return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
	}
	ns[1].ctl.mu.Unlock()
	user, stop := context.WithCancel(context.Background())
	defer stop()
	var done [3]chan *fault.Fault
	for i, n := range ns {
		done[i] = make(chan *fault.Fault, 1)
		go func() {
			a := n.call64(collectives.OpBarrier, nil, nil, 0, 0)
			if i == 0 {
				a.User = user
			}
			done[i] <- n.Collective(n.ctx, a)
		}()
	}
	<-asked
	within(t, "the last exchange", func() bool {
		ns[0].mu.Lock()
		defer ns[0].mu.Unlock()
		return ns[0].ctx.boardState == boardLast
	})
	stop()
	wantClass(t, "rank 0", soon(t, "rank 0", func() *fault.Fault { return <-done[0] }), fault.Cancelled)
	for i := range 2 {
		if f := soon(t, "the call", func() *fault.Fault { return <-done[1+i] }); f != nil {
			t.Fatalf("rank %d: %+v", 1+i, f)
		}
		if !ns[1+i].ctx.Revoked() {
			t.Errorf("rank %d does not know that the communicator is revoked", 1+i)
		}
	}
	close(goOn)
}
