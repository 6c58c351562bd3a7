// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"runtime"
	"time"

	"gompi/internal/host/cputime"
)

const (
	// dutyCycle is the share of a processor that background work takes, in per cent, where
	// others have to wait for one; with strategy T it is threadDutyCycle.
	dutyCycle       = 10
	threadDutyCycle = 27
	// maxPause bounds the pause for one piece, however long the machine took for it.
	maxPause = 50 * time.Millisecond
	// minPause is one pause for several pieces. A pause for each piece would make of 10 % of a
	// processor 3, because timers are late.
	minPause = 2 * time.Millisecond
)

// rateLimit leaves the processors to ranks that compute. A nil rateLimit is work at the
// commit, which has no limit. One goroutine at a time uses it.
type rateLimit struct {
	ctx       context.Context
	dutyCycle int           // in per cent of a processor; 100: no pauses
	owed      time.Duration // pauses for work that was done; negative: it has paused too long
}

// newRateLimit returns the limit of what this process does in the background. A source does
// it beside its own iterations.
func (rc *reconfiguration) newRateLimit(ctx context.Context) *rateLimit {
	least, more := 0, 0
	if rc.m.inputs.Hosts == 1 {
		least = rc.sources() + rc.newcomers()
	}
	if rc.old >= 0 {
		more = 1
		if !rc.schedule.background && rc.m.inputs.Hosts == 1 {
			more -= rc.newcomers() // they have said Ready, and wait
		}
	}
	l, host := &rateLimit{ctx: ctx, dutyCycle: 100}, rc.m.comm.Process().Core().Process()
	if !host.Crowded(least, more) {
		return l
	}
	// Processes that share a processor share the duty cycle, too.
	l.dutyCycle = max(1, rc.schedule.dutyCycle*host.Usable()/max(host.Usable(), host.Neighbors(), least))
	return l
}

// pauses reports whether pause sleeps.
func (l *rateLimit) pauses() bool { return l != nil && l.dutyCycle < 100 }

// work does a piece of work, for which pause will sleep. It counts the processor time of the
// thread, not the time in which the thread waits for a processor or for others.
func (l *rateLimit) work(do func() error) error {
	if !l.pauses() {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cputime.Thread()
	err := do()
	l.owe(cputime.Thread() - before)
	return err
}

// owe adds the pause for work that took a time.
func (l *rateLimit) owe(work time.Duration) {
	l.owed += min(work*time.Duration(100-l.dutyCycle)/time.Duration(l.dutyCycle), maxPause)
}

// pause sleeps for the work before, once that is worth a timer: a short sleep ends a
// millisecond late, which then counts for the next work.
func (l *rateLimit) pause() error {
	if !l.pauses() {
		return nil
	}
	if l.owed < minPause {
		return context.Cause(l.ctx)
	}
	began := time.Now()
	t := time.NewTimer(min(l.owed, maxPause))
	defer t.Stop()
	select {
	case <-t.C:
		l.owed = max(l.owed-time.Since(began), -minPause)
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

// inPieces calls do for pieces of memory, each with the offset of its first byte counted from
// at, with pauses between them.
func (l *rateLimit) inPieces(memory []byte, at int64, do func(piece []byte, at int64) error) error {
	for len(memory) > 0 {
		n := min(len(memory), pieceBytes)
		if err := l.work(func() error { return do(memory[:n], at) }); err != nil {
			return err
		}
		if memory, at = memory[n:], at+int64(n); len(memory) > 0 {
			if err := l.pause(); err != nil {
				return err
			}
		}
	}
	return nil
}
