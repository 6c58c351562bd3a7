// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The file of groups has those that live, and grows with as many as live at a time.
func TestGroupsOfGuardian(t *testing.T) {
	fd, err := unix.MemfdCreate("groups", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	g := &Guardian{groups: fd, at: map[int]int{}}
	for i := range 1000 {
		g.Add(10 + i)
		if i >= 2 {
			g.Remove(10 + i - 2)
		}
	}
	g.Remove(5) // which is not there
	var list []uint32
	for b := make([]byte, 4); ; {
		if n, err := unix.Pread(fd, b, int64(4*len(list))); n == 0 || err != nil {
			break
		}
		list = append(list, binary.NativeEndian.Uint32(b))
	}
	slices.Sort(list)
	if !slices.Equal(list, []uint32{0, 1008, 1009}) || len(g.at) != 2 {
		t.Errorf("groups %v, %d known", list, len(g.at))
	}
}
