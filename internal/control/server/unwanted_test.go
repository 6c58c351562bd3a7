// SPDX-License-Identifier: Apache-2.0

//go:build linux

package server

import (
	"errors"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// TestUnwanted: a newcomer beside which one cannot be started is told that it is not
// wanted, whatever it asks before it is killed.
func TestUnwanted(t *testing.T) {
	started, fail := make(chan []protocol.StartProc, 1), make(chan struct{})
	e := newElastic(t, 1, func(cfg *Config) {
		cfg.Launch = func(l *Launch) error {
			started <- l.Procs
			<-fail
			return errors.New("no room")
		}
	})
	w := e.joinAll()[0].follow(e.world)
	op := w.submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}})
	k := e.joinAs((<-started)[0], 4000)
	close(fail)
	if b := w.await(op.Op, change.Done); b.State != change.RolledBack {
		t.Errorf("%+v", b)
	}
	for _, ask := range []protocol.Message{&protocol.Await{Op: op.Op, Until: change.Adopting}, &protocol.Subscribe{Set: e.world.Number, Options: everyStep}} {
		if err := k.Ask(bg, ask, nil); !errors.Is(err, protocol.ErrEnding) {
			t.Errorf("%T: %v", ask, err)
		}
	}
}
