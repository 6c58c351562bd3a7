// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"testing"
	"time"

	"gompi/internal/control"
	"gompi/internal/launch"
)

// The last process ends while a Spawn of its is prepared: what the head does
// not come to any more is refused, and gompirun ends.
func TestSpawnAfterTheEnd(t *testing.T) {
	for _, early := range []bool{false, true} {
		h := New(&launch.Options{}, 1)
		h.Serve(&noPlane{}, &farHost{tell: func(ev launch.Event) { h.Hear(0, ev) }})
		spawned, closed := make(chan error, 1), make(chan struct{})
		spawn := func() { spawned <- h.Spawn([]control.StartProc{{Argv: []string{"x"}}}) }
		if early {
			go spawn()
			<-h.ready // it was posted
			h.close()
		} else {
			h.close()
			go spawn()
		}
		go func() {
			if err := <-spawned; !errors.Is(err, control.ErrEnding) {
				t.Error(err)
			}
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Fatalf("posted before the end %v: Spawn waits for a head that has ended", early)
		}
	}
}
