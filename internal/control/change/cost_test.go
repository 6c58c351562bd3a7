// SPDX-License-Identifier: Apache-2.0

package change

import (
	"testing"
	"time"

	"gompi/internal/base/wire"
)

// crowd is an owner of one set of many, which counts how often the book looks at a
// member.
type crowd struct {
	Owner
	members []wire.ProcID
	sets    map[uint32][]wire.ProcID
	looks   int
}

func newCrowd(n int) (*crowd, *Book) {
	c := &crowd{sets: map[uint32][]wire.ProcID{}}
	for i := range n {
		c.members = append(c.members, wire.ProcID{Job: 1, Serial: uint32(i + 1)})
	}
	c.sets[1] = c.members
	return c, New(c, time.Minute)
}

func (c *crowd) Members(set uint32) ([]wire.ProcID, bool) {
	m, ok := c.sets[set]
	c.looks += len(m)
	return m, ok
}

func (c *crowd) Lives(wire.ProcID) bool { c.looks++; return true }
func (c *crowd) Main() uint32           { return 1 }
func (c *crowd) Most() int              { return 1 << 30 }
func (c *crowd) Room() int              { return 1 << 30 }
func (c *crowd) Successor(uint32) uint32 {
	return 0
}
func (c *crowd) Tells([]uint32, []wire.ProcID, []wire.ProcID, int, bool) error {
	return nil
}
func (c *crowd) Fits(uint32, int) error { return nil }
func (c *crowd) Stays(uint32) bool      { return false }
func (c *crowd) Hold(uint32)            {}
func (c *crowd) Terms([]uint32) Terms   { return Terms{} }
func (c *crowd) Define(m []wire.ProcID) uint32 {
	n := uint32(len(c.sets) + 1)
	c.sets[n] = m
	return n
}

// latecomers have all members but the first watch a set of which a change is ready.
func (c *crowd) latecomers(b *Book) {
	b.Watch(1, c.members[0], false)
	if _, err := b.Submit(0, Request{Kind: Shrink, In: []uint32{1}, Leave: 1}); err != nil {
		panic(err)
	}
	for _, p := range c.members[1:] {
		b.Watch(1, p, false)
	}
}

// half is a request that the second half of the members leave, by name.
func (c *crowd) half() Request {
	n := len(c.members)
	r := Request{Kind: Shrink, In: []uint32{1}}
	for i := range n / 2 {
		r.Out = append(r.Out, c.members[n-1-i])
	}
	return r
}

// What each member does of one change takes no longer than the number of members says:
// all steps of one kind together look at each a few times.
func TestStepsAreLinear(t *testing.T) {
	const n, most = 500, 16 * 500
	for what, f := range map[string]func(*crowd, *Book) uint32{
		"all watch while a change is ready": func(c *crowd, b *Book) uint32 { c.latecomers(b); return 1 },
		"half are removed by name": func(c *crowd, b *Book) uint32 {
			for _, p := range c.members {
				b.Watch(1, p, false)
			}
			c.looks = 0
			op, err := b.Submit(0, c.half())
			if err != nil {
				t.Fatal(err)
			}
			return op
		},
		"all are asked whether a change concerns them": func(c *crowd, b *Book) uint32 {
			c.latecomers(b)
			for _, p := range c.members {
				if b.Concerns(p) == 0 {
					t.Fatalf("%v has no part in it", p)
				}
			}
			return 1
		},
		"all leave": func(c *crowd, b *Book) uint32 {
			c.latecomers(b)
			for _, p := range c.members {
				b.Left(0, p)
			}
			return 1
		},
	} {
		t.Run(what, func(t *testing.T) {
			c, b := newCrowd(n)
			op := f(c, b)
			if c.looks > most {
				t.Errorf("%d members were looked at, of %d", c.looks, n)
			}
			fixed := false
			b.Flush(func(e *Effect) { fixed = fixed || e.Do == Agree && e.Op == op })
			if !fixed {
				t.Error("the change is not handed out")
			}
		})
	}
}

// What no step of a job of 8,000 may take longer than, at 0.1 s.
func BenchmarkManyMembers(b *testing.B) {
	const n = 8000
	for name, f := range map[string]func(*crowd, *Book){
		"watch": func(c *crowd, k *Book) { c.latecomers(k) },
		"shrink": func(c *crowd, k *Book) {
			if _, err := k.Submit(0, c.half()); err != nil {
				b.Fatal(err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c, k := newCrowd(n)
				if name == "shrink" {
					for _, p := range c.members {
						k.Watch(1, p, false)
					}
				}
				b.StartTimer()
				f(c, k)
			}
		})
	}
}
