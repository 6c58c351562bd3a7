// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// This file handles what happens to processes. All of it runs on the supervisor's
// goroutine.

// HandleEvent takes an event of the spawner of a host. Events about processes of other
// hosts are ignored.
func (sv *Supervisor) HandleEvent(host uint32, ev launch.Event) {
	p := sv.procs.byID[ev.Proc]
	if ev.Kind.OfProcess() && (p == nil || p.host != host) {
		return
	}
	switch ev.Kind {
	case launch.EvExited:
		if p.pid != 0 && !p.exited {
			sv.exited(p, ev.End)
		}
	case launch.EvLost:
		sv.lost(p)
	case launch.EvDropped:
		sv.dropped(p, ev.Text)
	case launch.EvReaped:
		sv.procs.forget(p)
	case launch.EvNoOutput:
		sv.outputLost(ev.Closed, ev.Text)
	case launch.EvDrained:
		sv.hosts[host].out = true
	case launch.EvStarted:
		if p.pid == 0 && ev.PID > 0 {
			if sv.procs.started(p, ev.PID); p.origin == launch.Spare {
				sv.spareRuns(p)
			}
		}
	case launch.EvBegun:
		sv.startDone(host, ev.Err())
	case launch.EvHostLost:
		sv.hostLost(host, ev.Text)
	}
}

func (sv *Supervisor) joined(p *proc) {
	if p == nil || p.joined {
		return
	}
	p.joined = true
	p.world.joined++
	if q := p.world.quitter; q != nil && q != p {
		p.world.quitter = nil
		sv.failIfBad(q, launch.Ending{}, controlState{othersJoined: true})
	}
}

func (sv *Supervisor) finalized(p *proc) {
	if p != nil {
		p.finalized = true
	}
}

// dropped reports that the spawner kills p, unless p was to end anyway.
func (sv *Supervisor) dropped(p *proc, why string) {
	if !sv.failed && !sv.ending && p.unwanted == "" {
		sv.sayOf(p, "%s (pid %d) was killed by gompirun: %s", p.Name(), p.pid, why)
	}
}

// exited handles the end of p, and tells the other processes what it means.
func (sv *Supervisor) exited(p *proc, e launch.Ending) {
	sv.procs.ended(p)
	if p.awaited {
		sv.control.Ended(p.id, e.Status())
	}
	if p.origin == launch.Spare { // the spawner has reaped it
		sv.spares.running--
		sv.spareGone(p)
		return
	}
	if p.unwanted != "" && e.Signal == unix.SIGKILL { // the job does not fail, but others may know the pid
		sv.on(p).ReportExit(p.id, fmt.Sprintf("%s (pid %d) was ended: %s", p.Name(), p.pid, p.unwanted), false)
		return
	}
	if p.lost { // that was reported already
		sv.on(p).ReportExit(p.id, "", false)
		return
	}
	st := sv.controlState(p, e)
	why, _, ok := judge(e, st)
	if ok {
		p.cleanExit, p.maybeLeft = true, sv.ft && sv.mayLeave(p)
		if sv.noteCleanExit(p); !st.joined && p.world.quitter == nil {
			p.world.quitter = p
		}
		why = e.String()
	} else {
		p.maybeLeft = sv.mayLeave(p)
		sv.failIfBad(p, e, st)
	}
	sv.on(p).ReportExit(p.id, fmt.Sprintf("%s (pid %d) %s", p.Name(), p.pid, why), ok)
}

// noteCleanExit notes that a process of the job has ended in order, as soon as both facts
// are known. The end of a process that left by a change says nothing about the end of the
// job.
func (sv *Supervisor) noteCleanExit(p *proc) {
	if p.cleanExit && p.counts() && !p.leftByChange && !p.maybeLeft {
		sv.someFinished = true
	}
}

// controlState asks the control plane again if the event of the exit may have overtaken
// the call that makes it a good one.
func (sv *Supervisor) controlState(p *proc, e launch.Ending) controlState {
	if !p.finalized && e.Status() == 0 {
		sv.catchUp(p)
	}
	others := p.world.joined
	if p.joined {
		others--
	}
	return controlState{joined: p.joined, finalized: p.finalized, othersJoined: others > 0}
}

// catchUp asks the control plane what p has called: that news may be late, or may have
// come under an earlier name of p.
func (sv *Supervisor) catchUp(p *proc) {
	at := sv.control.State(p.id)
	p.finalized = at == protocol.Finalized
	if at >= protocol.Joined {
		sv.joined(p)
	}
}

// failIfBad prints one line about a bad end and ends the job; with --ft it only prints.
func (sv *Supervisor) failIfBad(p *proc, e launch.Ending, st controlState) {
	if sv.ending || p.awaited && !st.joined {
		return
	}
	why, code, ok := judge(e, st)
	if ok {
		return
	}
	sv.fail(p, fmt.Sprintf("%s (pid %d) %s after %s", p.Name(), p.pid, why, formatDuration(time.Since(p.started))), code)
}

// lost handles a process whose program has ended without Finalize while its pid runs on.
// Other processes would wait forever for it.
func (sv *Supervisor) lost(p *proc) {
	p.lost, p.maybeLeft = true, sv.mayLeave(p)
	line := fmt.Sprintf("%s (pid %d): the program that called Init ended without calling Finalize after %s; pid %d runs on",
		p.Name(), p.pid, formatDuration(time.Since(p.started)), p.pid)
	sv.fail(p, line, launch.ExitFailure)
	sv.on(p).ReportLost(p.id, line)
}

// fail prints how p has failed and ends the job; with --ft it only prints. For a newcomer,
// and for a process that may have left by a change, it waits until it is known whether the
// process belongs to the job.
func (sv *Supervisor) fail(p *proc, line string, code int) {
	switch {
	case sv.ending || p.unwanted != "" || p.leftByChange:
		return
	case p.undecided || p.maybeLeft:
		p.failure = &failure{line, code}
		return
	}
	sv.setStatus(code)
	if sv.ft {
		sv.sayOf(p, "%s; the job goes on", line)
		return
	}
	sv.sayOf(p, "%s", line)
	sv.end(line)
}

// hostLost handles the loss of an agent, and of all processes of its host. With --ft that
// is like the death of each of them, unless it was the only host.
func (sv *Supervisor) hostLost(host uint32, why string) {
	x := &sv.hosts[host]
	if x.lost {
		return
	}
	x.lost, x.out = true, true
	err := errors.New("the agent is lost: " + why)
	if len(sv.hosts) > 1 {
		err = fmt.Errorf("the agent of host %d is lost: %s", host, why)
	}
	n, counts, undecided := 0, 0, 0
	for _, p := range slices.Clone(sv.procs.list) {
		if p.host != host {
			continue
		}
		if p.pid != 0 && !p.exited {
			if sv.procs.ended(p); p.origin == launch.Spare {
				sv.spares.running--
				sv.procs.forget(p)
				sv.spareGone(p)
				continue
			}
			switch n++; {
			case p.undecided:
				p.failure = &failure{fmt.Sprintf("%s (pid %d): %v", p.Name(), p.pid, err), launch.ExitFailure}
				undecided++
			case p.unwanted == "" && !p.leftByChange:
				counts++
			}
		}
		sv.procs.forget(p)
	}
	starting := slices.ContainsFunc(sv.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	// A job whose start is not complete cannot go on without them.
	beginning := slices.ContainsFunc(sv.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok && b.procs[0].first() })
	last := !slices.ContainsFunc(sv.hosts, func(x hostState) bool { return !x.lost })
	switch {
	case sv.ending:
	case last && (n > 0 || starting), beginning, counts > 0 && !sv.ft:
		sv.setStatus(launch.ExitFailure)
		sv.ft = false
		line := fmt.Sprintf("%v; %d processes are gone with it", err, n)
		sv.say("%s", line)
		sv.end(line)
	case counts > 0:
		sv.setStatus(launch.ExitFailure)
		sv.say("%v; %d processes are gone with it; the job goes on", err, n)
	case undecided > 0:
		sv.say("%v; %d processes that were to come are gone with it", err, undecided)
	}
	for starting {
		sv.startDone(host, err)
		starting = slices.ContainsFunc(sv.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	}
}

// setStatus sets the exit status; the first failure's is kept.
func (sv *Supervisor) setStatus(status int) {
	if !sv.failed {
		sv.failed, sv.status = true, status
	}
}

func (sv *Supervisor) aborted(by wire.ProcID, code int, msg string) {
	if sv.ending {
		return
	}
	who := "a process"
	if p := sv.procs.byID[by]; p != nil {
		who = fmt.Sprintf("%s (pid %d)", p.Name(), p.pid)
	}
	line := fmt.Sprintf("%s called Abort(%d)", who, code)
	if msg != "" {
		line += ": " + msg
	}
	// An abort ends a fault-tolerant job too, so its status counts.
	sv.failed, sv.status, sv.someFinished = true, abortStatus(code), false
	sv.ft = false
	sv.say("%s", line)
	sv.end(line)
}

// cannotStart ends the job because a program of the command line could not be started.
func (sv *Supervisor) cannotStart(err error) {
	status := launch.ExitFailure
	if se := (*launch.StartError)(nil); errors.As(err, &se) {
		status = se.Status
	}
	if !sv.ending {
		sv.say("%v", protocol.Hinted(err))
	}
	sv.setStatus(status)
	sv.ft = false
	sv.end(err.Error())
}

// outputLost ends the job because its output cannot be written any more. A closed pipe (|
// head) is not reported.
func (sv *Supervisor) outputLost(closed bool, why string) {
	status := launch.ExitFailure
	if closed {
		status = launch.ExitSignal + int(unix.SIGPIPE)
	} else if !sv.ending {
		sv.say("%s", why)
	}
	sv.setStatus(status)
	sv.ft = false
	sv.end("the output of the job is lost")
}

// end asks every process to end. The event goes first, so that a process can report the
// reason; then SIGTERM, and SIGKILL after the grace period.
func (sv *Supervisor) end(why string) {
	if sv.ending {
		return
	}
	sv.ending = true
	sv.control.Ending(why)
	sv.halt()
	sv.signalAll(unix.SIGTERM)
	sv.signalAll(unix.SIGCONT)
	sv.grace = time.After(sv.o.KillGrace)
}

// halt stops all starts under way.
func (sv *Supervisor) halt() {
	for _, b := range sv.starts {
		at := -1
		for _, p := range b.procs { // those of a host stand together
			if int(p.host) != at {
				at = int(p.host)
				sv.on(p).Halt(p.id)
			}
		}
	}
}

func (sv *Supervisor) kill() {
	sv.grace = nil
	sv.ending = true
	sv.halt()
	sv.signalAll(unix.SIGKILL)
	if !sv.killSent {
		sv.killSent = true
		sv.giveUp = time.After(killWait)
	}
}

// formatDuration writes a duration for people.
func formatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
