// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// Host is what a head wants of an agent. All is one way.
type Host interface {
	// Open prepares for the first start.
	Open() error
	// Start forks processes in order; on an error the rest is not started. EvStarted
	// tells of each that was, and then EvBegun that these were all, or why not. Halt
	// ends the Start that p belongs to: what is not forked yet is not started.
	Start(list []Start)
	Halt(p wire.ProcID)
	// Adopt: a process that runs under another name is the newcomer s from now on. If
	// it has ended, so has s.
	Adopt(spare wire.ProcID, s Start)
	// Signal goes to the group of a process, SignalAll to those of all that
	// live; who is yet to be forked gets it then.
	Signal(p wire.ProcID, s unix.Signal)
	SignalAll(s unix.Signal)
	// Main says who is in the main set, in order, of which this host may have some.
	Main(procs []wire.ProcID)
	// TakeStdin: a process of this host reads standard input from now on, of which
	// one of another has had some.
	TakeStdin()
	// Rename says what processes are called from now on.
	Rename(list []Named)
	// Judged is the head's word on an exit that it was told of, for the others
	// in the job, and Gone that on a process that is lost.
	Judged(p wire.ProcID, how string, clean bool)
	Gone(p wire.ProcID, how string)
	// Print writes to standard error, after what processes that have ended
	// wrote.
	Print(text string)
	// Resumed: gompirun was continued.
	Resumed()
	// Drain lets the output end when the last process has written its own.
	Drain()
	// Close reaps what has ended, and leaves nothing behind if nothing runs.
	Close()
}

// Start is a process to start.
type Start struct {
	protocol.StartProc
	Label Label
	First bool // started by the command line; else while the job runs
	App   int  // its number on the command line
}

// Spares reports whether it is to be a spare.
func (s *Start) Spares() bool { return s.Proc.Job == 0 }

// OutputFile is the name under --output DIR; stream is stdout or stderr.
func (s *Start) OutputFile(stream string) string {
	if s.First {
		return fmt.Sprintf("rank.%d.%s", s.Rank, stream)
	}
	if s.Spares() {
		return fmt.Sprintf("spare.%d.%s", s.Proc.Serial, stream)
	}
	return fmt.Sprintf("proc.%d.%s", s.Proc.Serial, stream)
}

// EventKind says what an agent has seen.
type EventKind uint8

// What agents have seen.
const (
	EvExited   EventKind = iota + 1 // a process has ended; Judged is to come
	EvLost                          // what called Init is gone, the process runs on
	EvDropped                       // killed, because it broke the protocol or reads nothing
	EvReaped                        // nothing is left of a process
	EvNoOutput                      // nobody takes the output of the job any more
	EvDrained                       // all output is out
	EvStarted                       // a process runs
	EvBegun                         // a Start is done
	EvHostLost                      // nothing is heard of the agent any more
)

// OfProcess reports whether an event is about one process.
func (k EventKind) OfProcess() bool { return k <= EvReaped || k == EvStarted }

// Event is what an agent tells the head.
type Event struct {
	Kind   EventKind
	Proc   wire.ProcID // EvBegun: who could not be started, if that is known
	End    Ending      // EvExited
	PID    int         // EvStarted: for people
	Text   string      // EvDropped, EvNoOutput, EvHostLost: why; EvBegun: why not all
	Status int         // EvBegun: of gompirun, if not all
	Closed bool        // EvNoOutput: its reader has closed it
}

// Begun is the end of a Start.
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

// Err is what Begun was made of, as far as people and exit statuses go.
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
