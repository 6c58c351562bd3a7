// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
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
	apart := !a.topo.BindsOnlyAtStart(a.o.Bind, len(list))
	var next func(i int)
	next = func(i int) {
		for ; i < len(list); i++ {
			if list[i].spread && !apart {
				continue // it will be let go
			}
			var to cpus.Set
			if apart {
				to = a.topo.Binding(a.o.Bind, i, len(list))
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

// TakeStdin has nothing to do: an agent that has the descriptors of gompirun is alone.
func (a *Agent) TakeStdin() {}

// input is standard input that somebody else may have to read next.
type input interface {
	io.Reader
	Interrupt()
	Rest() [][]byte
}

// feedAgain makes a pipe for the process here that reads standard input from now on, after
// processes of other hosts.
func (a *Agent) feedAgain() error {
	f := newFeeder(a.in)
	fd, err := f.pipe()
	if err != nil {
		return err
	}
	a.feeder, a.readEnd = f, fd
	f.start()
	return nil
}

// ReturnStdin takes standard input from its reader here: processes of another host go on
// where the reader has stopped. Give gets the bytes that the reader has not read, and at
// the end an empty slice, on some goroutine.
func (a *Agent) ReturnStdin(give func([]byte)) {
	f, end := a.feeder, a.readEnd
	src, ok := a.in.(input)
	if f == nil || end < 0 || !ok {
		give(nil)
		return
	}
	a.feeder, a.readEnd, a.reader, a.returning = nil, -1, wire.ProcID{}, true
	go func() {
		left := f.stop(src)
		buf := make([]byte, chunkBytes)
		for {
			n, err := unix.Read(end, buf) // nobody writes any more
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				break
			}
			give(slices.Clone(buf[:n]))
		}
		unix.Close(end)
		for _, b := range append([][]byte{left}, src.Rest()...) {
			if len(b) > 0 {
				give(b)
			}
		}
		give(nil)
		a.post(func() {
			p := a.heir
			if a.returning, a.heir = false, (wire.ProcID{}); p != a.heir {
				a.handStdin(p)
			}
		})
	}()
}

// handStdin makes a process the reader of standard input from where the last one has
// read to: it gets the same descriptor, or that of a new pipe if that was on another
// host.
func (a *Agent) handStdin(p wire.ProcID) {
	c := a.byID[p]
	switch {
	case c == nil || c.pid == 0 || c.exited:
		return
	case a.returning:
		a.heir = p
		return
	case a.readEnd < 0 && a.stdin == nil:
		if err := a.feedAgain(); err != nil {
			a.Print(launch.Line("standard input cannot go to %s: %v", c.Label.Name(), err))
			return
		}
	case a.readEnd < 0:
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
