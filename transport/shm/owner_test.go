// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// A contact that comes with somebody else's segment is used by nobody.
func TestWrongSegment(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	ids := [3]wire.ProcID{{Job: 3, Serial: 1}, {Job: 3, Serial: 2}, {Job: 3, Serial: 3}}
	var trs [3]*Transport
	for i, id := range ids {
		trs[i] = f.open(t, id)
		defer trs[i].Close()
	}
	_, place, err := trs[2].Share(4096)
	if err != nil {
		t.Fatal(err)
	}
	wrong := func() wire.Contact {
		c := f.Contact(ids[2], ids[0])
		c.Proc = ids[1]
		return c
	}
	if _, err := trs[0].Connect(wrong()); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("Connect: %v", err)
	}
	if trs[2].own.claimed.Load() != 0 {
		t.Error("process 3 has a fast box that was meant for process 2")
	}
	if _, err := trs[0].Join(wrong(), place, 4096); err == nil {
		t.Error("joined memory of process 3 as that of process 2")
	}
	if m, err := trs[0].Join(f.Contact(ids[2], ids[0]), place, 4096); err != nil {
		t.Error(err)
	} else {
		trs[0].Leave(m)
	}
}
