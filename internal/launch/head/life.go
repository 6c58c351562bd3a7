// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/launch"
	"gompi/internal/wire"
)

// What happens to processes. Everything here runs on the head's goroutine.

// Hear learns what the agent has seen.
func (h *Head) Hear(ev launch.Event) {
	p := h.procs.byID[ev.Proc]
	if p == nil && ev.Kind.OfProcess() {
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
		h.out = true
	case launch.EvStarted:
		if p.pid == 0 && ev.PID > 0 {
			h.procs.started(p, ev.PID)
		}
	case launch.EvBegun:
		h.begun(ev.Err())
	case launch.EvHostLost:
		h.hostLost(ev.Text)
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

// dropped: the agent kills p.
func (h *Head) dropped(p *proc, why string) {
	if !h.failed && !h.ending {
		h.say("%s (pid %d) was killed by gompirun: %s", p.Name(), p.pid, why)
	}
}

// exited: p has ended; the others are told what that means.
func (h *Head) exited(p *proc, e launch.Ending) {
	h.procs.ended(p)
	if p.unwanted != "" && e.Signal == unix.SIGKILL { // no failure of the job's, but others may know its pid
		h.agent.Judged(p.id, fmt.Sprintf("%s (pid %d) was ended: %s", p.Name(), p.pid, p.unwanted), false)
		return
	}
	if p.lost { // it was told then
		h.agent.Judged(p.id, "", false)
		return
	}
	st := h.standing(p, e)
	why, _, ok := judge(e, st)
	if ok {
		if h.left = h.left || p.counts(); !st.joined && p.world.quit == nil {
			p.world.quit = p
		}
		why = e.String()
	} else {
		h.failure(p, e, st)
	}
	h.agent.Judged(p.id, fmt.Sprintf("%s (pid %d) %s", p.Name(), p.pid, why), ok)
}

// standing asks the server where the news of the exit may have overtaken the
// call that would make it a good one.
func (h *Head) standing(p *proc, e launch.Ending) standing {
	if !p.finalized && e.Status() == 0 {
		at := h.server.State(p.id)
		p.finalized = at == control.Finalized
		if at >= control.Joined {
			h.joined(p)
		}
	}
	others := p.world.joined
	if p.joined {
		others--
	}
	return standing{joined: p.joined, finalized: p.finalized, othersJoined: others > 0}
}

// failure prints the one line and ends the job, or with --ft only prints.
func (h *Head) failure(p *proc, e launch.Ending, st standing) {
	if h.ending {
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
	p.lost = true
	line := fmt.Sprintf("%s (pid %d): the program that called Init ended without calling Finalize after %s; pid %d runs on",
		p.Name(), p.pid, lasted(time.Since(p.started)), p.pid)
	h.fails(p, line, launch.ExitFailure)
	h.agent.Gone(p.id, line)
}

// fails prints how p has failed and ends the job, or with --ft only prints. Of a
// newcomer that is put off until it is known whether it is one of the job's.
func (h *Head) fails(p *proc, line string, code int) {
	switch {
	case h.ending || p.unwanted != "" || p.leaves:
		return
	case p.undecided:
		p.failure = &failure{line, code}
		return
	}
	h.decide(code)
	if h.ft {
		h.say("%s; the job goes on", line)
		return
	}
	h.say("%s", line)
	h.end(line)
}

// hostLost: the agent is gone, and all that ran there with it.
func (h *Head) hostLost(why string) {
	n := 0
	for _, p := range h.procs.list {
		if p.pid != 0 && !p.exited {
			h.procs.ended(p)
			n++
		}
	}
	h.drained, h.out = true, true
	err := fmt.Errorf("the agent is lost: %s", why)
	if n > 0 || len(h.starts) > 0 {
		h.decide(launch.ExitFailure)
		h.ft = false
		h.ending = true
		h.say("%v; %d processes are gone with it", err, n)
	}
	for len(h.starts) > 0 {
		h.begun(err)
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
		h.say("%v", launch.Hinted(err))
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
	h.agent.SignalAll(unix.SIGTERM)
	h.agent.SignalAll(unix.SIGCONT)
	h.grace = time.After(h.o.KillGrace)
}

// halt lets nothing more be started.
func (h *Head) halt() {
	for _, b := range h.starts {
		h.agent.Halt(b.procs[0].id)
	}
}

func (h *Head) kill() {
	h.grace = nil
	h.ending = true
	h.halt()
	h.agent.SignalAll(unix.SIGKILL)
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
