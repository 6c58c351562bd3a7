// SPDX-License-Identifier: Apache-2.0

package sessions

// keepPast is for how many further changes a session holds a set of a change that is over,
// though nobody names it.
const keepPast = 4

// pastSets are the inputs and the deltas of changes that a session has adopted by the calls
// of DPP, by number: a loop names new sets in each change, and never lets go of one. The
// session's lock guards them.
type pastSets struct {
	changes int            // that were adopted
	last    map[uint32]int // how many there were when the set was one of a change, or was named
}

// named notes that the program has named a set.
func (p *pastSets) named(set uint32) {
	if _, ok := p.last[set]; ok {
		p.last[set] = p.changes
	}
}

// adopted notes the sets of a change that is committed, but for its Result, and lets go of
// those that nobody has named since so many changes. The caller has the turn.
func (s *Session) adopted(c *Change) error {
	s.mu.Lock()
	p := &s.past
	if p.changes++; p.last == nil {
		p.last = map[uint32]int{}
	}
	for _, set := range append(append(c.body.Joining[:len(c.body.Joining):len(c.body.Joining)], c.body.Inputs...), c.body.Leaving) {
		if set.Number != 0 {
			p.last[set.Number] = p.changes
		}
	}
	gone := map[uint32]bool{}
	for set, at := range p.last {
		if p.changes-at >= keepPast {
			delete(p.last, set)
			gone[set] = true
		}
	}
	for name, h := range s.names {
		if gone[h.set.Number] {
			delete(s.names, name)
			h.drop()
		}
	}
	s.mu.Unlock()
	return s.unfollowSets(gone)
}
