// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// Host is a spawner as the supervisor sees it. All calls are one way: answers come as
// events.
type Host interface {
	// Open prepares for the first Start.
	Open() error
	// Start forks processes in order, and stops at the first error. An EvStarted reports
	// each process that runs; then one EvBegun reports that all were started, or the
	// error. Halt stops the Start that p belongs to: processes that are not forked yet are
	// not started.
	Start(list []Start)
	Halt(p wire.ProcID)
	// Adopt makes a spare process the newcomer s. If the spare has ended, so has s.
	Adopt(spare wire.ProcID, s Start)
	// Signal signals the process group of p, SignalAll those of all live processes. A
	// process that is not forked yet gets the signal when it is.
	Signal(p wire.ProcID, s unix.Signal)
	SignalAll(s unix.Signal)
	// SetMain gives the members of the main set, in order of rank, on all hosts.
	SetMain(procs []wire.ProcID)
	// TakeStdin moves standard input to a process of this host, from one of another host
	// that has read some of it.
	TakeStdin()
	// Rename gives processes new labels.
	Rename(list []Named)
	// ReportExit passes on the supervisor's judgement of an exit, for the other processes
	// of the job; ReportLost does so for a process that is lost.
	ReportExit(p wire.ProcID, how string, clean bool)
	ReportLost(p wire.ProcID, how string)
	// Print writes to standard error, after the output of processes that have ended.
	Print(text string)
	// Resumed is called when gompirun was continued (SIGCONT).
	Resumed()
	// Drain ends the output when the last process has written its own.
	Drain()
	// Close reaps ended processes, and if no process runs it leaves nothing behind.
	Close()
}

// Start describes one process to start.
type Start struct {
	protocol.StartProc
	Label Label
	First bool // started by the command line, not while the job runs
	App   int  // index of its program on the command line
}

// Spares reports whether the process is to be a spare.
func (s *Start) Spares() bool { return s.Proc.Job == 0 }

// OutputFile returns the file name under --output DIR; stream is stdout or stderr.
func (s *Start) OutputFile(stream string) string {
	if s.First {
		return fmt.Sprintf("rank.%d.%s", s.Rank, stream)
	}
	if s.Spares() {
		return fmt.Sprintf("spare.%d.%s", s.Proc.Serial, stream)
	}
	return fmt.Sprintf("proc.%d.%s", s.Proc.Serial, stream)
}

// EventKind tells what a spawner reports.
type EventKind uint8

// Kinds of events.
const (
	EvExited   EventKind = iota + 1 // a process has ended; the supervisor answers with ReportExit
	EvLost                          // the program that called Init has ended, but the pid runs on
	EvDropped                       // killed, because it broke the protocol or does not read
	EvReaped                        // the pid of a process is free
	EvNoOutput                      // the output of the job cannot be written any more
	EvDrained                       // all output is written
	EvStarted                       // a process runs
	EvBegun                         // a Start is complete, or has failed
	EvHostLost                      // the connection to the agent is lost
)

// OfProcess reports whether events of this kind are about one process.
func (k EventKind) OfProcess() bool { return k <= EvReaped || k == EvStarted }

// Event is a report of a spawner to the supervisor.
type Event struct {
	Kind   EventKind
	Proc   wire.ProcID // EvBegun: the process that could not be started, if known
	End    Ending      // EvExited
	PID    int         // EvStarted: the pid, for people only
	Text   string      // EvDropped, EvNoOutput, EvHostLost: the reason; EvBegun: the error
	Status int         // EvBegun: gompirun's exit status for the error
	Closed bool        // EvNoOutput: the reader has closed the pipe
}

// Begun makes the event for the end of a Start.
func Begun(err error) Event {
	ev := Event{Kind: EvBegun}
	if err != nil {
		ev.Status, ev.Text = ExitFailure, protocol.Hinted(err).Error()
		if se := (*StartError)(nil); errors.As(err, &se) {
			ev.Status = se.Status
		}
	}
	return ev
}

// Err returns the error that Begun was made from; only the text and the exit status are
// kept.
func (ev *Event) Err() error {
	if ev.Text == "" {
		return nil
	}
	err := error(&StartError{Status: ev.Status, Err: errors.New(ev.Text)})
	if ev.Proc != (wire.ProcID{}) {
		err = &protocol.NotStarted{Proc: ev.Proc, Err: err}
	}
	return err
}
