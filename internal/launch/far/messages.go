// SPDX-License-Identifier: Apache-2.0

// Package far connects the supervisor with the spawner of another host, which has none of
// gompirun's descriptors. Host is the spawner as the supervisor sees it, Receiver carries
// the supervisor's calls out on the host itself. Calls, events, output and input use a
// link, beside the messages of the control plane.
package far

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// Kinds of commands: the calls of launch.Host and some more. The fields of the message
// follow each.
const (
	cmdSetup     = iota + 1 // Data: a Setup
	cmdStart                // Starts; Clean: the last part of a Start
	cmdHalt                 // Proc
	cmdAdopt                // Count: the spare; Starts: the newcomer
	cmdMain                 // Names: the members; Clean: the last part of a SetMain
	cmdRename               // Names
	cmdSignal               // Proc, Signal
	cmdSignalAll            // Signal
	cmdJudged               // Proc, Text, Clean
	cmdGone                 // Proc, Text
	cmdMark                 // asks for eventMarked, after the output of processes that have ended
	cmdDrain
	cmdClose
	cmdWrote  // Count bytes of Stream are written
	cmdInput  // Data of standard input; empty: its end
	cmdReturn // asks for eventReturn with the input that was not read
)

// Kinds of events beside those of package launch.
const (
	eventOutput = iota + 64 // Data of Stream
	eventMarked
	eventWants  // asks for a piece of standard input
	eventReturn // Data that was not read; empty: the last
)

// window bounds the bytes of a stream that are sent but not written.
const window = 1 << 20

// Setup is the first message to an agent.
type Setup struct {
	Job     wire.JobID
	Host    uint32
	Options launch.Options
}

// setupWait is the time limit for an agent to get its Setup, and for the supervisor to
// send it.
const setupWait = 30 * time.Second

// Write sends the setup over a connection that becomes a link afterwards.
func (s *Setup) Write(conn net.Conn) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(data) > protocol.MaxSetup {
		return fmt.Errorf("the command line and its settings have %d bytes, at most %d allowed with several hosts", len(data), protocol.MaxSetup)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(setupWait)); err != nil {
		return err
	}
	frame, err := protocol.AppendFrame(nil, 0, 0, &protocol.LaunchCommand{Kind: cmdSetup, Data: data})
	if err != nil {
		return err
	}
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	return conn.SetWriteDeadline(time.Time{})
}

// ReadSetup reads the setup that Write sends.
func ReadSetup(conn net.Conn) (*Setup, error) {
	if err := conn.SetReadDeadline(time.Now().Add(setupWait)); err != nil {
		return nil, err
	}
	var head [protocol.FrameHead]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	f, n, err := protocol.ParseHead(head[:])
	if err != nil {
		return nil, err
	}
	if f.Kind != protocol.KindLaunchCommand || f.FDs != 0 {
		return nil, fmt.Errorf("first frame is %v", f.Kind)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	var m protocol.LaunchCommand
	if err := protocol.Decode(&m, body); err != nil {
		return nil, err
	}
	s := &Setup{}
	if m.Kind != cmdSetup {
		return nil, fmt.Errorf("first command is %d", m.Kind)
	}
	if err := json.Unmarshal(m.Data, s); err != nil {
		return nil, err
	}
	if s.Job == 0 || len(s.Options.Apps) == 0 {
		return nil, errors.New("a job without a number or programs")
	}
	return s, conn.SetReadDeadline(time.Time{})
}

// launchEvent and eventOf convert an event to its message and back.
func launchEvent(ev *launch.Event) *protocol.LaunchEvent {
	m := &protocol.LaunchEvent{Kind: uint8(ev.Kind), Proc: ev.Proc, Signal: int(ev.End.Signal), Core: ev.End.Core, Code: ev.End.Code, PID: ev.PID, Closed: ev.Closed, Text: ev.Text}
	if ev.Kind == launch.EvBegun {
		m.Code = ev.Status
	}
	return m
}

func eventOf(m *protocol.LaunchEvent) (launch.Event, error) {
	ev := launch.Event{Kind: launch.EventKind(m.Kind), Proc: m.Proc, PID: m.PID, Text: m.Text, Closed: m.Closed}
	switch ev.Kind {
	case launch.EvExited:
		ev.End = launch.Ending{Signal: unix.Signal(m.Signal), Core: m.Core, Code: m.Code}
	case launch.EvBegun:
		ev.Status = m.Code
	case launch.EvLost, launch.EvDropped, launch.EvReaped, launch.EvNoOutput, launch.EvDrained, launch.EvStarted:
	default:
		return ev, fmt.Errorf("unknown event %d", m.Kind)
	}
	return ev, nil
}
