// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/engine/progress"

// poller is the engine in the role that progress.Machine polls and puts to sleep.
type poller Engine

var _ progress.Process = (*poller)(nil)

// Poll is Engine.poll.
func (p *poller) Poll(spin bool) int { return (*Engine)(p).poll(spin) }

// Arm prepares all transports for sleep.
func (p *poller) Arm() bool {
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

// Disarm ends Arm.
func (p *poller) Disarm() {
	for _, l := range p.links {
		l.Disarm()
	}
}
