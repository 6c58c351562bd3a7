// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"testing"
	"time"
)

// Who parks gets the gate also if the holder's last look at want came before.
func TestGateMissed(t *testing.T) {
	if !DelayedStores {
		t.Skip("here no look comes before the store")
	}
	g := NewGate()
	g.Lock()
	done := make(chan struct{})
	go func() {
		g.Lock()
		g.Unlock()
		close(done)
	}()
	for g.waiters.Load() == 0 {
		Pause()
	}
	time.AfterFunc(20*time.Millisecond, func() { g.state.Store(0) }) // an Unlock that sees nobody
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("parked for ever beside a free gate")
	}
}
