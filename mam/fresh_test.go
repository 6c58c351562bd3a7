// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestFreshUsedAgain: what the program has no more is free before new memory is taken.
func TestFreshUsedAgain(t *testing.T) {
	m := new(Module)
	_, old := m.fresh(worthBytes)
	m.leave(old)
	if _, b := m.fresh(worthBytes); b.bytes != worthBytes {
		t.Fatalf("%d bytes, not %d", b.bytes, worthBytes)
	}
	if old.at.Value() != nil {
		t.Error("memory that nobody has was not free when new memory was taken")
	}
}

// TestFreshLeavesSlices: memory that the program still has is not used again.
func TestFreshLeavesSlices(t *testing.T) {
	m := new(Module)
	old, b := m.fresh(worthBytes)
	for i := range old {
		old[i] = 7
	}
	m.leave(b)
	fresh, _ := m.fresh(worthBytes)
	for i := range fresh {
		if fresh[i] != 0 {
			t.Fatalf("byte %d of new memory is %d", i, fresh[i])
		}
		fresh[i] = 1
	}
	for i := range old {
		if old[i] != 7 {
			t.Fatalf("byte %d of memory that is still held became %d", i, old[i])
		}
	}
	if len(m.left) > 0 {
		t.Errorf("%d blocks are looked at again: each change would collect for them", len(m.left))
	}
}

// TestPace: work in the background rests where there are too many processes, and can be
// ended.
func TestPace(t *testing.T) {
	var none *pace
	if err := none.rest(time.Now().Add(-time.Hour)); err != nil {
		t.Error(err)
	}
	if err := (&pace{ctx: t.Context(), share: 100}).rest(time.Now().Add(-time.Hour)); err != nil {
		t.Error(err)
	}
	since := time.Now().Add(-time.Millisecond)
	begin := time.Now()
	if err := (&pace{ctx: t.Context(), share: share}).rest(since); err != nil {
		t.Error(err)
	}
	if d, least := time.Since(begin), time.Millisecond*(100-share)/share; d < least {
		t.Errorf("rested %v after a millisecond of work, at least %v wanted", d, least)
	}
	// Small pieces rest together, no less than each by itself would.
	p := &pace{ctx: t.Context(), share: share}
	begin = time.Now()
	for range 100 {
		if err := p.rest(time.Now().Add(-50 * time.Microsecond)); err != nil {
			t.Error(err)
		}
		if p.owed < -leastRest || p.owed >= leastRest {
			t.Errorf("%v are owed after a rest", p.owed)
		}
	}
	if d, least := time.Since(begin), 5*time.Millisecond*(100-share)/share-leastRest; d < least {
		t.Errorf("rested %v after 100 pieces of 50 us, at least %v wanted", d, least)
	}
	// Most of an hour of work was waiting.
	if begin = time.Now(); (&pace{ctx: t.Context(), share: share}).rest(begin.Add(-time.Hour)) != nil || time.Since(begin) > time.Minute {
		t.Errorf("rested %v", time.Since(begin))
	}
	why := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := (&pace{ctx: ctx, share: share}).rest(time.Now().Add(-time.Hour)); !errors.Is(err, why) {
		t.Errorf("a rest of hours ended with %v", err)
	}
}
