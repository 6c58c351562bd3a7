// SPDX-License-Identifier: Apache-2.0

package sessions

// retainedChanges is for how many further changes a session holds a set of a change
// that is over, though the program does not name the set.
const retainedChanges = 4

// retention says which sets of past changes a session still holds: the inputs and the
// sets of newcomers and leavers of the changes that it has finished by the calls of DPP. A
// loop names new sets in each change and never releases one. The session's lock guards it.
type retention struct {
	changes int            // that were finished
	last    map[uint32]int // by set number: changes when the set was named last, or part of a change
}

// touch notes that the program has named a set.
func (p *retention) touch(set uint32) {
	if _, ok := p.last[set]; ok {
		p.last[set] = p.changes
	}
}

// retain notes the sets of a committed change, but for its Result. It releases the sets
// that the program has not named for retainedChanges changes. The caller has the turn.
func (s *Session) retain(c *Change) error {
	s.mu.Lock()
	p := &s.retention
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
		if p.changes-at >= retainedChanges {
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
