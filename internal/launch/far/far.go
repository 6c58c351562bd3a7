// SPDX-License-Identifier: Apache-2.0

// Package far joins the head of a launcher with the agent of another host, which
// has none of gompirun's descriptors: Host is the agent as the head sees it, Agent
// the head as the agent does. What they say goes over a link, beside what the
// control plane says; output and input, too.
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

// Errands, beside those of launch.Host.
const (
	doSetup     = iota + 1 // Data: a Setup
	doStart                // Starts; Clean: the last of a Start
	doHalt                 // Proc
	doAdopt                // Count: the spare; Starts: what it is
	doMain                 // Names: their processes; Clean: the last of a Main
	doRename               // Names
	doSignal               // Proc, Signal
	doSignalAll            // Signal
	doJudged               // Proc, Text, Clean
	doGone                 // Proc, Text
	doMark                 // seenMarked, after what processes that have ended wrote
	doDrain
	doClose
	doWrote  // Count bytes of Stream are out
	doInput  // Data of standard input; none: its end
	doReturn // seenReturn of what of it was not read
)

// What is seen, beside events.
const (
	seenOutput = iota + 64 // Data of Stream
	seenMarked
	seenWants  // a piece of standard input
	seenReturn // Data that others are to read; none: that was all
)

// window is how much of a stream may be on its way to a head that cannot write it.
const window = 1 << 20

// Setup is what an agent is told first.
type Setup struct {
	Job     wire.JobID
	Host    uint32
	Options launch.Options
}

// setupWait is how long an agent waits for its Setup, and the head for taking it.
const setupWait = 30 * time.Second

// Write sends the setup over a connection that is to become a link.
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
	frame, err := protocol.AppendFrame(nil, 0, 0, &protocol.LaunchCommand{Kind: doSetup, Data: data})
	if err != nil {
		return err
	}
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	return conn.SetWriteDeadline(time.Time{})
}

// ReadSetup is the other end of Write.
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
	if m.Kind != doSetup {
		return nil, fmt.Errorf("first errand is %d", m.Kind)
	}
	if err := json.Unmarshal(m.Data, s); err != nil {
		return nil, err
	}
	if s.Job == 0 || len(s.Options.Apps) == 0 {
		return nil, errors.New("a job without a number or programs")
	}
	return s, conn.SetReadDeadline(time.Time{})
}

// seenOf and eventOf turn an event into what travels, and back.
func seenOf(ev *launch.Event) *protocol.LaunchEvent {
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
