// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/internal/host/wait"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
)

const testJob = wire.JobID(7)

// testWait bounds everything that must happen "at once".
const testWait = 20 * time.Second

// testControl is a control plane that a test plays.
type testControl struct {
	mu      sync.Mutex
	contact func(p wire.ProcID) (wire.Contact, error) // nil: at once
	watch   func(m wire.Members)                      // nil: nobody has ended
	cut     func(p wire.ProcID, why string)           // nil: nobody is told
	ping    func(p wire.ProcID, id uint64)            // nil: nobody answers
	pong    func(p wire.ProcID, id uint64)
	pongs   int
	dead    []wire.ProcID
}

func (c *testControl) Contact(p wire.ProcID) (wire.Contact, error) {
	c.mu.Lock()
	f := c.contact
	c.mu.Unlock()
	if f != nil {
		return f(p)
	}
	return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
}

func (c *testControl) Watch(m wire.Members) error {
	c.mu.Lock()
	f := c.watch
	c.mu.Unlock()
	if f != nil {
		go f(m)
	}
	return nil
}

func (c *testControl) Cut(p wire.ProcID, why string) error {
	c.mu.Lock()
	f := c.cut
	c.mu.Unlock()
	if f != nil {
		go f(p, why)
	}
	return nil
}

func (c *testControl) Ping(p wire.ProcID, id uint64) error {
	c.mu.Lock()
	f := c.ping
	c.mu.Unlock()
	if f != nil {
		go f(p, id)
	}
	return nil
}

func (c *testControl) Pong(p wire.ProcID, id uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pongs++
	go c.pong(p, id)
	return nil
}

// Common is for transports that need it.
func (c *testControl) Common(wire.ContextID, wire.Members, int, int, uint64) (wire.ArenaRange, error) {
	return wire.ArenaRange{}, errTest
}
func (c *testControl) LeaveCommon(wire.ArenaRange) error { return nil }

func (c *testControl) Dead(p wire.ProcID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = append(c.dead, p)
	return nil
}

func (c *testControl) deaths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.dead)
}

// node is one engine of a test job.
type node struct {
	*Engine
	ctl *testControl
	ctx *Context
}

// testJobOf starts n engines over inproc, in one communicator. plan makes the
// transports misbehave; change sees each configuration before the engine does.
func testJobOf(t testing.TB, n int, plan *faulty.Plan, change func(i int, c *Config)) ([]*node, *inproc.Hub) {
	t.Helper()
	hub := inproc.NewHub()
	members := wire.NewMembers(wire.Range{First: wire.ProcID{Job: testJob, Serial: 1}, Count: n})
	nodes := make([]*node, n)
	for i := range nodes {
		s := wait.NewChan()
		var tr transport.Transport
		tr, err := hub.Open(transport.Env{Self: members.At(i), Wake: s.Wake, Segment: -1, Bell: -1})
		if err != nil {
			t.Fatal(err)
		}
		if plan != nil {
			p := *plan
			p.Seed += uint64(i) * 77
			p.Wake = s.Wake
			if tr, err = faulty.New(tr, p); err != nil {
				t.Fatal(err)
			}
		}
		nd := &node{ctl: &testControl{}}
		nd.ctl.cut = func(p wire.ProcID, why string) {
			if k := members.Index(p); k >= 0 && hub.Has(nd.Self()) { // the dead are silent
				nodes[k].ProcCut(nd.Self(), why)
			}
		}
		nd.ctl.ping = func(p wire.ProcID, id uint64) {
			if k := members.Index(p); !hub.Has(nd.Self()) {
				return
			} else if k == i {
				nd.Ponged(p, id)
			} else if k >= 0 && hub.Has(p) {
				nodes[k].Pinged(nd.Self(), id)
			}
		}
		nd.ctl.pong = func(p wire.ProcID, id uint64) { nodes[members.Index(p)].Ponged(nd.Self(), id) }
		cfg := Config{
			Self: members.At(i), Control: nd.ctl, Transports: []transport.Transport{tr}, Sleeper: s, Policy: wait.ForGoroutine(),
		}
		if change != nil {
			change(i, &cfg)
		}
		if nd.Engine, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			nd.hangsTogether(t)
			nd.Close(ended)
		})
		nodes[i] = nd
	}
	id := wire.ContextID{Creator: wire.ProcID{Job: testJob}, Serial: 1}
	for i := range nodes {
		nodes[i].ctx = nodes[i].world(t, id, members)
	}
	return nodes, hub
}

// outlived makes other answer n, also when its transport was killed: its engine runs
// on.
func (n *node) outlived(other *node) {
	n.ctl.mu.Lock()
	defer n.ctl.mu.Unlock()
	n.ctl.ping = func(_ wire.ProcID, id uint64) { other.Pinged(n.Self(), id) }
}

func (n *node) world(t testing.TB, id wire.ContextID, m wire.Members) *Context {
	t.Helper()
	c, err := n.NewContext(id, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (n *node) isend(dest, tag int, b []byte, m Mode) Handle {
	return n.Isend(n.ctx, &SendArgs{Op: "Isend", Buf: buffer.Of(b), Dest: int32(dest), Tag: int32(tag), Mode: m})
}

func (n *node) irecv(source, tag int, b []byte) Handle {
	return n.Irecv(n.ctx, &RecvArgs{Op: "Irecv", Buf: buffer.Of(b), Source: int32(source), Tag: int32(tag)})
}

// send sends and waits.
func (n *node) send(dest, tag int, b []byte) *fault.Fault {
	return n.Send(n.ctx, &SendArgs{Op: "Send", Buf: buffer.Of(b), Dest: int32(dest), Tag: int32(tag)})
}

// recv receives and waits.
func (n *node) recv(source, tag int, b []byte) (Status, *fault.Fault) {
	var st Status
	f := n.Recv(n.ctx, &RecvArgs{Op: "Recv", Buf: buffer.Of(b), Source: int32(source), Tag: int32(tag)}, &st)
	return st, f
}

// asleep waits until a goroutine waits and the service goroutine sleeps for it.
func (n *node) asleep(t testing.TB) {
	t.Helper()
	within(t, "falling asleep", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.prog.Armed() && n.prog.Followed()
	})
}

// within polls until cond, which must come true soon. It does not make
// progress.
func within(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, testWait)
		}
		yield()
	}
}

// yield lets others run for a moment.
func yield() { <-time.After(50 * time.Microsecond) }

// soon returns f's result, which must come soon.
func soon[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	c := make(chan T, 1)
	go func() { c <- f() }()
	select {
	case v := <-c:
		return v
	case <-time.After(testWait):
		t.Fatalf("%s hangs", what)
		panic("not reached")
	}
}

func wantClass(t testing.TB, what string, f *fault.Fault, want fault.Class) {
	t.Helper()
	if f.Code() != want {
		t.Fatalf("%s: class %d, want %d (%+v)", what, f.Code(), want, f)
	}
}

var errTest = errors.New("test")

func proc(serial int) wire.ProcID { return wire.ProcID{Job: testJob, Serial: uint32(serial)} }

func pattern(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + seed)
	}
	return b
}

func checkPattern(b []byte, seed int) error {
	for i := range b {
		if b[i] != byte(i*7+seed) {
			return fmt.Errorf("byte %d of %d is %d, want %d", i, len(b), b[i], byte(i*7+seed))
		}
	}
	return nil
}

const anySource = match.Any
