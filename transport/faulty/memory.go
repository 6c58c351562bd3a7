// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// dice is a source of random decisions for any goroutine.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

// chance returns true with probability p.
func (d *dice) chance(p float64) bool {
	if p <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.Float64() < p
}

// below returns a random number from 0 to n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

// errInjected is the error of an access that the plan makes fail.
var errInjected = errors.New("faulty: injected failure")

// errRefused returns an error with the probability that the plan has for refusals, or nil.
func (t *wrapper) errRefused(what string) error {
	if !t.dice.chance(t.plan.Refuse) {
		return nil
	}
	t.plan.Counters.Refused.Add(1)
	return fmt.Errorf("%w: %s", transport.ErrUnavailable, what)
}

// sharer wraps the transport.Sharer below.
type sharer struct {
	below transport.Sharer
	t     *wrapper
}

// Share implements transport.Sharer.
func (s sharer) Share(n int) (mem []byte, place uint64, err error) {
	if err := s.t.errRefused("no memory to share"); err != nil {
		return nil, 0, err
	}
	if mem, place, err = s.below.Share(n); err == nil {
		s.t.plan.Counters.Shared.Add(1)
	}
	return mem, place, err
}

// Unshare implements transport.Sharer.
func (s sharer) Unshare(mem []byte, place uint64) { s.below.Unshare(mem, place) }

// Join implements transport.Sharer. The contact's descriptors always go to the transport below:
// memory that is then refused is left again.
func (s sharer) Join(c wire.Contact, place uint64, n int) (mem []byte, err error) {
	if mem, err = s.below.Join(c, place, n); err != nil {
		return nil, err
	}
	if err := s.t.errRefused("shared memory cannot be mapped"); err != nil {
		s.below.Leave(mem)
		return nil, err
	}
	s.t.plan.Counters.Joined.Add(1)
	return mem, nil
}

// Attach implements transport.Sharer.
func (s sharer) Attach(k transport.SharedKey, n int, x wire.ArenaRange) (mem []byte, err error) {
	if mem, err = s.below.Attach(k, n, x); err != nil {
		return nil, err
	}
	if err := s.t.errRefused("common memory cannot be mapped"); err != nil {
		s.below.Leave(mem)
		return nil, err
	}
	s.t.plan.Counters.Joined.Add(1)
	return mem, nil
}

// Preallocated implements transport.Sharer.
func (s sharer) Preallocated() bool { return s.below.Preallocated() }

// HeldArenas implements transport.Sharer.
func (s sharer) HeldArenas() uint64 { return s.below.HeldArenas() }

// Populate implements transport.Sharer.
func (s sharer) Populate(mem []byte) error {
	if err := s.t.errRefused("common memory gets no pages"); err != nil {
		return err
	}
	return s.below.Populate(mem)
}

// Bell implements transport.Sharer.
func (s sharer) Bell(c wire.Contact) (transport.Bell, error) { return s.below.Bell(c) }

// BellName implements transport.Sharer.
func (s sharer) BellName() [2]uint64 { return s.below.BellName() }

// NamedBell implements transport.Sharer.
func (s sharer) NamedBell(p wire.ProcID, name [2]uint64) (transport.Bell, error) {
	if err := s.t.errRefused("no bell by its name"); err != nil {
		return nil, err
	}
	return s.below.NamedBell(p, name)
}

// Leave implements transport.Sharer.
func (s sharer) Leave(mem []byte) { s.below.Leave(mem) }

// singleCopy wraps the transport.SingleCopy below.
type singleCopy struct {
	below transport.SingleCopy
	t     *wrapper
}

// Register implements transport.SingleCopy.
func (x singleCopy) Register(buf []byte) (key uint64) { return x.below.Register(buf) }

// Unregister implements transport.SingleCopy.
func (x singleCopy) Unregister(key uint64) { x.below.Unregister(key) }

// Proof implements transport.SingleCopy.
func (x singleCopy) Proof() (key, value uint64) { return x.below.Proof() }

// Reach implements transport.SingleCopy. If the plan can make accesses fail, the memory is not
// transport.Direct, because direct accesses would bypass the wrapper.
func (x singleCopy) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	below, err := x.below.Reach(c, key, value)
	if err == nil {
		err = x.t.errRefused("memory cannot be accessed")
	}
	if err != nil {
		return nil, err
	}
	x.t.plan.Counters.Reached.Add(1)
	m := memory{below, x.t, below.Writable() && x.t.errRefused("memory cannot be written") == nil}
	if d, ok := below.(transport.Direct); ok && x.t.plan.Break == 0 && x.t.plan.Delay == 0 {
		return direct{m, d}, nil
	}
	return m, nil
}

// memory wraps the transport.Memory of another process.
type memory struct {
	transport.Memory
	t        *wrapper
	writable bool
}

// direct is memory in the same address space.
type direct struct {
	memory
	transport.Direct
}

// Writable implements transport.Memory.
func (m memory) Writable() bool { return m.writable }

// fails delays an access and decides whether it fails.
func (m memory) fails() bool {
	d, p := &m.t.dice, &m.t.plan
	if d.chance(p.Delay) {
		for range 1 + d.below(p.DelayPolls) {
			runtime.Gosched()
		}
	}
	if !d.chance(p.Break) {
		return false
	}
	p.Counters.Broken.Add(1)
	return true
}

// Read implements transport.Memory.
func (m memory) Read(dst []byte, key uint64, off int64) error {
	m.t.plan.Counters.Read.Add(1)
	if m.fails() {
		return errors.Join(m.Memory.Read(dst[:len(dst)/2], key, off), errInjected)
	}
	return m.Memory.Read(dst, key, off)
}

// Write implements transport.Memory.
func (m memory) Write(src []byte, key uint64, off int64) error {
	m.t.plan.Counters.Written.Add(1)
	if m.fails() {
		return errors.Join(m.Memory.Write(src[:len(src)/2], key, off), errInjected)
	}
	return m.Memory.Write(src, key, off)
}

// ReadRuns implements transport.Memory.
func (m memory) ReadRuns(runs []transport.Run, key uint64) error {
	m.t.plan.Counters.Read.Add(1)
	if m.fails() {
		return errors.Join(m.Memory.ReadRuns(runs[:len(runs)/2], key), errInjected)
	}
	return m.Memory.ReadRuns(runs, key)
}

// WriteRuns implements transport.Memory.
func (m memory) WriteRuns(runs []transport.Run, key uint64) error {
	m.t.plan.Counters.Written.Add(1)
	if m.fails() {
		return errors.Join(m.Memory.WriteRuns(runs[:len(runs)/2], key), errInjected)
	}
	return m.Memory.WriteRuns(runs, key)
}
