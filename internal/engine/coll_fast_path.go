// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
)

// FastColl are the arguments of a call on the fast path.
type FastColl = shmcoll.FastCall

// FastPairBytes is the longest block of an Alltoallv on the fast path. That path serves two
// ranks.
const FastPairBytes = shmcoll.PairBytes

// ForgetFastColl makes the next calls choose their algorithm again.
func (c *Context) ForgetFastColl() {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.area != nil {
		clear(c.area.fast[:])
	}
}

// FastColl makes a collective call on the fast path, if the last call of the same shape
// used cells of the area and nothing else is under way. It skips most checks of the general
// path: for a barrier of two ranks they take half of the time. If made is false nothing has
// happened. Otherwise f is the call's fault, or nil.
func (c *Context) FastColl(k *FastColl, op fault.Call, commutative bool) (f *fault.Fault, made bool) {
	e := c.e
	if !e.mu.TryLock() {
		return nil, false
	}
	b := c.area
	if b == nil || b.fast[k.Op] != (fastShape{k.Count, k.Unit, commutative}) || c.blocking != nil || c.faults != nil || c.whole != nil || e.closed || e.prog.Led() {
		e.mu.Unlock()
		return nil, false
	}
	e.counters.Collectives++
	tag := c.nextColl()
	c.tag, c.givenUp = tag, nil
	oversubscribed := e.prog.Policy.Oversubscribed()
	b.BeginFast(k, shmcoll.Seq(tag), oversubscribed)
	if !b.quick(c, op, int64(len(k.Out)), oversubscribed, true) {
		a := CollArgs{Op: op, Call: shmcoll.Call{Out: buffer.Of(k.Out)}}
		f = e.areaWait(c, &a, tag)
	}
	c.leaveColl()
	e.mu.Unlock()
	return f, true
}
