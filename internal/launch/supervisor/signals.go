// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/launch"
)

// catch catches the signals that gompirun passes on. A signal that was ignored when
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
func (sv *Supervisor) signal(sig os.Signal) {
	s, ok := sig.(unix.Signal)
	if !ok {
		return
	}
	switch s {
	case unix.SIGQUIT:
		sv.inspect("SIGQUIT", func(text string, _ int) { sv.print(text) })
		return
	case unix.SIGINT, unix.SIGTERM:
		// If no process is left, the first signal acts like a second: only a reader of the
		// output is left, and it does not read.
		if sv.interrupts++; sv.interrupts > 1 || sv.drained {
			sv.dropOutput = true
			sv.setStatus(launch.ExitSignal + int(s))
			sv.ft = false
			sv.kill()
			return
		}
		if sv.ft {
			// The user wants the whole job to end, although it survives deaths.
			sv.ft, sv.someFinished = false, false
		}
	case unix.SIGCONT:
		for i := range sv.hosts {
			sv.hosts[i].Resumed()
		}
	}
	sv.signalAll(s)
	if s == unix.SIGTSTP {
		// The shell waits for gompirun to stop; the processes have stopped.
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
}

// SignalTo sends a signal to the groups of processes, for another process of the job.
// Processes that are not forked yet get it when they are. It may be called from any
// goroutine.
func (sv *Supervisor) SignalTo(ids []wire.ProcID, n int) {
	sv.Post(func() {
		sv.forEach(ids, func(p *proc) {
			if !p.exited {
				sv.on(p).Signal(p.id, unix.Signal(n))
			}
		})
	})
}
