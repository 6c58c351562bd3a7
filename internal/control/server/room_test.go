// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// A moment without descriptors is this process's own trouble, and passes.
func TestContactWithoutRoom(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	next, err := os.Open(os.DevNull) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	restore := controltest.LimitFiles(t, uint64(next.Fd()))
	next.Close()
	_, err = a.Contact(b.id)
	restore()
	if !errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), b.id.String()) {
		t.Error(err)
	}
	a.meet(b.id)
}

// A server that is held up gets all Watches and acts on them.
func TestWatchOfHeldServer(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	r.Server.mu.Lock()
	told := controltest.Async(t, func() error {
		for range 50000 {
			if err := a.Watch(wire.MembersOf(b.id)); err != nil {
				return err
			}
		}
		return nil
	})()
	r.Server.mu.Unlock()
	a.must(told)
	a.must(b.Finalize())
	a.expect(protocol.EvGone, b.id)
}
