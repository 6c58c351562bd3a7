// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"runtime"
	"time"

	"gompi/internal/host/cputime"
)

// share of a processor that work in the background takes, in per cent, while others have
// to wait for one; with strategy T threadShare.
const (
	share       = 10
	threadShare = 27
	// mostRest is as long as a piece can want, whatever the machine took for it.
	mostRest = 50 * time.Millisecond
	// leastRest is one for several pieces: each by itself would make of 10 % of a processor 3.
	leastRest = 2 * time.Millisecond
)

// pace leaves the processors to those who compute; nil: work is not in the background. It is
// for one goroutine at a time.
type pace struct {
	ctx   context.Context
	share int           // of a processor, in per cent
	owed  time.Duration // of rest, for work that was done; below 0: what was rested too long
}

// paced is the pace of what this process does in the background: that of a source beside its
// own iterations.
func (a *adoption) paced(ctx context.Context) *pace {
	least, more := 0, 0
	if a.m.inputs.Hosts == 1 {
		least = len(a.from) - len(a.dead()) + len(a.to) - len(a.stay)
	}
	if a.old >= 0 {
		more = 1
		if a.config.Strategy == Blocking && a.m.inputs.Hosts == 1 {
			more -= a.newcomers() // they have said Ready, and wait
		}
	}
	p, host := &pace{ctx: ctx, share: 100}, a.m.comm.Process().Core().Process()
	if !host.Crowded(least, more) {
		return p
	}
	if p.share = share; a.config.Strategy == Thread {
		p.share = threadShare
	}
	// Of a processor with several processes each takes its part.
	p.share = max(1, p.share*host.Usable()/max(host.Usable(), host.Neighbors(), least))
	return p
}

// rests reports whether rest sleeps.
func (p *pace) rests() bool { return p != nil && p.share < 100 }

// work does a piece of work, for which rest will rest: as long as it takes a processor, not
// as long as it waits for one, or for others.
func (p *pace) work(do func() error) error {
	if !p.rests() {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cputime.Thread()
	err := do()
	p.owe(cputime.Thread() - before)
	return err
}

// owe has rest sleep for work that took so long.
func (p *pace) owe(work time.Duration) {
	p.owed += min(work*time.Duration(100-p.share)/time.Duration(p.share), mostRest)
}

// rest sleeps for the work before, as soon as it is worth a timer: that of a short sleep is
// a millisecond late, which is work's then.
func (p *pace) rest() error {
	if !p.rests() {
		return nil
	}
	if p.owed < leastRest {
		return context.Cause(p.ctx)
	}
	began := time.Now()
	t := time.NewTimer(min(p.owed, mostRest))
	defer t.Stop()
	select {
	case <-t.C:
		p.owed = max(p.owed-time.Since(began), -leastRest)
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}
