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
	var none *pace
	if err := none.rest(); err != nil {
		t.Error(err)
	}
	free := &pace{ctx: t.Context(), share: 100}
	if err := errors.Join(free.work(func() error { return nil }), free.rest()); err != nil || free.owed != 0 {
		t.Errorf("%v, and %v is owed", err, free.owed)
	}
	p := &pace{ctx: t.Context(), share: share}
	p.owe(time.Millisecond)
	begin := time.Now()
	if err := p.rest(); err != nil {
		t.Error(err)
	}
	if d, least := time.Since(begin), time.Millisecond*(100-share)/share; d < least {
		t.Errorf("rested %v after a millisecond of work, at least %v wanted", d, least)
	}
	// Small pieces rest together, no less than each by itself would.
	p = &pace{ctx: t.Context(), share: share}
	begin = time.Now()
	for range 100 {
		p.owe(50 * time.Microsecond)
		if err := p.rest(); err != nil {
			t.Error(err)
		}
		if p.owed < -leastRest || p.owed >= leastRest {
			t.Errorf("%v are owed after a rest", p.owed)
		}
	}
	if d, least := time.Since(begin), 5*time.Millisecond*(100-share)/share-leastRest; d < least {
		t.Errorf("rested %v after 100 pieces of 50 us, at least %v wanted", d, least)
	}
	// No piece is worth an hour.
	p = &pace{ctx: t.Context(), share: share}
	begin = time.Now()
	if p.owe(time.Hour); p.rest() != nil || time.Since(begin) > time.Minute {
		t.Errorf("rested %v", time.Since(begin))
	}
	why := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	p = &pace{ctx: ctx, share: share}
	if p.owe(time.Hour); !errors.Is(p.rest(), why) {
		t.Errorf("a rest of an hour ended with %v", p.rest())
	}
}

// TestPaceOfWaiting: who waits for another, or for a processor, works no longer for it.
func TestPaceOfWaiting(t *testing.T) {
	p, failed := &pace{ctx: t.Context(), share: share}, errors.New("failed")
	err := p.work(func() error {
		time.Sleep(20 * time.Millisecond) //archtest:sleep it is what must not count
		return failed
	})
	if err != failed {
		t.Errorf("work ended with %v, not %v", err, failed)
	}
	if most := 5 * time.Millisecond * (100 - share) / share; p.owed > most {
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
