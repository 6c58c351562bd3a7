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

// Agent is the head at the other end of a link, and the goroutine of the agent here
// (Run).
type Agent struct {
	link   *link.Link
	outs   [2]*outlet
	pieces chan []byte // of input
	host   *spawner.Agent
	opened error
	starts []launch.Start // of a Start that is not complete
	main   []wire.ProcID  // of a Main, likewise

	mu    sync.Mutex
	queue []func()
	ready chan struct{}
	quit  bool // the head has said so; owned by Run
}

// NewAgent makes the head at the other end of l, which is yet to be Run.
func NewAgent(l *link.Link) *Agent {
	a := &Agent{link: l, pieces: make(chan []byte, 1), ready: make(chan struct{}, 1)}
	for i := range a.outs {
		a.outs[i] = newOutlet(l, uint8(i+1))
	}
	link.On(l, a.errand)
	l.OnEnd(func(error) {
		for _, o := range a.outs {
			o.end()
		}
	})
	return a
}

// Streams are for spawner.New.
func (a *Agent) Streams() spawner.Streams {
	return spawner.Streams{Out: [2]func([]byte) error{a.outs[0].write, a.outs[1].write}, In: &inlet{a: a, stop: make(chan struct{}, 1)}}
}

// Tell and Post are for spawner.New: events go to the head, and functions are run by
// Run.
func (a *Agent) Tell(ev launch.Event) { a.link.Send(seenOf(&ev)) }

func (a *Agent) Post(f func()) {
	a.mu.Lock()
	a.queue = append(a.queue, f)
	a.mu.Unlock()
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// Serve says who does the errands, before the link runs.
func (a *Agent) Serve(host *spawner.Agent) { a.host, a.opened = host, host.Open() }

// Run is the life of the agent, until the head ends it or is lost. Then the
// processes are, too: false.
func (a *Agent) Run() (inOrder bool) {
	defer a.host.Close()
	for !a.quit {
		select {
		case <-a.ready:
			a.mu.Lock()
			queue := a.queue
			a.queue = nil
			a.mu.Unlock()
			for _, f := range queue {
				f()
			}
		case <-a.link.Ended():
			a.host.SignalAll(unix.SIGKILL)
			return false
		}
	}
	return true
}

// errand takes what the head wants, on the link's goroutine.
func (a *Agent) errand(m *protocol.LaunchCommand) error {
	s := unix.Signal(m.Signal)
	switch m.Kind {
	case doStart:
		for i := range m.Starts {
			a.starts = append(a.starts, startOf(&m.Starts[i]))
		}
		if len(a.starts) > protocol.MaxSpawn {
			return fmt.Errorf("a start of more than %d processes", protocol.MaxSpawn)
		}
		if m.Clean {
			list := a.starts
			a.starts = nil
			a.Post(func() { a.start(list) })
		}
	case doHalt:
		a.Post(func() { a.host.Halt(m.Proc) })
	case doAdopt:
		for i := range m.Starts {
			s := startOf(&m.Starts[i])
			a.Post(func() { a.host.Adopt(wire.ProcID{Serial: m.Count}, s) })
		}
	case doMain:
		for _, n := range m.Names {
			a.main = append(a.main, n.Proc)
		}
		if len(a.main) > protocol.MaxMembers {
			return fmt.Errorf("a main set of more than %d processes", protocol.MaxMembers)
		}
		if m.Clean {
			list := a.main
			a.main = nil
			a.Post(func() { a.host.Main(list) })
		}
	case doRename:
		list := make([]launch.Named, len(m.Names))
		for i, n := range m.Names {
			list[i] = launch.Named{Proc: n.Proc, Label: launch.Label{Role: launch.Role(n.Role), Serial: n.Proc.Serial, Rank: int(n.Rank), Size: int(n.Size)}}
		}
		a.Post(func() { a.host.Rename(list) })
	case doSignal:
		a.Post(func() { a.host.Signal(m.Proc, s) })
	case doSignalAll:
		a.Post(func() { a.host.SignalAll(s) })
	case doJudged:
		a.Post(func() { a.host.Judged(m.Proc, m.Text, m.Clean) })
	case doGone:
		a.Post(func() { a.host.Gone(m.Proc, m.Text) })
	case doMark:
		a.Post(func() {
			marked := func() { a.link.Send(&protocol.LaunchEvent{Kind: seenMarked}) }
			if !a.host.Mark(marked) {
				marked()
			}
		})
	case doDrain:
		a.Post(a.host.Drain)
	case doClose:
		a.Post(func() { a.quit = true })
	case doWrote:
		if m.Stream != 1 && m.Stream != 2 {
			return fmt.Errorf("stream %d", m.Stream)
		}
		a.outs[m.Stream-1].wrote(int(m.Count))
	case doInput:
		select {
		case a.pieces <- slices.Clone(m.Data):
		default:
			return errors.New("input that nobody wants")
		}
	case doReturn:
		a.Post(func() {
			a.host.ReturnStdin(func(b []byte) { a.link.Send(&protocol.LaunchEvent{Kind: seenReturn, Data: b}) })
		})
	default:
		return fmt.Errorf("unknown errand %d", m.Kind)
	}
	return nil
}

func startOf(st *protocol.LaunchStart) launch.Start {
	l := launch.Label{Role: launch.Role(st.Role), Serial: st.Proc.Serial, Rank: st.Rank, Size: st.Size}
	return launch.Start{StartProc: st.StartProc, Label: l, First: st.First, App: int(st.App)}
}

func (a *Agent) start(list []launch.Start) {
	err := a.opened
	for _, s := range list {
		if n := a.host.Apps(); s.App >= n && err == nil {
			err = fmt.Errorf("program %d of %d", s.App, n)
		}
	}
	if err != nil {
		a.Tell(launch.Begun(err))
		return
	}
	a.host.Start(list)
}

// outlet is one stream of output on its way to the head.
type outlet struct {
	link   *link.Link
	stream uint8

	mu    sync.Mutex
	cond  sync.Cond // out, ended have changed
	out   int       // bytes that the head has not written
	ended bool
}

func newOutlet(l *link.Link, stream uint8) *outlet {
	o := &outlet{link: l, stream: stream}
	o.cond.L = &o.mu
	return o
}

// write returns when all is on its way and so much of what went before is out that
// it is within the window.
func (o *outlet) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), protocol.MaxChunk)
		if !o.room(n) {
			return link.ErrClosed
		}
		o.link.Send(&protocol.LaunchEvent{Kind: seenOutput, Stream: o.stream, Data: b[:n]})
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

// inlet is standard input, which the head has.
type inlet struct {
	a    *Agent
	rest []byte
	end  bool
	stop chan struct{}
}

var errStopped = errors.New("others read standard input now")

func (in *inlet) Read(b []byte) (int, error) {
	if len(in.rest) == 0 && !in.end {
		in.a.link.Send(&protocol.LaunchEvent{Kind: seenWants})
		select {
		case in.rest = <-in.a.pieces:
		case <-in.stop:
			return 0, errStopped
		case <-in.a.link.Ended():
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

// Interrupt ends a Read that waits, or the next one that would.
func (in *inlet) Interrupt() {
	select {
	case in.stop <- struct{}{}:
	default:
	}
}

// Rest is what has come and was not read, when nobody reads any more; it begins anew
// then.
func (in *inlet) Rest() (list [][]byte) {
	if len(in.rest) > 0 {
		list = append(list, in.rest)
	}
	select {
	case b := <-in.a.pieces:
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
