// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"sync/atomic"

	"gompi/internal/base/wire"
)

// called is how people know a process, as gompirun calls it, too.
type called struct {
	// set is the one in which it is a rank: its world, and what that becomes by
	// changes; nil: it has been told of no change.
	set atomic.Pointer[wire.Members]
}

// Called is how people know the process: "rank 2", or "new.0" if it comes by a change
// that is not committed.
func (p *Process) Called() string {
	if m := p.called.set.Load(); m != nil {
		return fmt.Sprintf("rank %d", m.Index(p.Self))
	}
	rank := p.WorldRank()
	if p.Change != nil {
		return fmt.Sprintf("new.%d", rank)
	}
	return fmt.Sprintf("rank %d", rank)
}

// Renamed says that a change was committed that has made one set out of others, of both
// of which the process is a member, or of the first if it has come by the change.
func (p *Process) Renamed(inputs []wire.Set, result wire.Members) {
	if result.Index(p.Self) < 0 {
		return
	}
	now := p.called.set.Load()
	if now == nil && p.Change == nil {
		now = &p.World.Members
	}
	for _, in := range inputs {
		if now != nil && in.Members.Equal(*now) {
			p.called.set.Store(&result)
		}
	}
	if now == nil {
		p.called.set.Store(&result)
	}
}
