// SPDX-License-Identifier: Apache-2.0

package far

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// Host is a spawner at the other end of a link. Its methods wait neither for it nor for
// the reader of the output.
type Host struct {
	link  *link.Link
	tell  func(launch.Event) // reports to the supervisor; any goroutine may call it
	outs  *Output
	bytes [2]int // output not written yet; guarded by the writers
	input *Input
	wants bool // the host asked for a piece of input; guarded by input.mu, as gone
	gone  bool

	mu     sync.Mutex
	prints []string // each waits for a mark
	lost   bool
}

// Output writes the output of several hosts.
type Output struct {
	writers [2]*writer
	hosts   atomic.Int32 // number that have not closed it
}

// NewOutput makes an Output for two descriptors. It calls tell, from any goroutine, if one
// of them cannot be written any more.
func NewOutput(out [2]int, tell func(launch.Event)) *Output {
	o := &Output{}
	for i, name := range [2]string{"standard output", "standard error"} {
		o.writers[i] = newWriter(out[i], func(err error) {
			tell(launch.Event{Kind: launch.EvNoOutput, Text: fmt.Sprintf("cannot write to %s: %v", name, err), Closed: errors.Is(err, unix.EPIPE)})
		})
	}
	return o
}

// say writes a line of gompirun's own.
func (o *Output) say(text string) { o.writers[1].put(nil, []byte(text), nil) }

// close must be called once by each host. The last call waits a moment for output that is
// not written.
func (o *Output) close() {
	if o.hosts.Add(-1) == 0 {
		for _, w := range o.writers {
			w.close()
		}
	}
}

// NewHost makes the host at the other end of l, which must not run yet. It calls tell from
// any goroutine.
func NewHost(l *link.Link, out *Output, in *Input, tell func(launch.Event)) *Host {
	out.hosts.Add(1)
	h := &Host{link: l, tell: tell, outs: out, input: in}
	link.On(l, h.event)
	l.OnEnd(h.ended)
	return h
}

func (h *Host) send(m protocol.LaunchCommand) { h.link.Send(&m) }

func (h *Host) Open() error { return nil } // the receiver opens the spawner

// Start sends the list in parts.
func (h *Host) Start(list []launch.Start) {
	m := protocol.LaunchCommand{Kind: cmdStart}
	size := 0
	for _, s := range list {
		n := 0
		for _, list := range [...][]string{s.Argv, s.Env, {s.Dir, s.Path}} {
			for _, word := range list {
				n += len(word) + 4
			}
		}
		if len(m.Starts) == protocol.MaxStarts || len(m.Starts) > 0 && size+n > protocol.MaxStartArgs {
			h.send(m)
			m.Starts, size = nil, 0
		}
		m.Starts, size = append(m.Starts, launchStart(&s)), size+n
	}
	m.Clean = true
	h.send(m)
}

func launchStart(s *launch.Start) protocol.LaunchStart {
	return protocol.LaunchStart{StartProc: s.StartProc, First: s.First, Role: uint8(s.Label.Role), App: uint32(s.App)}
}

func (h *Host) Halt(p wire.ProcID) { h.send(protocol.LaunchCommand{Kind: cmdHalt, Proc: p}) }

func (h *Host) Adopt(spare wire.ProcID, s launch.Start) {
	h.send(protocol.LaunchCommand{Kind: cmdAdopt, Count: spare.Serial, Starts: []protocol.LaunchStart{launchStart(&s)}})
}

// SetMain sends the list in parts.
func (h *Host) SetMain(procs []wire.ProcID) {
	for left := procs; ; {
		m := protocol.LaunchCommand{Kind: cmdMain, Names: make([]protocol.LaunchName, min(len(left), protocol.MaxRenames))}
		for i := range m.Names {
			m.Names[i].Proc = left[i]
		}
		left = left[len(m.Names):]
		m.Clean = len(left) == 0
		if h.send(m); m.Clean {
			return
		}
	}
}

func (h *Host) Rename(list []launch.Named) {
	for piece := range slices.Chunk(list, protocol.MaxRenames) {
		m := protocol.LaunchCommand{Kind: cmdRename, Names: make([]protocol.LaunchName, len(piece))}
		for i, n := range piece {
			m.Names[i] = protocol.LaunchName{Proc: n.Proc, Role: uint8(n.Label.Role), Rank: uint32(n.Label.Rank), Size: uint32(n.Label.Size)}
		}
		h.send(m)
	}
}

func (h *Host) Signal(p wire.ProcID, s unix.Signal) {
	h.send(protocol.LaunchCommand{Kind: cmdSignal, Proc: p, Signal: int(s)})
}

func (h *Host) SignalAll(s unix.Signal) {
	h.send(protocol.LaunchCommand{Kind: cmdSignalAll, Signal: int(s)})
}

func (h *Host) ReportExit(p wire.ProcID, how string, clean bool) {
	h.send(protocol.LaunchCommand{Kind: cmdJudged, Proc: p, Text: how, Clean: clean})
}

func (h *Host) ReportLost(p wire.ProcID, how string) {
	h.send(protocol.LaunchCommand{Kind: cmdGone, Proc: p, Text: how})
}

// Print writes the text after the mark that follows the output of processes that have
// ended.
func (h *Host) Print(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		h.outs.say(text)
		return
	}
	h.prints = append(h.prints, text)
	h.send(protocol.LaunchCommand{Kind: cmdMark})
}

func (h *Host) Resumed() { h.input.stdin.Resume() }

func (h *Host) TakeStdin() { h.input.moveTo(h) }

func (h *Host) Drain() { h.send(protocol.LaunchCommand{Kind: cmdDrain}) }

// Close closes the host. Output that is not written gets a moment.
func (h *Host) Close() {
	h.send(protocol.LaunchCommand{Kind: cmdClose})
	h.link.Close()
	h.outs.close()
}

// event handles an event of the host.
func (h *Host) event(m *protocol.LaunchEvent) error {
	switch m.Kind {
	case eventOutput:
		if m.Stream != 1 && m.Stream != 2 {
			return fmt.Errorf("output of stream %d", m.Stream)
		}
		n := uint32(len(m.Data))
		stream := m.Stream
		if !h.outs.writers[stream-1].put(&h.bytes[stream-1], bytes.Clone(m.Data), func() { h.send(protocol.LaunchCommand{Kind: cmdWrote, Stream: stream, Count: n}) }) {
			return fmt.Errorf("more than %d bytes of output unasked", window)
		}
	case eventMarked:
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.prints) == 0 {
			return errors.New("a mark that was not set")
		}
		h.outs.say(h.prints[0])
		h.prints = h.prints[1:]
	case eventWants:
		return h.input.want(h)
	case eventReturn:
		return h.input.returned(h, m.Data)
	case uint8(launch.EvDrained):
		go func() {
			for _, w := range h.outs.writers {
				w.wait()
			}
			h.tell(launch.Event{Kind: launch.EvDrained})
		}()
	default:
		ev, err := eventOf(m)
		if err != nil {
			return err
		}
		h.tell(ev)
	}
	return nil
}

// ended handles the end of the link.
func (h *Host) ended(why error) {
	h.mu.Lock()
	h.lost = true
	for _, text := range h.prints {
		h.outs.say(text)
	}
	h.prints = nil
	h.mu.Unlock()
	h.input.lost(h)
	if why == link.ErrClosed {
		return
	}
	text := why.Error()
	if why == io.EOF {
		text = "it has closed the connection"
	}
	h.tell(launch.Event{Kind: launch.EvHostLost, Text: text})
}
