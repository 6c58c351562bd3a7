// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"
	"time"

	"gompi/internal/base/fault"
)

// waitAny waits for one of hs; index is -1 if the engine names none.
func (n *node) waitAny(hs ...Handle) (index int, o Outcome) {
	index = -1
	n.WaitSome(hs, 1, 1, func(i int, got Outcome) { index, o = i, got })
	return index, o
}

// A wait for several requests ends when the context of any of them does,
// whatever the order.
func TestWaitSomeHasManyContexts(t *testing.T) {
	for _, parked := range []bool{false, true} {
		ns, _ := testJobOf(t, 1, nil, nil)
		n := ns[0]
		contexts := make([]context.CancelFunc, 3)
		var hs []Handle
		for i := range contexts {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			contexts[i] = cancel
			hs = append(hs, n.Irecv(n.ctx, &RecvArgs{Source: 0, Tag: int32(i), User: ctx}))
		}
		if !parked {
			contexts[2]()
		}
		done := make(chan int, 1)
		go func() {
			i, o := n.waitAny(hs...)
			if o.Status.Fault.Code() != fault.Cancelled {
				i = -2
			}
			done <- i
		}()
		if parked {
			n.asleep(t)
			contexts[2]()
		}
		if i := soon(t, "wait", func() int { return <-done }); i != 2 {
			t.Fatalf("request %d was withdrawn, want 2", i)
		}
		// The rest still works.
		if f := n.send(0, 1, nil); f != nil {
			t.Fatal(f)
		}
		if i, o := n.waitAny(hs[0], hs[1]); i != 1 || o.Status.Fault != nil {
			t.Fatalf("request %d: %+v", i, o.Status)
		}
		contexts[0]()
		if o := soon(t, "wait", func() Outcome { return n.Wait(hs[0]) }); o.Status.Fault.Code() != fault.Cancelled {
			t.Fatalf("%+v", o.Status)
		}
	}
}

func TestDuplicateAndForeignHandles(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	h := n.irecv(0, 1, nil)
	if i, o := n.waitAny(h, h); i != 1 || o.Status.Fault.Code() != fault.Request {
		t.Fatalf("waiting twice for one request: index %d, %+v", i, o.Status)
	}
	other := ns[1].irecv(1, 1, nil)
	if i, o := n.waitAny(other); i != 0 || o.Status.Fault.Code() != fault.Request {
		t.Fatalf("waiting for a request of another process: index %d, %+v", i, o.Status)
	}
	// One that another goroutine waits for.
	done := make(chan Outcome, 1)
	go func() { done <- n.Wait(h) }()
	n.asleep(t)
	if i, o := n.waitAny(n.irecv(0, 2, nil), h); i != 1 || o.Status.Fault.Code() != fault.Request {
		t.Fatalf("waiting for a request that is waited for: index %d, %+v", i, o.Status)
	}
	if n.Free(h).Status.Fault == nil {
		t.Fatal("a request that is waited for was freed")
	}
	if f := n.send(0, 1, nil); f != nil {
		t.Fatal(f)
	}
	if o := soon(t, "wait", func() Outcome { return <-done }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	if i, o := n.waitAny(h); i != 0 || o.Status.Fault.Code() != fault.Request {
		t.Fatalf("stale: index %d, %+v", i, o.Status)
	}
}

func TestFreedRequestIsStale(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.Policy.Spin = 100 })
	n := ns[0]
	h := n.irecv(0, 1, nil)
	if n.Free(h).Done || !n.Free(h).Done || !n.Cancel(h).Done {
		t.Fatal("Free is not final")
	}
	for name, f := range map[string]func(Handle) Outcome{"Wait": n.Wait, "Test": n.Test, "Peek": n.Peek} {
		if o := soon(t, name, func() Outcome { return f(h) }); !o.Done || o.Status.Fault.Code() != fault.Request {
			t.Fatalf("%s of a freed request: %+v", name, o)
		}
	}
	if !n.Alive(h) {
		t.Fatal("the operation ended before it was served")
	}
	if f := n.send(0, 1, nil); f != nil {
		t.Fatal(f)
	}
	within(t, "the end of the receive", func() bool { n.iprobe(); return !n.Alive(h) })
}

// iprobe makes progress, and reports whether a message is there.
func (n *node) iprobe() bool {
	var st Status
	_, found, _ := n.Probe(n.ctx, &ProbeArgs{Source: anySource, Tag: anySource}, &st)
	return found
}

// While messages never stop coming a waiting goroutine still sees its context
// end.
func TestContextEndsUnderTraffic(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Policy.Spin = 1 << 20 })
	stop := make(chan struct{})
	defer close(stop)
	// Rank 1 talks to itself without end through the goroutine that waits.
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				h := ns[1].irecv(1, 1, nil)
				ns[1].send(1, 1, nil)
				for !ns[1].Test(h).Done {
				}
			}
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	f := soon(t, "receive", func() *fault.Fault {
		var st Status
		return ns[1].Recv(ns[1].ctx, &RecvArgs{Source: 0, Tag: 7, User: ctx}, &st)
	})
	wantClass(t, "receive", f, fault.Cancelled)
}
