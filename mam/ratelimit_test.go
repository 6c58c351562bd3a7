// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"testing"
	"time"

	"gompi/internal/host/cputime"
)

// TestPace: work in the background rests where there are too many processes, and can be
// ended.
func TestPace(t *testing.T) {
	var none *rateLimit
	if err := none.pause(); err != nil {
		t.Error(err)
	}
	free := &rateLimit{ctx: t.Context(), dutyCycle: 100}
	if err := errors.Join(free.work(func() error { return nil }), free.pause()); err != nil || free.owed != 0 {
		t.Errorf("%v, and %v is owed", err, free.owed)
	}
	p := &rateLimit{ctx: t.Context(), dutyCycle: dutyCycle}
	p.owe(time.Millisecond)
	begin := time.Now()
	if err := p.pause(); err != nil {
		t.Error(err)
	}
	if d, least := time.Since(begin), time.Millisecond*(100-dutyCycle)/dutyCycle; d < least {
		t.Errorf("rested %v after a millisecond of work, at least %v wanted", d, least)
	}
	// Small pieces rest together, no less than each by itself would.
	p = &rateLimit{ctx: t.Context(), dutyCycle: dutyCycle}
	begin = time.Now()
	for range 100 {
		p.owe(50 * time.Microsecond)
		if err := p.pause(); err != nil {
			t.Error(err)
		}
		if p.owed < -minPause || p.owed >= minPause {
			t.Errorf("%v are owed after a rest", p.owed)
		}
	}
	if d, least := time.Since(begin), 5*time.Millisecond*(100-dutyCycle)/dutyCycle-minPause; d < least {
		t.Errorf("rested %v after 100 pieces of 50 us, at least %v wanted", d, least)
	}
	// No piece is worth an hour.
	p = &rateLimit{ctx: t.Context(), dutyCycle: dutyCycle}
	begin = time.Now()
	if p.owe(time.Hour); p.pause() != nil || time.Since(begin) > time.Minute {
		t.Errorf("rested %v", time.Since(begin))
	}
	why := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	p = &rateLimit{ctx: ctx, dutyCycle: dutyCycle}
	if p.owe(time.Hour); !errors.Is(p.pause(), why) {
		t.Errorf("a rest of an hour ended with %v", p.pause())
	}
}

// TestPaceOfWaiting: who waits for another, or for a processor, works no longer for it.
func TestPaceOfWaiting(t *testing.T) {
	p, failed := &rateLimit{ctx: t.Context(), dutyCycle: dutyCycle}, errors.New("failed")
	err := p.work(func() error {
		time.Sleep(20 * time.Millisecond) //archtest:sleep it is what must not count
		return failed
	})
	if err != failed {
		t.Errorf("work ended with %v, not %v", err, failed)
	}
	if most := 5 * time.Millisecond * (100 - dutyCycle) / dutyCycle; p.owed > most {
		t.Errorf("%v are owed for 20 ms of sleep", p.owed)
	}
	begin := time.Now()
	_ = p.work(func() error {
		for cputime.Thread() > 0 && time.Since(begin) < 20*time.Millisecond {
		}
		return nil
	})
	if p.owed == 0 {
		t.Error("nothing is owed for 20 ms of computing")
	}
}
