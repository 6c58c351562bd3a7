// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"

	"gompi/internal/engine"
)

type outgoing struct{}

type flight struct{ open bool }

type targets struct{}

func (ts *targets) enter(t *Target) { t.open = true }
func (ts *targets) leave(t *Target) bool {
	open := t.open
	t.open = false
	return open
}

func (s *Space) dropOutgoing(p *peer, f *engine.Fault) {}

var errNotYet = &engine.Fault{Class: engine.Transport, Peer: -1, Err: errors.New("served targets are not there yet")}

func (t *Target) putServed(src engine.Buf, to Layout, n int64) *engine.Fault   { return errNotYet }
func (t *Target) getServed(dst engine.Buf, from Layout, n int64) *engine.Fault { return errNotYet }
func (t *Target) changeServed(src, result engine.Buf, at Layout, o *operation, n int64) *engine.Fault {
	return errNotYet
}
func (t *Target) swapServed(compare, value, result engine.Buf, off int64, o *operation) *engine.Fault {
	return errNotYet
}

// Flush waits until all operations on the target that this process has started
// are done there, and their results here.
func (t *Target) Flush(user context.Context) *engine.Fault { return nil }

// Pending reports whether operations on the target are on their way.
func (t *Target) Pending() bool { return false }

// Request completes when all operations on the target that were started before
// are done.
func (t *Target) Request(op engine.Op, ctx *engine.Context, rank int32) engine.Handle {
	h := t.s.e.NewOther(ctx, op)
	t.s.e.Complete(h, engine.Status{})
	return h
}
