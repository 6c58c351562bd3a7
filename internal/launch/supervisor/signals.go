// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/launch"
)

// catch redirects the signals that gompirun passes on. What was ignored when
// gompirun started (nohup) stays ignored, here and in the processes.
func catch() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 16)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT, unix.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(ch, s)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// signal passes a signal on to every process group.
func (h *Head) signal(sig os.Signal) {
	s, ok := sig.(unix.Signal)
	if !ok {
		return
	}
	switch s {
	case unix.SIGQUIT:
		h.look("SIGQUIT", func(text string, _ int) { h.print(text) })
		return
	case unix.SIGINT, unix.SIGTERM:
		// Where no process is left the first one is as good: there is only a
		// reader who has stopped reading.
		if h.interrupt++; h.interrupt > 1 || h.drained {
			h.impatient = true
			h.decide(launch.ExitSignal + int(s))
			h.ft = false
			h.kill()
			return
		}
		if h.ft {
			// The user means all of it, not some deaths to survive.
			h.ft, h.left = false, false
		}
	case unix.SIGCONT:
		for i := range h.hosts {
			h.hosts[i].Resumed()
		}
	}
	h.signalAll(s)
	if s == unix.SIGTSTP {
		// The shell is waiting for us to stop; the processes have.
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
}

// SignalTo sends a signal to the groups of processes, as another process of the job wants
// it; of those that have not been forked yet, then. It may be called from anywhere.
func (h *Head) SignalTo(ids []wire.ProcID, n int) {
	h.Post(func() {
		h.each(ids, func(p *proc) {
			if !p.exited {
				h.on(p).Signal(p.id, unix.Signal(n))
			}
		})
	})
}
