// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/internal/host/wait"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
)

const testJob = wire.JobID(7)

// testControl is a control plane that knows everybody.
type testControl struct{}

func (testControl) Contact(p wire.ProcID) (wire.Contact, error) {
	return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
}
func (testControl) Watch(wire.Members) error { return nil }
func (testControl) Dead(wire.ProcID) error   { return nil }

func (testControl) Cut(wire.ProcID, string) error  { return nil }
func (testControl) Ping(wire.ProcID, uint64) error { return nil }
func (testControl) Pong(wire.ProcID, uint64) error { return nil }

func (testControl) Common(wire.ContextID, wire.Members, int, int, uint64) (wire.ArenaRange, error) {
	return wire.ArenaRange{}, errors.ErrUnsupported
}
func (testControl) LeaveCommon(wire.ArenaRange) error { return nil }

// testHead is one that passes on who cannot be reached.
type testHead struct {
	testControl
	self   wire.ProcID
	spaces []*Space // by serial - 1
}

func (h testHead) Cut(p wire.ProcID, why string) error {
	if i := int(p.Serial) - 1; i < len(h.spaces) {
		go h.spaces[i].e.ProcCut(h.self, why)
	}
	return nil
}

// firstNobody is the serial from which on no process ever was.
const firstNobody = 1000

func (h testHead) Watch(m wire.Members) error {
	for _, p := range m.All() {
		if p.Serial >= firstNobody {
			go h.spaces[h.self.Serial-1].e.ProcNone(p)
		}
	}
	return nil
}

// distant makes the memory of processes one that can only be copied.
type distant struct{ *inproc.Transport }

func (d distant) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	m, err := d.Transport.Reach(c, key, value)
	if err != nil {
		return nil, err
	}
	return struct{ transport.Memory }{m}, nil
}

// testJobOf starts n processes that can use each other's memory.
func testJobOf(t testing.TB, n int) []*Space {
	t.Helper()
	hub := inproc.NewHub()
	spaces := make([]*Space, n)
	for i := range spaces {
		self := wire.ProcID{Job: testJob, Serial: uint32(i + 1)}
		spaces[i] = testProcessOf(t, hub, self, testHead{self: self, spaces: spaces})
	}
	return spaces
}

// testProcess starts one process.
func testProcess(t testing.TB, hub *inproc.Hub, self wire.ProcID) *Space {
	t.Helper()
	return testProcessOf(t, hub, self, testControl{})
}

func testProcessOf(t testing.TB, hub *inproc.Hub, self wire.ProcID, ctl engine.Control) *Space {
	t.Helper()
	return testProcessOver(t, hub, self, ctl, func(tr *inproc.Transport, _ func()) transport.Transport { return distant{tr} })
}

// testDevices starts two processes with devices beside their transports.
func testDevices(t testing.TB, p faulty.DevicePlan) []*Space {
	t.Helper()
	hub, x := inproc.NewHub(), faulty.NewDevices(p)
	spaces := make([]*Space, 2)
	for i := range spaces {
		self := wire.ProcID{Job: testJob, Serial: uint32(i + 1)}
		spaces[i] = testProcessOver(t, hub, self, testHead{self: self, spaces: spaces}, func(tr *inproc.Transport, wake func()) transport.Transport {
			return x.Wrap(tr, self, wake)
		})
	}
	return spaces
}

// testProcessOver starts a process whose transport is what over makes of that
// of the hub.
func testProcessOver(t testing.TB, hub *inproc.Hub, self wire.ProcID, ctl engine.Control, over func(*inproc.Transport, func()) transport.Transport) *Space {
	t.Helper()
	sl := wait.NewChan()
	tr, err := hub.Open(transport.Env{Self: self, Wake: sl.Wake, Segment: -1, Bell: -1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Self: self, Control: ctl, Transports: []transport.Transport{over(tr, sl.Wake)}, Sleeper: sl, Policy: wait.ForGoroutine(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		e.Close(ended)
	})
	return Of(e)
}

// access is a region and a target of it.
type access struct {
	name   string
	region *Region
	target *Target
}

// The paths that a target may have.
func isMapped(t *Target) path { return mapped{t} }
func isCopied(t *Target) path { return copied{t} }
func isServed(t *Target) path { return served{t} }
func isPosted(t *Target) path {
	if p, ok := t.path.(*posted); ok {
		return p
	}
	return nil
}

// eachAccess makes a region of n bytes and a target of it for each path and
// domain.
func eachAccess(t testing.TB, n int64, f func(a access)) {
	t.Helper()
	for _, c := range []struct {
		name     string
		heap     bool // or allocated
		own      bool
		only     bool // served
		path     func(*Target) path
		isDomain domain
	}{
		{"mapped", false, false, false, isMapped, domainCPU},
		{"own", false, true, false, isMapped, domainCPU},
		{"own heap", true, true, false, isMapped, domainGuard},
		{"copied", true, false, false, isCopied, domainGuard},
		{"served", false, false, true, isServed, domainCPU},
		{"served heap", true, false, true, isServed, domainGuard},
		{"posted", false, false, false, isPosted, domainCPU},
	} {
		var ss []*Space
		if c.name == "posted" {
			ss = testDevices(t, faulty.DevicePlan{Full: 0.2})
		} else {
			ss = testJobOf(t, 2)
		}
		var r *Region
		var err error
		if c.heap {
			r, err = ss[1].Expose(make([]byte, n), 2)
		} else {
			r, err = ss[1].Allocate(n, 2)
		}
		if err != nil {
			t.Fatal(err)
		}
		from := ss[0]
		if c.own {
			from = ss[1]
		}
		from.onlyServed = c.only
		d := r.Desc()
		target, fault := from.Reach(ss[1].self, &d)
		if fault != nil {
			t.Fatal(fault)
		}
		if n > 0 && (target.path != c.path(target) || target.domain != c.isDomain) {
			t.Fatalf("%s: path %T, domain %d", c.name, target.path, target.domain)
		}
		f(access{c.name, r, target})
		target.Close()
		r.Close()
	}
}

// ownTarget is a target of n bytes of its own process.
func ownTarget(t testing.TB, n int64) *Target {
	t.Helper()
	s := testJobOf(t, 1)[0]
	r, err := s.Allocate(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	d := r.Desc()
	target, f := s.Reach(s.self, &d)
	ok(t, f)
	return target
}
