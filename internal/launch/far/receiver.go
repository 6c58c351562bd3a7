// SPDX-License-Identifier: Apache-2.0

package far

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
	"gompi/internal/launch/spawner"
)

// Receiver takes the supervisor's commands from a link and carries them out on the spawner
// of this host. Run is the goroutine of that spawner.
type Receiver struct {
	link    *link.Link
	outs    [2]*outlet
	input   chan []byte // pieces of standard input
	spawner *spawner.Spawner
	opened  error
	starts  []launch.Start // parts of a Start that is not complete
	main    []wire.ProcID  // parts of a SetMain that is not complete

	mu    sync.Mutex
	queue []func()
	ready chan struct{}
	quit  bool // the supervisor has closed this host; owned by Run
}

// NewReceiver makes the receiver for l, which must not run yet.
func NewReceiver(l *link.Link) *Receiver {
	r := &Receiver{link: l, input: make(chan []byte, 1), ready: make(chan struct{}, 1)}
	for i := range r.outs {
		r.outs[i] = newOutlet(l, uint8(i+1))
	}
	link.On(l, r.command)
	l.OnEnd(func(error) {
		for _, o := range r.outs {
			o.end()
		}
	})
	return r
}

// Streams returns the streams for spawner.New.
func (r *Receiver) Streams() spawner.Streams {
	return spawner.Streams{Out: [2]func([]byte) error{r.outs[0].write, r.outs[1].write}, In: &inlet{receiver: r, stop: make(chan struct{}, 1)}}
}

// Tell and Post are the functions for spawner.New: Tell sends events to the supervisor,
// Post lets Run call a function.
func (r *Receiver) Tell(ev launch.Event) { r.link.Send(launchEvent(&ev)) }

func (r *Receiver) Post(f func()) {
	r.mu.Lock()
	r.queue = append(r.queue, f)
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Serve sets the spawner, and must be called before the link runs.
func (r *Receiver) Serve(sp *spawner.Spawner) { r.spawner, r.opened = sp, sp.Open() }

// Run works until the supervisor closes this host, and returns true. If the link ends
// first, it kills the processes and returns false.
func (r *Receiver) Run() (inOrder bool) {
	defer r.spawner.Close()
	for !r.quit {
		select {
		case <-r.ready:
			r.mu.Lock()
			queue := r.queue
			r.queue = nil
			r.mu.Unlock()
			for _, f := range queue {
				f()
			}
		case <-r.link.Ended():
			r.spawner.SignalAll(unix.SIGKILL)
			return false
		}
	}
	return true
}

// command carries out a command of the supervisor. It runs on the link's goroutine.
func (r *Receiver) command(m *protocol.LaunchCommand) error {
	s := unix.Signal(m.Signal)
	switch m.Kind {
	case cmdStart:
		for i := range m.Starts {
			r.starts = append(r.starts, startOf(&m.Starts[i]))
		}
		if len(r.starts) > protocol.MaxSpawn {
			return fmt.Errorf("a start of more than %d processes", protocol.MaxSpawn)
		}
		if m.Clean {
			list := r.starts
			r.starts = nil
			r.Post(func() { r.start(list) })
		}
	case cmdHalt:
		r.Post(func() { r.spawner.Halt(m.Proc) })
	case cmdAdopt:
		for i := range m.Starts {
			s := startOf(&m.Starts[i])
			r.Post(func() { r.spawner.Adopt(wire.ProcID{Serial: m.Count}, s) })
		}
	case cmdMain:
		for _, n := range m.Names {
			r.main = append(r.main, n.Proc)
		}
		if len(r.main) > protocol.MaxMembers {
			return fmt.Errorf("a main set of more than %d processes", protocol.MaxMembers)
		}
		if m.Clean {
			list := r.main
			r.main = nil
			r.Post(func() { r.spawner.SetMain(list) })
		}
	case cmdRename:
		list := make([]launch.Named, len(m.Names))
		for i, n := range m.Names {
			list[i] = launch.Named{Proc: n.Proc, Label: launch.Label{Role: launch.Role(n.Role), Serial: n.Proc.Serial, Rank: int(n.Rank), Size: int(n.Size)}}
		}
		r.Post(func() { r.spawner.Rename(list) })
	case cmdSignal:
		r.Post(func() { r.spawner.Signal(m.Proc, s) })
	case cmdSignalAll:
		r.Post(func() { r.spawner.SignalAll(s) })
	case cmdJudged:
		r.Post(func() { r.spawner.ReportExit(m.Proc, m.Text, m.Clean) })
	case cmdGone:
		r.Post(func() { r.spawner.ReportLost(m.Proc, m.Text) })
	case cmdMark:
		r.Post(func() {
			marked := func() { r.link.Send(&protocol.LaunchEvent{Kind: eventMarked}) }
			if !r.spawner.Mark(marked) {
				marked()
			}
		})
	case cmdDrain:
		r.Post(r.spawner.Drain)
	case cmdClose:
		r.Post(func() { r.quit = true })
	case cmdWrote:
		if m.Stream != 1 && m.Stream != 2 {
			return fmt.Errorf("stream %d", m.Stream)
		}
		r.outs[m.Stream-1].wrote(int(m.Count))
	case cmdInput:
		select {
		case r.input <- slices.Clone(m.Data):
		default:
			return errors.New("input that was not asked for")
		}
	case cmdReturn:
		r.Post(func() {
			r.spawner.ReturnStdin(func(b []byte) { r.link.Send(&protocol.LaunchEvent{Kind: eventReturn, Data: b}) })
		})
	default:
		return fmt.Errorf("unknown command %d", m.Kind)
	}
	return nil
}

func startOf(st *protocol.LaunchStart) launch.Start {
	l := launch.Label{Role: launch.Role(st.Role), Serial: st.Proc.Serial, Rank: st.Rank, Size: st.Size}
	return launch.Start{StartProc: st.StartProc, Label: l, First: st.First, App: int(st.App)}
}

func (r *Receiver) start(list []launch.Start) {
	err := r.opened
	for _, s := range list {
		if n := r.spawner.Apps(); s.App >= n && err == nil {
			err = fmt.Errorf("program %d of %d", s.App, n)
		}
	}
	if err != nil {
		r.Tell(launch.Begun(err))
		return
	}
	r.spawner.Start(list)
}

// outlet sends one stream of output to the supervisor's host.
type outlet struct {
	link   *link.Link
	stream uint8

	mu    sync.Mutex
	cond  sync.Cond // out, ended have changed
	out   int       // bytes sent that are not written yet
	ended bool
}

func newOutlet(l *link.Link, stream uint8) *outlet {
	o := &outlet{link: l, stream: stream}
	o.cond.L = &o.mu
	return o
}

// write returns when all of b is sent, and all but a window of the stream is written.
func (o *outlet) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), protocol.MaxChunk)
		if !o.room(n) {
			return link.ErrClosed
		}
		o.link.Send(&protocol.LaunchEvent{Kind: eventOutput, Stream: o.stream, Data: b[:n]})
		b = b[n:]
	}
	return nil
}

func (o *outlet) room(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.out+n > window && !o.ended {
		o.cond.Wait()
	}
	o.out += n
	return !o.ended
}

func (o *outlet) wrote(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out -= min(n, o.out)
	o.cond.Broadcast()
}

func (o *outlet) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.cond.Broadcast()
}

// inlet reads standard input from the supervisor's host.
type inlet struct {
	receiver *Receiver
	rest     []byte
	end      bool
	stop     chan struct{}
}

var errStopped = errors.New("another process reads standard input now")

func (in *inlet) Read(b []byte) (int, error) {
	if len(in.rest) == 0 && !in.end {
		in.receiver.link.Send(&protocol.LaunchEvent{Kind: eventWants})
		select {
		case in.rest = <-in.receiver.input:
		case <-in.stop:
			return 0, errStopped
		case <-in.receiver.link.Ended():
		}
		in.end = len(in.rest) == 0
	}
	if in.end {
		return 0, io.EOF
	}
	n := copy(b, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// Interrupt ends a Read that waits, or else the next one.
func (in *inlet) Interrupt() {
	select {
	case in.stop <- struct{}{}:
	default:
	}
}

// Rest returns the input that has come but was not read. It must be called when no Read is
// under way; the inlet can be used again afterwards.
func (in *inlet) Rest() (list [][]byte) {
	if len(in.rest) > 0 {
		list = append(list, in.rest)
	}
	select {
	case b := <-in.receiver.input:
		if len(b) > 0 {
			list = append(list, b)
		}
	default:
	}
	select {
	case <-in.stop:
	default:
	}
	in.rest, in.end = nil, false
	return list
}
