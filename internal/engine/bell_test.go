// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"sync/atomic"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/inproc"
)

// named is an inproc transport whose bells have names, false ones if it lies.
type named struct {
	*inproc.Transport
	self  wire.ProcID
	lies  bool
	found *atomic.Int32
}

func (n *named) BellName() [2]uint64 {
	if n.lies {
		return [2]uint64{1 << 40, 1}
	}
	return [2]uint64{uint64(n.self.Serial), 1}
}

func (n *named) NamedBell(p wire.ProcID, name [2]uint64) (transport.Bell, error) {
	if name != [2]uint64{uint64(p.Serial), 1} {
		return nil, errors.New("no bell")
	}
	n.found.Add(1)
	return n.Bell(wire.Contact{Proc: p, Segment: -1, Bell: -1})
}

// A rank that sleeps over an area is woken by the bell that it has named there, without a
// request for its contact. If the name leads to no bell, the contact has one.
func TestNamedBells(t *testing.T) {
	for _, lies := range []bool{false, true} {
		var found, contacts atomic.Int32
		ns := areaJob(t, 3, func(i int, c *Config) {
			c.Transports[0] = &named{c.Transports[0].(*inproc.Transport), c.Self, lies, &found}
			c.Control.(*testControl).contact = func(p wire.ProcID) (wire.Contact, error) {
				contacts.Add(1)
				return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
			}
		})
		for late := range ns {
			done := make(chan *fault.Fault, len(ns))
			call := func(i int) { done <- ns[i].Collective(ns[i].ctx, ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)) }
			for i := range ns {
				if i != late {
					go call(i)
				}
			}
			for i := range ns {
				if i != late {
					ns[i].asleep(t)
				}
			}
			go call(late)
			for range ns {
				if f := soon(t, "barrier", func() *fault.Fault { return <-done }); f != nil {
					t.Fatal(f)
				}
			}
		}
		if asked := contacts.Load() > 0; asked != lies || found.Load() > 0 == lies {
			t.Errorf("lies %t: %d bells by name, %d contacts", lies, found.Load(), contacts.Load())
		}
	}
}
