// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"golang.org/x/sys/unix"

	"gompi/internal/launch"
	"gompi/internal/launch/cpus"
	"gompi/internal/wire"
)

// Main puts the members of the main set where they were if the job had started with
// them, and gives standard input to the one who is to have it.
func (a *Agent) Main(procs []wire.ProcID) {
	var here []*child
	for _, p := range procs {
		if c := a.byID[p]; c != nil && c.pid != 0 && !c.exited {
			here = append(here, c)
		}
	}
	a.replace(here)
	if r := int(a.o.Stdin); r >= 0 && r < len(procs) && procs[r] != a.reader {
		a.handStdin(procs[r])
	}
}

// replace binds these, one after the other between other work: each is a walk over
// threads.
func (a *Agent) replace(list []*child) {
	if a.o.Bind == "none" {
		return
	}
	apart := !a.topo.Spreads(a.o.Bind, len(list))
	var next func(i int)
	next = func(i int) {
		for ; i < len(list); i++ {
			if list[i].spread && !apart {
				continue // it will be let go
			}
			var to cpus.Set
			if apart {
				to = a.topo.Place(a.o.Bind, i, len(list))
			}
			if a.move(list[i], to) {
				a.post(func() { next(i + 1) })
				return
			}
		}
	}
	next(0)
}

// move lets c run on other CPUs, but threads that its program has bound; nil: on all.
// False if there was nothing to do.
func (a *Agent) move(c *child, to cpus.Set) bool {
	was := c.cpus
	if c.exited || was.String() == to.String() {
		return false
	}
	c.cpus, c.spread = to, false
	from, onto := a.topo.All, a.topo.All
	if was != nil {
		from = was
	}
	if to != nil {
		onto = to
	}
	letGo(c.pid, from.Mask(), onto.Mask())
	return true
}

// handStdin makes a process the reader of standard input from where the last one has
// read to: it gets the same descriptor.
func (a *Agent) handStdin(p wire.ProcID) {
	c := a.byID[p]
	if c == nil || c.pid == 0 || c.exited || a.readEnd < 0 {
		return
	}
	fd, err := unix.FcntlInt(uintptr(a.readEnd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		a.Print(launch.Line("standard input cannot go to %s: %v", c.Label.Name(), err))
		return
	}
	a.reader = p
	a.plane.Stdin(p, fd)
}
