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

// What happens to processes. Everything here runs on the head's goroutine.

// Hear learns what the agent of a host has seen. Of processes of others it has
// nothing to tell.
func (h *Head) Hear(host uint32, ev launch.Event) {
	p := h.procs.byID[ev.Proc]
	if ev.Kind.OfProcess() && (p == nil || p.host != host) {
		return
	}
	switch ev.Kind {
	case launch.EvExited:
		if p.pid != 0 && !p.exited {
			h.exited(p, ev.End)
		}
	case launch.EvLost:
		h.lost(p)
	case launch.EvDropped:
		h.dropped(p, ev.Text)
	case launch.EvReaped:
		h.procs.forget(p)
	case launch.EvNoOutput:
		h.outputLost(ev.Closed, ev.Text)
	case launch.EvDrained:
		h.hosts[host].out = true
	case launch.EvStarted:
		if p.pid == 0 && ev.PID > 0 {
			if h.procs.started(p, ev.PID); p.came == launch.Spare {
				h.spareRuns(p)
			}
		}
	case launch.EvBegun:
		h.begun(host, ev.Err())
	case launch.EvHostLost:
		h.hostLost(host, ev.Text)
	}
}

func (h *Head) joined(p *proc) {
	if p == nil || p.joined {
		return
	}
	p.joined = true
	p.world.joined++
	if q := p.world.quit; q != nil && q != p {
		p.world.quit = nil
		h.failure(q, launch.Ending{}, standing{othersJoined: true})
	}
}

func (h *Head) finalized(p *proc) {
	if p != nil {
		p.finalized = true
	}
}

// dropped: the agent kills p, which is news unless it was to end anyway.
func (h *Head) dropped(p *proc, why string) {
	if !h.failed && !h.ending && p.unwanted == "" {
		h.sayOf(p, "%s (pid %d) was killed by gompirun: %s", p.Name(), p.pid, why)
	}
}

// exited: p has ended; the others are told what that means.
func (h *Head) exited(p *proc, e launch.Ending) {
	h.procs.ended(p)
	if p.awaited {
		h.server.Ended(p.id, e.Status())
	}
	if p.came == launch.Spare { // the agent has reaped it
		h.spares.up--
		h.spareGone(p)
		return
	}
	if p.unwanted != "" && e.Signal == unix.SIGKILL { // no failure of the job's, but others may know its pid
		h.on(p).Judged(p.id, fmt.Sprintf("%s (pid %d) was ended: %s", p.Name(), p.pid, p.unwanted), false)
		return
	}
	if p.lost { // it was told then
		h.on(p).Judged(p.id, "", false)
		return
	}
	st := h.standing(p, e)
	why, _, ok := judge(e, st)
	if ok {
		p.well, p.goes = true, h.ft && h.mayLeave(p)
		if h.endsWell(p); !st.joined && p.world.quit == nil {
			p.world.quit = p
		}
		why = e.String()
	} else {
		p.goes = h.mayLeave(p)
		h.failure(p, e, st)
	}
	h.on(p).Judged(p.id, fmt.Sprintf("%s (pid %d) %s", p.Name(), p.pid, why), ok)
}

// endsWell notes that a process has ended in order without having been sent away, from
// when both are known: that others left by a change says nothing of how the job ends.
func (h *Head) endsWell(p *proc) {
	if p.well && p.counts() && !p.leaves && !p.goes {
		h.left = true
	}
}

// standing asks the server where the news of the exit may have overtaken the
// call that would make it a good one.
func (h *Head) standing(p *proc, e launch.Ending) standing {
	if !p.finalized && e.Status() == 0 {
		h.catchUp(p)
	}
	others := p.world.joined
	if p.joined {
		others--
	}
	return standing{joined: p.joined, finalized: p.finalized, othersJoined: others > 0}
}

// catchUp asks the server what p has done of which the news may not have come, or came
// when p was not known by its name.
func (h *Head) catchUp(p *proc) {
	at := h.server.State(p.id)
	p.finalized = at == protocol.Finalized
	if at >= protocol.Joined {
		h.joined(p)
	}
}

// failure prints the one line and ends the job, or with --ft only prints.
func (h *Head) failure(p *proc, e launch.Ending, st standing) {
	if h.ending || p.awaited && !st.joined {
		return
	}
	why, code, ok := judge(e, st)
	if ok {
		return
	}
	h.fails(p, fmt.Sprintf("%s (pid %d) %s after %s", p.Name(), p.pid, why, lasted(time.Since(p.started))), code)
}

// lost: what called Init as p is gone without having called Finalize, and p runs
// on: others would wait for ever for what is not there.
func (h *Head) lost(p *proc) {
	p.lost, p.goes = true, h.mayLeave(p)
	line := fmt.Sprintf("%s (pid %d): the program that called Init ended without calling Finalize after %s; pid %d runs on",
		p.Name(), p.pid, lasted(time.Since(p.started)), p.pid)
	h.fails(p, line, launch.ExitFailure)
	h.on(p).Gone(p.id, line)
}

// fails prints how p has failed and ends the job, or with --ft only prints. For
// a newcomer, and for a process that may have left by a change, it waits until the head
// knows whether the process belongs to the job.
func (h *Head) fails(p *proc, line string, code int) {
	switch {
	case h.ending || p.unwanted != "" || p.leaves:
		return
	case p.undecided || p.goes:
		p.failure = &failure{line, code}
		return
	}
	h.decide(code)
	if h.ft {
		h.sayOf(p, "%s; the job goes on", line)
		return
	}
	h.sayOf(p, "%s", line)
	h.end(line)
}

// hostLost: the agent is gone, and all that ran there with it. With --ft that is as
// the death of each of these, unless it was the only host.
func (h *Head) hostLost(host uint32, why string) {
	x := &h.hosts[host]
	if x.lost {
		return
	}
	x.lost, x.out = true, true
	err := errors.New("the agent is lost: " + why)
	if len(h.hosts) > 1 {
		err = fmt.Errorf("the agent of host %d is lost: %s", host, why)
	}
	n, counts, undecided := 0, 0, 0
	for _, p := range slices.Clone(h.procs.list) {
		if p.host != host {
			continue
		}
		if p.pid != 0 && !p.exited {
			if h.procs.ended(p); p.came == launch.Spare {
				h.spares.up--
				h.procs.forget(p)
				h.spareGone(p)
				continue
			}
			switch n++; {
			case p.undecided:
				p.failure = &failure{fmt.Sprintf("%s (pid %d): %v", p.Name(), p.pid, err), launch.ExitFailure}
				undecided++
			case p.unwanted == "" && !p.leaves:
				counts++
			}
		}
		h.procs.forget(p)
	}
	starting := slices.ContainsFunc(h.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	// Of a job that has not begun there is nothing to go on.
	beginning := slices.ContainsFunc(h.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok && b.procs[0].first() })
	last := !slices.ContainsFunc(h.hosts, func(x hostState) bool { return !x.lost })
	switch {
	case h.ending:
	case last && (n > 0 || starting), beginning, counts > 0 && !h.ft:
		h.decide(launch.ExitFailure)
		h.ft = false
		line := fmt.Sprintf("%v; %d processes are gone with it", err, n)
		h.say("%s", line)
		h.end(line)
	case counts > 0:
		h.decide(launch.ExitFailure)
		h.say("%v; %d processes are gone with it; the job goes on", err, n)
	case undecided > 0:
		h.say("%v; %d processes that were to come are gone with it", err, undecided)
	}
	for starting {
		h.begun(host, err)
		starting = slices.ContainsFunc(h.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	}
}

// decide keeps the first failure's status.
func (h *Head) decide(status int) {
	if !h.failed {
		h.failed, h.status = true, status
	}
}

func (h *Head) aborted(by wire.ProcID, code int, msg string) {
	if h.ending {
		return
	}
	who := "a process"
	if p := h.procs.byID[by]; p != nil {
		who = fmt.Sprintf("%s (pid %d)", p.Name(), p.pid)
	}
	line := fmt.Sprintf("%s called Abort(%d)", who, code)
	if msg != "" {
		line += ": " + msg
	}
	// An abort ends a fault tolerant job too, so it counts there as well.
	h.failed, h.status, h.left = true, abortStatus(code), false
	h.ft = false
	h.say("%s", line)
	h.end(line)
}

// cannotStart: something of the command line could not be started.
func (h *Head) cannotStart(err error) {
	status := launch.ExitFailure
	if se := (*launch.StartError)(nil); errors.As(err, &se) {
		status = se.Status
	}
	if !h.ending {
		h.say("%v", protocol.Hinted(err))
	}
	h.decide(status)
	h.ft = false
	h.end(err.Error())
}

// outputLost: nobody takes our output any more. A closed pipe (| head) is no
// news to anybody.
func (h *Head) outputLost(closed bool, why string) {
	status := launch.ExitFailure
	if closed {
		status = launch.ExitSignal + int(unix.SIGPIPE)
	} else if !h.ending {
		h.say("%s", why)
	}
	h.decide(status)
	h.ft = false
	h.end("the output of the job is lost")
}

// end asks every process to end: the event first, so that a process that can
// say why does, then SIGTERM, and SIGKILL after the grace.
func (h *Head) end(why string) {
	if h.ending {
		return
	}
	h.ending = true
	h.server.Ending(why)
	h.halt()
	h.signalAll(unix.SIGTERM)
	h.signalAll(unix.SIGCONT)
	h.grace = time.After(h.o.KillGrace)
}

// halt lets nothing more be started.
func (h *Head) halt() {
	for _, b := range h.starts {
		at := -1
		for _, p := range b.procs { // those of a host stand together
			if int(p.host) != at {
				at = int(p.host)
				h.on(p).Halt(p.id)
			}
		}
	}
}

func (h *Head) kill() {
	h.grace = nil
	h.ending = true
	h.halt()
	h.signalAll(unix.SIGKILL)
	if !h.hurried {
		h.hurried = true
		h.giveUp = time.After(killWait)
	}
}

// lasted writes a duration as people do.
func lasted(d time.Duration) string {
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
