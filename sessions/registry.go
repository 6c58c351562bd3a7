// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"sync"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
)

// registry holds the sets that a process holds, for all its sessions: the counts of a set
// are those of the process. It keeps nothing of a set that is not held; the head does, as
// long as the set lives.
type registry struct {
	proc *core.Process

	mu   sync.Mutex // held during a request to the head, so that its answers are stored in order
	sets map[uint32]*setRef
}

type registryKey struct{}

func registryOf(p *core.Process) *registry {
	return p.Keep(registryKey{}, func() any { return &registry{proc: p, sets: map[uint32]*setRef{}} }).(*registry)
}

// setRef is a set that a process holds, with a count of its users.
type setRef struct {
	reg  *registry
	set  wire.Set       // under its own name
	over []*core.Output // the output that it is of an undecided change; nil: none

	refs int // guarded by reg.mu

	turn     sync.Mutex      // held by calls that all members make in one order; guards the two below
	had      protocol.SetUse // counts of the collective calls
	reported protocol.SetUse // the counts that the head knows
}

// hold looks a set up. drop must follow.
func (r *registry) hold(ctx context.Context, name string) (*setRef, error) {
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
		h = &setRef{reg: r, set: b.Set, had: b.Use, reported: b.Use}
		if o := core.NewOutput(b.Op, b.Set.Number); o != nil {
			h.over = []*core.Output{o}
		}
		r.sets[b.Set.Number] = h
	} else { // the head has counted this lookup as one more hold
		r.proc.Control.Tell(&protocol.Release{Number: b.Set.Number})
	}
	h.refs++
	return h, nil
}

// retain adds a user. drop must follow.
func (h *setRef) retain() *setRef {
	h.reg.mu.Lock()
	defer h.reg.mu.Unlock()
	h.refs++
	return h
}

// drop ends a use. The last one releases the set at the head and reports the counts.
// When the connection is lost the head releases the set itself.
func (h *setRef) drop() {
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
	if h.had != h.reported {
		m.Use = h.had
	}
	r.proc.Control.Tell(m)
}
