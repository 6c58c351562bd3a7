// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// A bell is found by its name, in this and in another process, and a name that leads to
// anything else is refused.
func TestNamedBell(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	name := tb.BellName()
	if name[1] == 0 {
		t.Skip("this kernel numbers no eventfds")
	}
	bell, err := ta.NamedBell(b, name)
	if err != nil {
		t.Fatal(err)
	}
	bell.Ring()
	bell.Close()
	var n [8]byte
	if _, err := unix.Read(tb.env.Bell, n[:]); err != nil || binary.NativeEndian.Uint64(n[:]) != 1 {
		t.Errorf("the bell was rung %d times, %v", binary.NativeEndian.Uint64(n[:]), err)
	}

	c := start(t, "lies")
	pid := uint64(c.cmd.Process.Pid) << 32
	name = [2]uint64{pid | firstFD + 1, eventfdID(c.fds[3])}
	if bell, err = c.tr.NamedBell(childID, name); err != nil {
		t.Fatal(err)
	}
	bell.Ring()
	bell.Close()
	c.stop(t)

	open := descriptors(t)
	own := uint64(os.Getpid()) << 32
	for _, bad := range [][2]uint64{
		{}, {tb.BellName()[0], 0}, {0, 1}, {tb.BellName()[0], tb.BellName()[1] + 1}, {ta.BellName()[0], tb.BellName()[1]},
		{own | uint64(tb.env.Segment), tb.BellName()[1]}, {own | math.MaxUint32, 1}, {own | 1<<20, 1}, {math.MaxUint64, 1}, {pid | firstFD + 1, name[1]},
	} {
		if _, err := ta.NamedBell(b, bad); err == nil {
			t.Errorf("the name %x leads to a bell", bad)
		}
	}
	if n := descriptors(t); n != open {
		t.Errorf("%d descriptors are open, %d before", n, open)
	}
	off := newFabric(map[string]string{"GOMPI_CMA": "off"})
	defer off.close()
	tc := off.open(t, a)
	defer tc.Close()
	if _, err := tc.NamedBell(b, tb.BellName()); err == nil || tc.BellName() != [2]uint64{} {
		t.Error("a bell by its name with GOMPI_CMA=off")
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}
