// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// fdPair is a connection with both ends here, of which one can be read.
func fdPair(t *testing.T) (*net.UnixConn, *socket) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	in, err := newSocket(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	f := os.NewFile(uintptr(fds[0]), "end")
	defer f.Close()
	out, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out.(*net.UnixConn), in
}

// A process at its limit of open files loses descriptors. Which frame they
// belonged to is known all the same: no frame gets those of another.
func TestLostDescriptors(t *testing.T) {
	out, in := fdPair(t)
	d := newFDReader(in)
	defer d.close()
	// room is how many of the descriptors of each frame can be had.
	list := []struct{ has, room int }{{2, 2}, {2, 0}, {3, 3}, {2, 1}, {3, 2}, {2, 0}, {3, 0}, {2, 2}}
	inodes := make([]uint64, len(list))
	inode := func(fd int) uint64 {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	total := 0
	for i, x := range list {
		own, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		fd := int(own.Fd())
		inodes[i] = inode(fd)
		var m protocol.Message = &protocol.Reply{}
		if x.has == protocol.MostFDs {
			m = &protocol.Welcomed{}
		}
		data := protocol.ShortFrame(uint32(i+1), x.has, m)
		if _, _, err := out.WriteMsgUnix(data, unix.UnixRights([]int{fd, fd, fd}[:x.has]...), nil); err != nil {
			t.Fatal(err)
		}
		own.Close()
		var next [protocol.MostFDs + 1]*os.File // at the lowest numbers that are free
		for i := range next {
			if next[i], err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
		}
		limit := next[x.room].Fd()
		for _, f := range next {
			f.Close()
		}
		restore := controltest.LimitFiles(t, uint64(limit))
		total += len(data)
		err = d.fill(total)
		restore()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, x := range list {
		f, fds, err := d.next()
		if err != nil || f.ID != uint32(i+1) {
			t.Fatalf("frame %d, %v; want %d", f.ID, err, i+1)
		}
		for j, fd := range fds {
			switch all := x.room == x.has && j < x.has; {
			case all && (fd < 0 || inode(fd) != inodes[i]):
				t.Errorf("frame %d, with room for %d: descriptor %d is not that of inode %d", f.ID, x.room, fd, inodes[i])
			case !all && fd >= 0:
				t.Errorf("frame %d, with room for %d of %d: descriptor %d", f.ID, x.room, x.has, fd)
			}
		}
		protocol.CloseFiles(fds[:]...)
	}
}
