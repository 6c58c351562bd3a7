// SPDX-License-Identifier: Apache-2.0

package agent

import "gompi/internal/control/protocol"

// Who was given whose pid. A pair lasts until the one who was given it has let
// go: by Dead, by Finalize, by its own exit. Until then the other's child stays
// unreaped, as its pid must not become a stranger's.

// givePid notes that p was given the pid of q.
func (a *Agent) givePid(p, q *Proc) {
	if q.knownBy == nil {
		q.knownBy = map[uint32]struct{}{}
	}
	if p.knows == nil {
		p.knows = map[uint32]struct{}{}
	}
	q.knownBy[p.serial] = struct{}{}
	p.knows[q.serial] = struct{}{}
}

// acknowledge notes that p, which heard of the end of a process, does not use its pid any more.
// An acknowledgement in advance does not count.
func (a *Agent) acknowledge(p *Proc, m *protocol.Proc) {
	if q := a.proc(m.Proc); q != nil && q.over {
		a.letGo(p, q)
	}
}

func (a *Agent) letGo(p, q *Proc) {
	if _, knows := p.knows[q.serial]; !knows {
		return
	}
	delete(p.knows, q.serial)
	delete(q.knownBy, p.serial)
	a.free(q)
}

// letGoAll: p uses no pid any more.
func (a *Agent) letGoAll(p *Proc) {
	for serial := range p.knows {
		a.letGo(p, a.procs[serial]) // kept while its pid is known
	}
	p.knows = nil
}
