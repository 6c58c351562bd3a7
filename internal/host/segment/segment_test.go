// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

func create(t *testing.T) (seg, bell int) {
	t.Helper()
	seg, bell, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(seg); unix.Close(bell) })
	return seg, bell
}

// resident is the memory that the file holds, in bytes.
func resident(t *testing.T, fd int) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func TestCreate(t *testing.T) {
	seg, bell := create(t)
	if err := Check(seg, wire.ProcID{}); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, seg); got < InitialBytes || got > 128<<10 {
		t.Errorf("a new segment holds %d bytes; want %d to %d", got, InitialBytes, 128<<10)
	}
	for _, size := range []int64{SpanBytes - 4096, SpanBytes + 4096} {
		if err := unix.Ftruncate(seg, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncate to %d: %v; want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(seg), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("further seal: %v; want EPERM", err)
	}
	for _, fd := range []int{seg, bell} {
		if fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || fl&unix.FD_CLOEXEC == 0 {
			t.Errorf("fd flags %#x, %v; want close-on-exec", fl, err)
		}
	}
	var b [8]byte
	if _, err := unix.Read(bell, b[:]); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("read of a silent bell: %v; want EAGAIN", err)
	}
}

func TestCheckRefuses(t *testing.T) {
	if err := Check(int(os.Stdin.Fd()), wire.ProcID{}); err == nil {
		t.Error("Check accepts stdin")
	}
	fd, err := memfd()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, SpanBytes); err != nil {
		t.Fatal(err)
	}
	if err := Check(fd, wire.ProcID{}); err == nil {
		t.Error("Check accepts a file without seals")
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	if err := Check(fd, wire.ProcID{}); err == nil || !strings.Contains(err.Error(), "protocol") {
		t.Errorf("Check of a file without head: %v; want one about its protocol", err)
	}
}

// A segment says whose it is, to who wants to map that of another.
func TestOwner(t *testing.T) {
	seg, _ := create(t)
	owner := wire.ProcID{Job: 1<<63 | 5, Serial: 7}
	if err := SetOwner(seg, owner); err != nil {
		t.Fatal(err)
	}
	if err := Check(seg, owner); err != nil {
		t.Error(err)
	}
	for _, other := range []wire.ProcID{{}, {Job: owner.Job, Serial: 8}, {Job: 5, Serial: 7}} {
		if err := Check(seg, other); err == nil || !strings.Contains(err.Error(), owner.String()) {
			t.Errorf("segment of %v as that of %v: %v", owner, other, err)
		}
	}
}

func TestReserveMapRelease(t *testing.T) {
	seg, _ := create(t)
	const off, n = 1 << 20, 9 << 20 // more than two steps
	var mem Memory
	defer mem.Close()
	if err := mem.Reserve(seg, off, n); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, seg); got < InitialBytes+n {
		t.Errorf("%d bytes held; want %d", got, InitialBytes+n)
	}
	a, err := Map(seg, off, n, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Map(seg, off, n, false)
	if err != nil {
		t.Fatal(err)
	}
	copy(a, "hello")
	a[n-1] = 7
	if !bytes.HasPrefix(b, []byte("hello")) || b[n-1] != 7 {
		t.Error("two mappings differ")
	}
	if err := Release(seg, off, n); err != nil {
		t.Fatal(err)
	}
	if a[0] != 0 || b[n-1] != 0 {
		t.Error("released pages keep their content")
	}
	for _, m := range [][]byte{a, b} {
		if err := Unmap(m); err != nil {
			t.Error(err)
		}
	}
	if got := resident(t, seg); got > InitialBytes+16<<10 {
		t.Errorf("%d bytes held after release", got)
	}
}

func TestPopulate(t *testing.T) {
	seg, _ := create(t)
	var mem Memory
	defer mem.Close()
	m, err := Map(seg, 1<<20, 64<<10, true)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(m)
	before := resident(t, seg)
	if err := mem.Populate(m[16<<10:]); errors.Is(err, unix.EINVAL) {
		t.Skip("the kernel cannot do it: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if got := resident(t, seg) - before; got != 48<<10 {
		t.Errorf("%d bytes more are held; want %d", got, 48<<10)
	}
	if err := mem.Populate(m[100:]); err == nil {
		t.Error("Populate accepts a place inside a page")
	}
}

func TestRanges(t *testing.T) {
	seg, _ := create(t)
	for _, r := range [][2]int64{{-1, 1}, {0, 0}, {0, -1}, {SpanBytes, 1}, {0, SpanBytes + 1}, {1 << 62, 1 << 62}} {
		if err := new(Memory).Reserve(seg, r[0], r[1]); err == nil {
			t.Errorf("Reserve accepts %v", r)
		}
		if _, err := Map(seg, r[0], r[1], true); err == nil {
			t.Errorf("Map accepts %v", r)
		}
		if err := Release(seg, r[0], r[1]); err == nil {
			t.Errorf("Release accepts %v", r)
		}
	}
	if _, err := Map(seg, 100, 100, false); err == nil {
		t.Error("Map accepts an offset inside a page")
	}
}

func TestCheckMemory(t *testing.T) {
	none := func(int64) (int64, bool) { return 0, false }
	tight := func(int64) (int64, bool) { return 3 << 20, true }
	check := func(n, free int64, headroom func(int64) (int64, bool)) error {
		_, err := checkMemory(n, ReserveStep, 2<<20, free, headroom)
		return err
	}
	if err := check(1<<20, -1, none); err != nil {
		t.Errorf("nothing known, nothing limited: %v", err)
	}
	if err := check(1<<20, 3<<20, tight); err != nil {
		t.Errorf("just enough: %v", err)
	}
	var nm *NoMemoryError
	if err := check(2<<20, 3<<20, none); !errors.As(err, &nm) || nm.Need != 4<<20 || nm.Found != 3<<20 || nm.Limit != "system" || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("system short: %v", err)
	}
	err := check(2<<20, -1, tight)
	if want := "not enough memory for shared segment: 4.0 MiB needed, 3.0 MiB found (memory cgroup)"; err == nil || err.Error() != want {
		t.Errorf("cgroup short: %v; want %s", err, want)
	}
	for free, want := range map[int64]bool{3 << 20: true, 1 << 29: true, 2 << 30: false, -1: false} {
		if tight, err := checkMemory(1<<20, ReserveStep, 2<<20, free, none); tight != want || err != nil {
			t.Errorf("1 MiB of %d bytes: tight is %v, %v; want %v", free, tight, err, want)
		}
	}
}

func TestParseAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:  5 kB\nMemFree: 4 kB\nMemAvailable:   24405 kB\nBuffers: 0 kB\n": 24405 << 10,
		"MemTotal:  5 kB\n":                     -1,
		"MemAvailable: 12":                      -1,
		"MemAvailable: -3 kB\n":                 -1,
		"MemAvailable: 99999999999999999999 kB": -1,
	} {
		if got := parseAvailable([]byte(text)); got != want {
			t.Errorf("%q: %d; want %d", text, got, want)
		}
	}
	var m Memory
	defer m.Close()
	if got := m.available(); got < 1<<20 {
		t.Errorf("this machine has %d bytes available", got)
	}
}

func BenchmarkCreate(b *testing.B) {
	for b.Loop() {
		seg, bell, err := Create()
		if err != nil {
			b.Fatal(err)
		}
		unix.Close(seg)
		unix.Close(bell)
	}
}

func BenchmarkReserveOnePage(b *testing.B) {
	seg, bell, err := Create()
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(seg)
	defer unix.Close(bell)
	var mem Memory
	defer mem.Close()
	for b.Loop() {
		if err := mem.Reserve(seg, Rings, 4096); err != nil {
			b.Fatal(err)
		}
	}
}
