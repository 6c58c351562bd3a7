// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"slices"
	"time"

	"gompi/sessions"
)

// sizeRequest is a change that this process has asked for.
type sizeRequest struct {
	size        int
	op          *sessions.Operation
	granted     chan struct{}    // closed when it is granted, and newcomersOf is set
	newcomersOf string           // the Result of the change, if newcomers join
	hasWaited   bool             // a Checkpoint has waited for the newcomers
	over        chan struct{}    // closed when it is decided, or does not happen
	outcome     sessions.Outcome // valid once over is closed
}

// times returns how long the change that made a set was with the manager, and how long its
// newcomers took to start; zero if the change was not that of this request. The head learns of
// the decision after the members.
func (x *sizeRequest) times(ctx context.Context, result string) (rms, spawn time.Duration) {
	if x.op.State() < sessions.Granted {
		return 0, 0 // it waits for this change
	}
	parts, err := x.op.Granted(ctx)
	if err != nil {
		return 0, 0 // it was not granted
	}
	i := slices.IndexFunc(parts, func(o sessions.Output) bool { return o.Result == result })
	if i < 0 {
		return 0, 0
	}
	<-x.over
	rms = x.outcome.Times.Granted
	if len(parts[i].Joining) > 0 {
		spawn = max(x.outcome.Times.Ready-rms, 0)
	}
	return rms, spawn
}

// noteGranted notes the result of a request that was granted.
func (x *sizeRequest) noteGranted(ctx context.Context) {
	select {
	case <-x.granted:
		return
	default:
	}
	if parts, err := x.op.Granted(ctx); err == nil && len(parts[0].Joining) > 0 {
		x.newcomersOf = parts[0].Result
	}
	close(x.granted)
}

// pending reports whether the request is under way.
func (x *sizeRequest) pending() bool {
	if x == nil {
		return false
	}
	select {
	case <-x.over:
		return false
	default:
		return true
	}
}

// submitRequest submits what SetTarget has said.
func (m *Module) submitRequest() error {
	n, ns := m.wanted, m.comm.Size()
	if m.request.pending() && m.request.size == n {
		return nil // it stays wanted, in case that request is rolled back
	}
	m.wanted = 0
	if n == 0 || !m.request.pending() && n == ns && m.config.Process != Baseline {
		return nil
	}
	r := sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Size: n}
	if n != ns || m.config.Process == Baseline {
		if err := m.noteMultiHost("mpi://WORLD"); err != nil {
			return err
		}
		config, why := repaired(m.config, ns, n, m.multiHost)
		if len(why) > 0 {
			m.printSettings(nil, why...)
		}
		config.fillRequest(&r)
		if config.Process == Baseline {
			r.In, r.Size, r.Add = []string{m.set}, 0, []int{n}
			for rank := range ns {
				r.Ranks = append(r.Ranks, rank)
			}
		}
	}
	o, err := sessions.Submit(m.ctx, r)
	if err != nil {
		return err
	}
	x := &sizeRequest{size: n, op: o, granted: make(chan struct{}), over: make(chan struct{})}
	m.request = x
	if o.State() >= sessions.Granted { // the usual case
		x.noteGranted(m.ctx)
	}
	m.done.Go(func() {
		defer close(x.over)
		defer o.Free()
		if _, err := o.Granted(m.life); err == nil {
			x.noteGranted(m.life)
		}
		x.outcome, _ = o.Decided(m.life) // the page says the decision
	})
	return nil
}
