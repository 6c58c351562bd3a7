// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"sync"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
)

// registry is the sets that a process holds, for all its sessions: what it has had of
// a set counts whichever of them it was. It keeps nothing of a set that is not held;
// the head does, as long as there is one.
type registry struct {
	proc *core.Process

	mu   sync.Mutex // held while the head is asked, so that what it says of a set is the latest
	sets map[uint32]*held
}

type registryKey struct{}

func registryOf(p *core.Process) *registry {
	return p.Keep(registryKey{}, func() any { return &registry{proc: p, sets: map[uint32]*held{}} }).(*registry)
}

// held is a set that a process holds.
type held struct {
	reg  *registry
	set  wire.Set       // under its own name
	over []*core.Output // that it is, of a change that was not decided

	refs int // guarded by reg.mu

	turn sync.Mutex // of calls that all members make in one order
	had  protocol.SetUse
	told protocol.SetUse // what the head knows of that
}

// hold looks a set up. drop must follow.
func (r *registry) hold(ctx context.Context, name string) (*held, error) {
	if name = canonical(name); name == protocol.MainURI {
		r.proc.Heard(ctx)
	}
	if len(name) > protocol.MaxName {
		return nil, protocol.NotFound("a process set with a name of %d bytes, at most %d allowed", len(name), protocol.MaxName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var b protocol.DescribeBody
	if err := r.proc.Control.Ask(ctx, &protocol.Text{Kind: protocol.KindLookup, Text: name}, &b); err != nil {
		return nil, err
	}
	h := r.sets[b.Set.Number]
	if h == nil {
		b.Set.URI = protocol.SetURI(r.proc.Self.Job, b.Set.Number)
		h = &held{reg: r, set: b.Set, had: b.Use, told: b.Use}
		if o := core.NewOutput(b.Op, b.Set.Number); o != nil {
			h.over = []*core.Output{o}
		}
		r.sets[b.Set.Number] = h
	} else { // the head counts it once more
		r.proc.Control.Tell(&protocol.Release{Number: b.Set.Number})
	}
	h.refs++
	return h, nil
}

// again holds a set once more. drop must follow.
func (h *held) again() *held {
	h.reg.mu.Lock()
	defer h.reg.mu.Unlock()
	h.refs++
	return h
}

// drop ends a hold. The last one tells the head what the process has had, of which a
// lost connection needs no word.
func (h *held) drop() {
	r := h.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.refs--; h.refs > 0 {
		return
	}
	delete(r.sets, h.set.Number)
	h.turn.Lock()
	defer h.turn.Unlock()
	m := &protocol.Release{Number: h.set.Number}
	if h.had != h.told {
		m.Use = h.had
	}
	r.proc.Control.Tell(m)
}
