// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/launch"
)

// TakeStdin does nothing: a spawner with the descriptors of gompirun is the only one.
func (sp *Spawner) TakeStdin() {}

// input is standard input that another process may have to read next.
type input interface {
	io.Reader
	Interrupt()
	Rest() [][]byte
}

// newStdinPipe makes a pipe for the process here that reads standard input from now on,
// after processes of other hosts.
func (sp *Spawner) newStdinPipe() error {
	f := newFeeder(sp.in)
	fd, err := f.pipe()
	if err != nil {
		return err
	}
	sp.feeder, sp.readEnd = f, fd
	f.start()
	return nil
}

// ReturnStdin takes standard input from its reader here: a process of another host
// continues at the same byte. give gets the bytes that the reader has not read, and at the
// end an empty slice, on some goroutine.
func (sp *Spawner) ReturnStdin(give func([]byte)) {
	f, end := sp.feeder, sp.readEnd
	src, ok := sp.in.(input)
	if f == nil || end < 0 || !ok {
		give(nil)
		return
	}
	sp.feeder, sp.readEnd, sp.reader, sp.returning = nil, -1, wire.ProcID{}, true
	go func() {
		left := f.stop(src)
		buf := make([]byte, chunkBytes)
		for {
			n, err := unix.Read(end, buf) // no process writes any more
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
		sp.post(func() {
			p := sp.nextReader
			if sp.returning, sp.nextReader = false, (wire.ProcID{}); p != sp.nextReader {
				sp.giveStdin(p)
			}
		})
	}()
}

// giveStdin makes a process the reader of standard input, from the byte at which the last
// one stopped. It gets the same descriptor, or that of a new pipe if the last reader was
// on another host.
func (sp *Spawner) giveStdin(p wire.ProcID) {
	c := sp.byID[p]
	switch {
	case c == nil || c.pid == 0 || c.exited:
		return
	case sp.returning:
		sp.nextReader = p
		return
	case sp.readEnd < 0 && sp.stdin == nil:
		if err := sp.newStdinPipe(); err != nil {
			sp.Print(launch.Line("standard input cannot go to %s: %v", c.Label.Name(), err))
			return
		}
	case sp.readEnd < 0:
		return
	}
	fd, err := unix.FcntlInt(uintptr(sp.readEnd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		sp.Print(launch.Line("standard input cannot go to %s: %v", c.Label.Name(), err))
		return
	}
	sp.reader = p
	sp.control.Stdin(p, fd)
}
