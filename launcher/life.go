// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// What happens to processes. Everything here runs on the head's goroutine.

// hear learns what the agent has seen.
func (h *head) hear(ev event) {
	p := h.procs.byID[ev.proc]
	if p == nil && ev.kind.ofProcess() {
		return
	}
	switch ev.kind {
	case evExited:
		h.exited(p, ev.end)
	case evLost:
		h.lost(p)
	case evDropped:
		h.dropped(p, ev.text)
	case evReaped:
		h.procs.forget(p)
	case evNoOutput:
		h.outputLost(ev.closed, ev.text)
	case evDrained:
		h.out = true
	}
}

func (h *head) joined(p *proc) {
	if p == nil || p.joined {
		return
	}
	p.joined = true
	p.world.joined++
	if q := p.world.quit; q != nil && q != p {
		p.world.quit = nil
		h.failure(q, ending{}, standing{othersJoined: true})
	}
}

func (h *head) finalized(p *proc) {
	if p != nil {
		p.finalized = true
	}
}

// dropped: the agent kills p.
func (h *head) dropped(p *proc, why string) {
	if !h.failed && !h.ending {
		h.say("%s (pid %d) was killed by gompirun: %s", p.name(), p.pid, why)
	}
}

// exited: p has ended; the others are told what that means.
func (h *head) exited(p *proc, e ending) {
	h.procs.ended(p)
	if p.discarded { // no failure of the job's, but others may know its pid
		h.agent.judged(p.id, fmt.Sprintf("%s (pid %d) was ended: one beside it could not be started", p.name(), p.pid), false)
		return
	}
	if p.lost { // it was told then
		h.agent.judged(p.id, "", false)
		return
	}
	st := h.standing(p, e)
	why, _, ok := judge(e, st)
	if ok {
		h.left = true
		if !st.joined && p.world.quit == nil {
			p.world.quit = p
		}
		why = e.String()
	} else {
		h.failure(p, e, st)
	}
	h.agent.judged(p.id, fmt.Sprintf("%s (pid %d) %s", p.name(), p.pid, why), ok)
}

// standing asks the server where the news of the exit may have overtaken the
// call that would make it a good one.
func (h *head) standing(p *proc, e ending) standing {
	if !p.finalized && e.status() == 0 {
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
func (h *head) failure(p *proc, e ending, st standing) {
	if h.ending {
		return
	}
	why, code, ok := judge(e, st)
	if ok {
		return
	}
	h.fails(fmt.Sprintf("%s (pid %d) %s after %s", p.name(), p.pid, why, lasted(time.Since(p.started))), code)
}

// lost: what called Init as p is gone without having called Finalize, and p runs
// on: others would wait for ever for what is not there.
func (h *head) lost(p *proc) {
	p.lost = true
	line := fmt.Sprintf("%s (pid %d): the program that called Init ended without calling Finalize after %s; pid %d runs on",
		p.name(), p.pid, lasted(time.Since(p.started)), p.pid)
	if !h.ending {
		h.fails(line, exitFailure)
	}
	h.agent.gone(p.id, line)
}

// fails prints why the job has failed and ends it, or with --ft only prints.
func (h *head) fails(line string, code int) {
	h.decide(code)
	if h.ft {
		h.say("%s; the job goes on", line)
		return
	}
	h.say("%s", line)
	h.end(line)
}

// decide keeps the first failure's status.
func (h *head) decide(status int) {
	if !h.failed {
		h.failed, h.status = true, status
	}
}

func (h *head) aborted(by wire.ProcID, code int, msg string) {
	if h.ending {
		return
	}
	who := "a process"
	if p := h.procs.byID[by]; p != nil {
		who = fmt.Sprintf("%s (pid %d)", p.name(), p.pid)
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
func (h *head) cannotStart(err error) {
	status := exitFailure
	if se := (*startError)(nil); errors.As(err, &se) {
		status = se.status
	}
	if !h.ending {
		h.say("%v", hinted(err))
	}
	h.decide(status)
	h.ft = false
	h.end(err.Error())
}

// outputLost: nobody takes our output any more. A closed pipe (| head) is no
// news to anybody.
func (h *head) outputLost(closed bool, why string) {
	status := exitFailure
	if closed {
		status = exitSignal + int(unix.SIGPIPE)
	} else if !h.ending {
		h.say("%s", why)
	}
	h.decide(status)
	h.ft = false
	h.end("the output of the job is lost")
}

// end asks every process to end: the event first, so that a process that can
// say why does, then SIGTERM, and SIGKILL after the grace.
func (h *head) end(why string) {
	if h.ending {
		return
	}
	h.ending = true
	h.server.Ending(why)
	h.agent.signalAll(unix.SIGTERM)
	h.agent.signalAll(unix.SIGCONT)
	h.grace = time.After(h.o.killGrace)
}

func (h *head) kill() {
	h.grace = nil
	h.ending = true
	h.agent.signalAll(unix.SIGKILL)
	if !h.hurried {
		h.hurried = true
		h.giveUp = time.After(killPatience)
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
