// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// early reports whether constant data moves before the change is handed out: sources
// compute meanwhile.
func (c *Config) early() bool {
	return c.Strategy != Blocking
}

// told counts bytes that have moved, of what the change waits for: while some process does
// there is no deadline.
func (a *adoption) told(bytes int) {
	if a.old < 0 {
		a.c.AddBytes(bytes)
	} else {
		a.m.w.AddBytes(bytes)
	}
}

// moveEarly moves constant data before the change is handed out, by a method of which
// sources have their part. A newcomer has said Ready, and waits in it; of the others it
// is what the goroutine does that has seen the change coming. What each waits for:
//
//	            NB                              T                           WD
//	newcomer    all it receives, in blocking calls, with each
//	source      its requests, which Checkpoint  what it receives, and that  as T; then for the newcomers
//	            tests                           what it offers is taken     that tell it that they have all
//
// The end is that each member says Release: nobody is handed the change before, so that
// neither a barrier nor an agreement is needed for it. After an error nothing of it is
// under way here. It ends with ctx.
func (a *adoption) moveEarly(ctx context.Context) error {
	a.early = ctx
	method, strategy := a.config.Method, a.config.Strategy
	a.pace = a.paced(ctx)
	for _, x := range a.moves {
		if err := a.touch(x, a.pace); err != nil {
			return err
		}
	}
	if err := a.meet(); err != nil {
		return err
	}
	if err := a.agree(); err != nil {
		return err
	}
	start := time.Now()
	err := a.moveArrays(Constant)
	switch {
	case err != nil:
	case strategy == NonBlocking:
		err = a.moveTested()
	default:
		err = a.move(dataOf(Constant))
	}
	if err == nil && a.lends() {
		err = a.moveLent()
	}
	if err == nil && strategy == WaitDrains && (method == COL || method == P2P) {
		err = a.drained()
	}
	a.times.Async = a.times.spent(Background, start)
	a.pace = nil
	return err
}

// tagDrained is behind the tags of arrays.
const tagDrained = mostArrays

// drained is the end of Wait-Drains where data comes by messages: a newcomer tells one source
// that it has all, and that waits for it.
func (a *adoption) drained() error {
	comm := a.comm()
	for d, source := range a.forNewcomers() {
		var err error
		switch {
		case d == a.new:
			err = mpi.Send(comm, []byte{}, source, tagDrained)
		case a.both.Rank() == source:
			_, err = mpi.Recv(comm, []byte{}, a.to[d], tagDrained)
		}
		if err != nil {
			return fmt.Errorf("mam: from %d to %d ranks: the end of newcomer %d: %w", a.times.NS, a.times.ND, d-len(a.stay), err)
		}
	}
	return nil
}

// moveTested is strategy NB: all requests are begun first.
func (a *adoption) moveTested() error {
	t := &tested{over: make(chan struct{})}
	var err error
	for i, x := range a.moves {
		if x.moved || x.Mode != Constant {
			continue
		}
		var reqs requests
		switch {
		case x.Replicated:
			reqs, err = a.replicate(x, i)
		case a.config.Method == P2P:
			reqs, err = a.pointToPoint(x, i)
		default:
			var r mpi.Request
			if r, err = a.ialltoallv(x); err == nil {
				reqs.add(r, 0)
			}
		}
		if t.reqs = append(t.reqs, reqs.list...); err != nil {
			t.giveUp(a.both)
			return moveError(x, a, err)
		}
	}
	for _, x := range a.moves {
		if x.moved || x.Mode != Constant {
			continue
		}
		if err = a.keepPieces(x); err != nil {
			t.giveUp(a.both)
			return moveError(x, a, err)
		}
	}
	if a.old < 0 {
		err = mpi.Waitall(t.reqs)
	} else {
		err = a.m.awaitTested(a.early, t, a.both)
	}
	if err != nil {
		return fmt.Errorf("mam: constant data, from %d to %d ranks: %w", a.times.NS, a.times.ND, err)
	}
	for _, x := range a.moves {
		if x.Mode == Constant {
			x.moved = true
			a.told(int(x.from))
		}
	}
	return nil
}

// tested are requests that Checkpoint tests while the sources compute.
type tested struct {
	mu   sync.Mutex // of who completes them
	reqs []mpi.Request
	over chan struct{} // closed when they are complete
	err  error         // when over is closed
}

// test completes the requests if all are complete. It waits for nobody.
func (t *tested) test() {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.reqs == nil {
		return
	}
	if done, err := mpi.Testall(t.reqs); done {
		t.end(err)
	}
}

// end notes what came of the requests; mu is held.
func (t *tested) end(err error) {
	t.reqs, t.err = nil, err
	close(t.over)
}

// wait completes the requests, which takes as long as it takes.
func (t *tested) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reqs != nil {
		t.end(mpi.Waitall(t.reqs))
	}
}

// giveUp ends the requests, for all ranks.
func (t *tested) giveUp(both *mpi.Comm) {
	both.Revoke()
	t.wait()
}

// awaitTested waits until Checkpoint has found the requests complete, or, if a Checkpoint
// waits itself, for the requests.
func (m *Module) awaitTested(ctx context.Context, t *tested, both *mpi.Comm) error {
	if len(t.reqs) == 0 {
		return nil
	}
	m.tested.Store(t)
	defer m.tested.Store(nil)
	select {
	case <-t.over:
	case <-m.waits:
		t.wait()
	case <-ctx.Done():
		t.giveUp(both)
	}
	return t.err
}

// whileComing is a context that ends when the change is over, and with it all waits for
// members that have not come to their part of it.
func (m *Module) whileComing(c *sessions.Change) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(m.life)
	m.done.Go(func() {
		if committed, err := c.Decided(ctx); err == nil && !committed {
			cancel(errMissed)
		}
	})
	return ctx, func() { cancel(nil) }
}
