// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fdPair is a connection with both ends here.
func fdPair(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		ends[i] = c.(*net.UnixConn)
		t.Cleanup(func() { c.Close() })
	}
	return ends
}

// limitFiles lets this process have open files up to number n-1, until the
// function that it returns is called.
func limitFiles(t *testing.T, n uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = n
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// A process at its limit of open files loses descriptors. Which frame they
// belonged to is known all the same: no frame gets those of another.
func TestLostDescriptors(t *testing.T) {
	ends := fdPair(t)
	d := newFDReader(ends[1])
	defer d.close()
	// room is how many of the two descriptors of each frame can be had.
	rooms := []int{2, 0, 2, 1, 0, 0, 2}
	inodes := make([]uint64, len(rooms))
	inode := func(fd int) uint64 {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	total := 0
	for i, room := range rooms {
		own, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		fd := int(own.Fd())
		inodes[i] = inode(fd)
		data := appendFrame(nil, uint32(i+1), frameFDs, &replyMsg{})
		if _, _, err := ends[0].WriteMsgUnix(data, unix.UnixRights(fd, fd), nil); err != nil {
			t.Fatal(err)
		}
		own.Close()
		var next [frameFDs + 1]*os.File // at the lowest numbers that are free
		for i := range next {
			if next[i], err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
		}
		limit := next[room].Fd()
		for _, f := range next {
			f.Close()
		}
		restore := limitFiles(t, uint64(limit))
		total += len(data)
		err = d.fill(total)
		restore()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, room := range rooms {
		f, fds, err := d.next()
		if err != nil || f.id != uint32(i+1) {
			t.Fatalf("frame %d, %v; want %d", f.id, err, i+1)
		}
		for _, fd := range fds {
			if room < frameFDs && fd >= 0 || room == frameFDs && inode(fd) != inodes[i] {
				t.Errorf("frame %d, with room for %d: descriptor %d of inode %d, its own has %d", f.id, room, fd, inode(fd), inodes[i])
			}
		}
		closeFDs(fds[:])
	}
}

// A moment without descriptors is this process's own trouble, and passes.
func TestContactWithoutRoom(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	next, err := os.Open(os.DevNull) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	restore := limitFiles(t, uint64(next.Fd()))
	next.Close()
	_, err = a.Contact(b.id)
	restore()
	if !errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), b.id.String()) {
		t.Error(err)
	}
	a.meet(b.id)
}
