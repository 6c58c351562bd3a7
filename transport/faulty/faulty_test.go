// SPDX-License-Identifier: Apache-2.0

package faulty_test

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

// fabric is inproc under a plan.
type fabric struct {
	transporttest.Envs
	hub  *inproc.Hub
	plan faulty.Plan
}

func (f *fabric) Open(t *testing.T, proc wire.ProcID) transport.Transport {
	t.Helper()
	env := f.Env(proc)
	below, err := f.hub.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	p := f.plan
	p.Seed += uint64(proc.Serial)
	p.Wake = env.Wake
	tr, err := faulty.New(below, p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (f *fabric) Contact(of, _ wire.ProcID) wire.Contact {
	return wire.Contact{Proc: of, Segment: -1, Bell: -1}
}

func (f *fabric) Kill(_ *testing.T, proc wire.ProcID) { f.hub.Kill(proc) }

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		plan faulty.Plan
	}{
		{"Nothing", faulty.Plan{}},
		{"Delay", faulty.Plan{Delay: 0.3, DelayPolls: 20}},
		{"Full", faulty.Plan{Full: 0.5}},
		{"FewEvents", faulty.Plan{MaxEvents: 2}},
		{"All", faulty.Plan{Seed: 7, Delay: 0.2, Full: 0.2, MaxEvents: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := transporttest.Options{Rounds: 20, MaxBulkBytes: 4 << 20}
			if c.plan.Full > 0 {
				o.Skip = map[string]string{
					"NoAllocations": "a send refused at random cannot be counted",
					"WakeWritable":  "a sender refused at random waits awake for the Poll that ends it",
				}
			}
			transporttest.RunWith(t, o, func(*testing.T) transporttest.Fabric {
				return &fabric{hub: inproc.NewHub(), plan: c.plan}
			})
		})
	}
}
