// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
	"gompi/transport/inproc"
)

// near is the control plane of processes of one job, all of which live.
type near struct{ *singleton }

func (near) Contact(p wire.ProcID) (wire.Contact, error) {
	return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
}

// worldOf makes n processes, and gives each its communicator of all.
func worldOf(t *testing.T, n int) []*Comm {
	t.Helper()
	return worldOn(t, n, nil)
}

// worldOn is worldOf where the head says on which hosts they are.
func worldOn(t *testing.T, n int, hosts wire.Hosts) []*Comm {
	t.Helper()
	hub := inproc.NewHub()
	all := wire.NewMembers(wire.Range{First: wire.ProcID{Job: 1, Serial: 1}, Count: n})
	world := make([]*Comm, n)
	for i := range world {
		w := &protocol.Welcome{Self: all.At(i), World: wire.Set{Number: 1, Members: all, Hosts: hosts}, Segment: -1, Bell: -1, LocalProcs: n, UsableCPUs: 2}
		b, err := Open(near{newSingleton(w.World)}, w, Place{Transports: "inproc", Hub: hub})
		if err != nil {
			t.Fatal(err)
		}
		p := new(Process)
		if err := p.Start(&b); err != nil {
			t.Fatal(err)
		}
		p.Listen(b)
		t.Cleanup(func() { p.Kill(nil) })
		world[i] = blank(p, "WORLD")
		a, g, _ := p.InSet(w.World)
		if f := world[i].Register(&a, g, nil); f != nil {
			t.Fatal(f.Err)
		}
	}
	return world
}

func blank(p *Process, name string) *Comm {
	c := new(Comm)
	c.Init(p, &name)
	return c
}

// each calls f for all ranks at the same time.
func each(world []*Comm, f func(c *Comm)) {
	var wg sync.WaitGroup
	for _, c := range world {
		wg.Go(func() { f(c) })
	}
	wg.Wait()
}

func barrier(c *Comm) *fault.Fault {
	a := engine.CollArgs{Op: "Barrier"}
	a.Args, a.Unit = c.args(collectives.OpBarrier), 1
	return c.Run(&a)
}

// made is the communicator that was agreed on, which must work.
func made(t *testing.T, c *Comm, a Agreed, g Groups, f *fault.Fault) *Comm {
	t.Helper()
	d := blank(c.Proc, "made")
	if f == nil {
		f = d.Register(&a, g, nil)
	}
	if f == nil {
		f = barrier(d)
	}
	if f != nil {
		t.Errorf("rank %d: %v: %v", c.Rank, f.Class, f.Err)
		return nil
	}
	return d
}

// wants checks that a call failed.
func wants(t *testing.T, f *fault.Fault, class fault.Class, text string) {
	t.Helper()
	if f.Code() != class || !contains(f, text) {
		t.Errorf("fault is %v: %v; %v: %q expected", f.Code(), f, class, text)
	}
}
