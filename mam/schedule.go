// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/sessions"
)

// schedule is what a strategy consists of: which data moves at which moment.
type schedule struct {
	background bool // constant data moves while sources compute, and variable data is pre-copied
	polled     bool // Checkpoint tests the requests, no goroutine waits for them
	drains     bool // a source waits until the newcomers have their data
	dutyCycle  int  // of background work on a crowded host, in per cent of a processor
}

// schedules is the table of strategies, by their values.
var schedules = [...]schedule{
	Blocking:    {dutyCycle: dutyCycle},
	NonBlocking: {dutyCycle: dutyCycle, background: true, polled: true},
	Thread:      {dutyCycle: threadDutyCycle, background: true},
	WaitDrains:  {dutyCycle: dutyCycle, background: true, drains: true},
}

// beforeReady is the part of a newcomer before it says Ready.
func (rc *reconfiguration) beforeReady(ctx context.Context) error {
	if err := rc.allocateEarly(rc.newRateLimit(ctx)); err != nil || !rc.schedule.background {
		return err
	}
	return rc.mover.ready(ctx)
}

// whileComputing is the part of a source before its Release, and of a newcomer after its
// Ready.
func (rc *reconfiguration) whileComputing(ctx context.Context) error {
	if !rc.schedule.background {
		return nil
	}
	return rc.mover.early(ctx)
}

// atDelivery is what all do together when the change was delivered. If nothing has moved
// early they make the merged communicator first. When data is lost, all know it by then, so a
// process that returns the loss knows that all others reach it.
func (rc *reconfiguration) atDelivery() error {
	rc.background = nil
	var err error
	if rc.merged == nil {
		err = rc.connect()
	}
	if err == nil {
		err = rc.compareRegistries()
	}
	switch {
	case rc.lost != nil && (err == nil || processGone(err)): // another one may have ended for it already
		return rc.lost
	case err != nil:
		return err
	}
	return rc.transferAll(Constant)
}

// transferAll moves, at the commit, all data of a mode that is not done.
func (rc *reconfiguration) transferAll(mode Mode) error {
	start, touched := time.Now(), rc.times.Touch
	some := len(rc.pending(mode)) > 0
	if err := rc.inPlace.finish(rc.pending(mode)); err != nil {
		return err
	}
	if mode == Constant && rc.schedule.background {
		return rc.checkConstant() // it is there
	}
	if err := rc.transferEncoded(rc.pending(mode)); err != nil {
		return err
	}
	if err := rc.mover.finish(rc.pending(mode)); err != nil {
		return err
	}
	if some {
		rc.times.Sync += rc.times.spent(AtCommit, start) - (rc.times.Touch - touched)
	}
	return nil
}

// pending returns the data of a mode that is not done.
func (rc *reconfiguration) pending(mode Mode) (list []*transfer) {
	for _, x := range rc.transfers {
		if x.Mode == mode && !x.done {
			list = append(list, x)
		}
	}
	return list
}

// checkConstant reports constant data that should have moved in the background.
func (rc *reconfiguration) checkConstant() error {
	if list := rc.pending(Constant); len(list) > 0 && rc.new >= 0 {
		return fmt.Errorf("gompi: BUG: %q has not moved, from %d to %d ranks", list[0].Name, rc.times.NS, rc.times.ND)
	}
	return nil
}

// preCopies reports whether some variable data is pre-copied in this change.
func (rc *reconfiguration) preCopies() bool {
	return rc.schedule.background && slices.ContainsFunc(rc.transfers, func(x *transfer) bool { return x.canPreCopy() })
}

// errLateRollback is the error of a change that was rolled back at its delivery on this
// process.
var errLateRollback = errors.New("what has moved early of the change is gone, as it was rolled back")

// untilRollback returns a context that ends when the change is rolled back. With it end all
// waits for members that have not come to their part of the change.
func (m *Module) untilRollback(c *sessions.Change) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(m.life)
	m.done.Go(func() {
		if committed, err := c.Decided(ctx); err == nil && !committed {
			cancel(errLateRollback)
		}
	})
	return ctx, func() { cancel(nil) }
}
