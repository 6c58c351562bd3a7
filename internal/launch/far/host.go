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

// Host is an agent at the other end of a link. Its methods never wait for it, nor
// for the reader of the output.
type Host struct {
	link  *link.Link
	tell  func(launch.Event) // the head, from any goroutine
	outs  *Output
	bytes [2]int // of the output that is not written; guarded by the writers
	input *Input
	wants bool // the agent can take a piece of input; this and gone are guarded by input.mu
	gone  bool

	mu     sync.Mutex
	prints []string // wait for a mark each
	lost   bool
}

// Output is where the output of several hosts goes.
type Output struct {
	writers [2]*writer
	hosts   atomic.Int32 // that have not closed it
}

// NewOutput makes an Output of two descriptors. Tell hears of it if one of them takes
// nothing any more, from any goroutine.
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

// close is called once by each host. The last writes what is not out yet, for a
// moment.
func (o *Output) close() {
	if o.hosts.Add(-1) == 0 {
		for _, w := range o.writers {
			w.close()
		}
	}
}

// NewHost makes the agent at the other end of l, which is yet to be Run. Tell may be
// called from any goroutine.
func NewHost(l *link.Link, out *Output, in *Input, tell func(launch.Event)) *Host {
	out.hosts.Add(1)
	h := &Host{link: l, tell: tell, outs: out, input: in}
	link.On(l, h.seen)
	l.OnEnd(h.ended)
	return h
}

func (h *Host) send(m protocol.LaunchCommand) { h.link.Send(&m) }

func (h *Host) Open() error { return nil } // the agent does so by itself

// Start sends the list in pieces.
func (h *Host) Start(list []launch.Start) {
	m := protocol.LaunchCommand{Kind: doStart}
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
		m.Starts, size = append(m.Starts, errandStart(&s)), size+n
	}
	m.Clean = true
	h.send(m)
}

func errandStart(s *launch.Start) protocol.LaunchStart {
	return protocol.LaunchStart{StartProc: s.StartProc, First: s.First, Role: uint8(s.Label.Role), App: uint32(s.App)}
}

func (h *Host) Halt(p wire.ProcID) { h.send(protocol.LaunchCommand{Kind: doHalt, Proc: p}) }

func (h *Host) Adopt(spare wire.ProcID, s launch.Start) {
	h.send(protocol.LaunchCommand{Kind: doAdopt, Count: spare.Serial, Starts: []protocol.LaunchStart{errandStart(&s)}})
}

// Main sends the list in pieces.
func (h *Host) Main(procs []wire.ProcID) {
	for left := procs; ; {
		m := protocol.LaunchCommand{Kind: doMain, Names: make([]protocol.LaunchName, min(len(left), protocol.MaxRenames))}
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
		m := protocol.LaunchCommand{Kind: doRename, Names: make([]protocol.LaunchName, len(piece))}
		for i, n := range piece {
			m.Names[i] = protocol.LaunchName{Proc: n.Proc, Role: uint8(n.Label.Role), Rank: uint32(n.Label.Rank), Size: uint32(n.Label.Size)}
		}
		h.send(m)
	}
}

func (h *Host) Signal(p wire.ProcID, s unix.Signal) {
	h.send(protocol.LaunchCommand{Kind: doSignal, Proc: p, Signal: int(s)})
}

func (h *Host) SignalAll(s unix.Signal) {
	h.send(protocol.LaunchCommand{Kind: doSignalAll, Signal: int(s)})
}

func (h *Host) Judged(p wire.ProcID, how string, clean bool) {
	h.send(protocol.LaunchCommand{Kind: doJudged, Proc: p, Text: how, Clean: clean})
}

func (h *Host) Gone(p wire.ProcID, how string) {
	h.send(protocol.LaunchCommand{Kind: doGone, Proc: p, Text: how})
}

// Print writes the text when the agent's word has come that all is here that
// processes that have ended wrote.
func (h *Host) Print(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		h.outs.say(text)
		return
	}
	h.prints = append(h.prints, text)
	h.send(protocol.LaunchCommand{Kind: doMark})
}

func (h *Host) Resumed() { h.input.stdin.Resume() }

func (h *Host) TakeStdin() { h.input.moveTo(h) }

func (h *Host) Drain() { h.send(protocol.LaunchCommand{Kind: doDrain}) }

// Close ends the agent. What is not out yet is written for a moment.
func (h *Host) Close() {
	h.send(protocol.LaunchCommand{Kind: doClose})
	h.link.Close()
	h.outs.close()
}

// seen takes what the agent says.
func (h *Host) seen(m *protocol.LaunchEvent) error {
	switch m.Kind {
	case seenOutput:
		if m.Stream != 1 && m.Stream != 2 {
			return fmt.Errorf("output of stream %d", m.Stream)
		}
		n := uint32(len(m.Data))
		stream := m.Stream
		if !h.outs.writers[stream-1].put(&h.bytes[stream-1], bytes.Clone(m.Data), func() { h.send(protocol.LaunchCommand{Kind: doWrote, Stream: stream, Count: n}) }) {
			return fmt.Errorf("more than %d bytes of output unasked", window)
		}
	case seenMarked:
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.prints) == 0 {
			return errors.New("a mark that was not set")
		}
		h.outs.say(h.prints[0])
		h.prints = h.prints[1:]
	case seenWants:
		return h.input.want(h)
	case seenReturn:
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

// ended: nothing comes any more.
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
