// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"gompi/internal/progress"
	"gompi/transport"
)

// process is what the engine's progress.Machine polls for and puts to sleep.
type process Engine

var _ progress.Process = (*process)(nil)

// Poll is Engine.poll.
func (p *process) Poll(spin bool) int { return (*Engine)(p).poll(spin) }

// Arm prepares all transports for sleep.
func (p *process) Arm() bool {
	e := (*Engine)(p)
	if len(e.tight) > 0 {
		e.settleUp()
	}
	if e.colls.ready != nil || e.feeding() {
		return false
	}
	for _, l := range e.links {
		if !l.Arm() {
			return false
		}
	}
	return true
}

// Disarm ends that.
func (p *process) Disarm() {
	for _, l := range p.links {
		l.Disarm()
	}
}

// serveAt is how many bytes an operation must have for the service goroutine to
// take it up at once: waking it costs some microseconds.
const serveAt = 512 << 10

// serves reports whether an operation of so many bytes is left to the service
// goroutine when its caller goes computing.
func (e *Engine) serves(bytes int64) bool {
	return bytes >= serveAt && e.prog.Policy.Spare && !e.prog.Led() && !e.closed
}

// leave is called when a goroutine leaves an operation of so many bytes
// unfinished.
func (e *Engine) leave(bytes int64) {
	if e.serves(bytes) && !e.prog.Armed() {
		e.prog.AskService()
	}
}

// checkEvery is how often transports are asked to look for what was damaged on
// its way, for which somebody might wait without end.
const checkEvery = 5 * time.Second

// startChecks begins that, if a transport needs it.
func (e *Engine) startChecks() {
	for _, l := range e.links {
		if _, ok := l.Transport.(transport.Checker); ok {
			e.checks = time.AfterFunc(checkEvery, e.checkLinks)
			return
		}
	}
}

// checkLinks is called every checkEvery, until the engine is closed.
func (e *Engine) checkLinks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	for _, l := range e.links {
		if c, ok := l.Transport.(transport.Checker); ok {
			c.Check()
		}
	}
	e.checks.Reset(checkEvery)
	e.prog.Wake() // for what it has found
}

// Kick makes a sleeping process look at its transports.
func (e *Engine) Kick() { e.cfg.Sleeper.Wake() }
