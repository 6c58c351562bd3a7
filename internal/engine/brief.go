// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/engine/shmcoll"
)

// Brief are the arguments of a brief call.
type Brief = shmcoll.Brief

// BriefPairBytes is the longest block of a brief Alltoallv, which is one of two ranks.
const BriefPairBytes = shmcoll.PairBytes

// ForgetBrief has the next calls choose how they are made.
func (c *Context) ForgetBrief() {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.board != nil {
		clear(c.board.brief[:])
	}
}

// Brief makes a collective call of which the last one like it went over cells of the board
// while nothing else is going on, without what most calls are asked about: of a barrier of
// two ranks that is half of what it takes. made: it did, and f is why it failed; else
// nothing has happened.
func (c *Context) Brief(k *Brief, op fault.Call, commutative bool) (f *fault.Fault, made bool) {
	e := c.e
	if !e.mu.TryLock() {
		return nil, false
	}
	b := c.board
	if b == nil || b.brief[k.Op] != (briefShape{k.Count, k.Unit, commutative}) || c.inside != nil || c.faults != nil || c.whole != nil || e.closed || e.prog.Led() {
		e.mu.Unlock()
		return nil, false
	}
	e.tally.Collectives++
	tag := c.nextColl()
	c.tag, c.givenUp = tag, nil
	oversubscribed := e.prog.Policy.Oversubscribed()
	b.BeginBrief(k, shmcoll.Seq(tag), oversubscribed)
	if !b.quick(c, op, int64(len(k.Out)), oversubscribed, true) {
		a := CollArgs{Op: op, Call: shmcoll.Call{Out: buffer.Of(k.Out)}}
		f = e.boardWait(c, &a, tag)
	}
	c.leaveColl()
	e.mu.Unlock()
	return f, true
}
