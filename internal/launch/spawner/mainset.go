// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
)

// SetMain binds the members of the main set as if the job had started with them, and gives
// standard input to the rank that is to read it.
func (sp *Spawner) SetMain(procs []wire.ProcID) {
	var here []*child
	for _, p := range procs {
		if c := sp.byID[p]; c != nil && c.pid != 0 && !c.exited {
			here = append(here, c)
		}
	}
	sp.bind(here)
	if r := int(sp.o.Stdin); r >= 0 && r < len(procs) && procs[r] != sp.reader {
		sp.giveStdin(procs[r])
	}
}

// bind binds the members one at a time between other work, as each walks over the threads
// of a process.
func (sp *Spawner) bind(list []*child) {
	if sp.o.Bind == "none" {
		return
	}
	apart := !sp.topo.BindsOnlyAtStart(sp.o.Bind, len(list))
	var next func(i int)
	next = func(i int) {
		for ; i < len(list); i++ {
			if list[i].spread && !apart {
				continue // its binding is released soon
			}
			var to cpus.Set
			if apart {
				to = sp.topo.Binding(sp.o.Bind, i, len(list))
			}
			if sp.move(list[i], to) {
				sp.post(func() { next(i + 1) })
				return
			}
		}
	}
	next(0)
}

// move moves c to other CPUs, except threads that its program has bound; nil: to all CPUs.
// It returns false if nothing had to change.
func (sp *Spawner) move(c *child, to cpus.Set) bool {
	was := c.cpus
	if c.exited || was.String() == to.String() {
		return false
	}
	c.cpus, c.spread = to, false
	from, onto := sp.topo.All, sp.topo.All
	if was != nil {
		from = was
	}
	if to != nil {
		onto = to
	}
	release(c.pid, from.Mask(), onto.Mask())
	return true
}
