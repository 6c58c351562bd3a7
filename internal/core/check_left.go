// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gompi/internal/engine"
)

// With GOMPI_CHECK=1 a process that leaves tells what it has left: messages that it has
// not received, operations that nobody has waited for, communicators and windows that
// it has not freed. That is no error.

// maxLeft bounds the lines of each kind.
const maxLeft = 20

// windowSuffix ends the name of the communicator that a window has.
const windowSuffix = "/window"

// made notes a communicator of the program's, and where it made it.
func (k *Checker) made(c *Comm) {
	switch c.Name() {
	case "WORLD", "SELF", "PARENT":
		return // nobody need free these
	}
	if engine.Through("mam.") {
		return // the module's, which frees it later
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.comms == nil {
		k.comms = map[*Comm]string{}
	}
	k.comms[c] = engine.Caller()
}

// gone notes that it was freed.
func (k *Checker) gone(c *Comm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.comms, c)
}

// retired forgets the communicators of a process that leaves the others by a change: they
// are of no use to it any more, and end with it.
func (k *Checker) retired() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.comms)
}

// left is what the process has left, a line each.
func (k *Checker) left(e *engine.Engine) (lines []string) {
	messages := e.Unreceived()
	k.mu.Lock()
	var uses []*Use
	for _, u := range k.uses {
		if !u.h.IsNull() {
			uses = append(uses, u)
		}
	}
	var comms []string
	for c, site := range k.comms {
		what, name := "communicator", c.Name()
		if n, ok := strings.CutSuffix(name, windowSuffix); ok {
			what, name = "window", n
		}
		comms = append(comms, fmt.Sprintf("the %s %s of %d ranks, made at %s, was not freed", what, name, c.Size, site))
	}
	k.mu.Unlock()
	add := func(list []string) {
		slices.Sort(list)
		lines = append(lines, list[:min(len(list), maxLeft)]...)
		if n := len(list) - maxLeft; n > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", n))
		}
	}
	add(messages)
	var open []string
	for _, u := range uses {
		if u.engine.Alive(u.h) {
			open = append(open, fmt.Sprintf("%v, started at %s, was not completed by Wait or Test", u, u.site))
		}
	}
	add(open)
	add(comms)
	return lines
}

// tellLeft says what the process has left.
func (p *Process) tellLeft() {
	if p.Check == nil {
		return
	}
	at := engine.Caller()
	for _, line := range p.Check.left(p.Engine) {
		if p.sayLeft != nil {
			p.sayLeft(fmt.Sprintf("%s: %s", p.Called(), line))
			continue
		}
		fmt.Fprintf(os.Stderr, "gompi: %s ends at %s: %s\n", p.Called(), at, line)
	}
}
