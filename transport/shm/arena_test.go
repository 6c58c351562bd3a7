// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

const testArena = 64 << 30

// newArena is the file of an arena as an agent gives it, each time another
// descriptor.
func newArena(t *testing.T) (file func() int) {
	t.Helper()
	fd, n, err := segment.CreateArena(testArena)
	if err != nil {
		t.Fatal(err)
	}
	if n != testArena {
		t.Skipf("files may have %d bytes", n)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func() int {
		again, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// shareArena lets two processes use n ranges of an arena.
func shareArena(t *testing.T, file func() int, ta, tb *Transport, n int) (as, bs [][]byte) {
	t.Helper()
	for i := range n {
		x := wire.ArenaRange{Arena: 3, Total: testArena, Off: int64(i+1) << 20, Bytes: 1 << 20}
		var mems [2][]byte
		for k, tr := range []*Transport{ta, tb} {
			if x.File = -1; tr.HeldArenas() == 0 {
				x.File = file()
			}
			m, err := tr.Attach(transport.SharedKey{}, 1<<20-5, x)
			if err != nil {
				t.Fatal(err)
			}
			if len(m) != 1<<20-5 || tr.HeldArenas() != 1<<3 {
				t.Fatalf("%d bytes, held %b", len(m), tr.HeldArenas())
			}
			mems[k] = m
		}
		if err := ta.Populate(mems[0][:4096]); err != nil {
			t.Skip("the kernel cannot do it: ", err)
		}
		mems[0][7] = byte(i + 1)
		if mems[1][7] != byte(i+1) {
			t.Fatalf("range %d is not the same in two processes", i)
		}
		as, bs = append(as, mems[0]), append(bs, mems[1])
	}
	return as, bs
}

// An arena is one mapping and no open file, however many ranges of it are used.
func TestArena(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	ta, tb := f.open(t, wire.ProcID{Job: 4, Serial: 1}), f.open(t, wire.ProcID{Job: 4, Serial: 2})
	defer tb.Close()
	file := newArena(t)
	for _, tr := range []*Transport{ta, tb} {
		_ = tr.memory.Take(1, func(int64) error { return nil }) // opens its files
	}
	files, pieces := openFiles(t), ta.shared.Load()
	as, bs := shareArena(t, file, ta, tb, 50)
	if n := openFiles(t); n > files {
		t.Errorf("%d files are open, %d before", n, files)
	}
	if n := ta.shared.Load(); n != pieces {
		t.Errorf("%d pieces are mapped one by one", n-pieces)
	}
	for i, bad := range map[string]wire.ArenaRange{
		"of another size": {Arena: 3, Total: testArena / 2, Off: 0, Bytes: 1 << 20},
		"in use":          {Arena: 3, Total: testArena, Off: 1 << 20, Bytes: 1 << 20},
		"before":          {Arena: 3, Total: testArena, Off: -4096, Bytes: 1 << 20},
		"behind":          {Arena: 3, Total: testArena, Off: testArena - 4096, Bytes: 1 << 20},
		"far behind":      {Arena: 3, Total: testArena, Off: 1<<63 - 4096, Bytes: 1 << 20},
		"inside a page":   {Arena: 3, Total: testArena, Off: 100, Bytes: 1 << 20},
		"too short":       {Arena: 3, Total: testArena, Off: 1 << 30, Bytes: 4096},
		"negative":        {Arena: 3, Total: testArena, Off: 1 << 30, Bytes: -4096},
		"too large":       {Arena: 3, Total: 1 << 62, Off: 1 << 61, Bytes: 1 << 20},
		"of no arena":     {Arena: wire.MaxArenas, Total: testArena, Off: 0, Bytes: 1 << 20},
		"of no file":      {Arena: 5, Total: testArena, Off: 0, Bytes: 1 << 20},
		"of a short file": {Arena: 5, Total: 2 * testArena, Off: 0, Bytes: 1 << 20, File: file()},
	} {
		if bad.File == 0 {
			bad.File = -1
		}
		if _, err := ta.Attach(transport.SharedKey{}, 1<<20, bad); err == nil {
			t.Errorf("took a range %s: %+v", i, bad)
		}
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d files are open after refusals, %d before", n, files)
	}
	ta.Leave(as[0])
	ta.Close()
	as[1][8] = 1 // who is still inside an operation
	for _, m := range as[1:] {
		ta.Leave(m)
	}
	for _, m := range bs {
		tb.Leave(m)
	}
	if n := len(ta.arenas.all) + len(ta.arenas.used); n != 0 {
		t.Errorf("%d arenas and ranges are left", n)
	}
}

// Where the address space is limited ranges are mapped one by one.
func TestArenaUnderAnAddressLimit(t *testing.T) {
	var size int64
	if b, err := os.ReadFile("/proc/self/statm"); err != nil {
		t.Skip(err)
	} else {
		for _, c := range b {
			if c < '0' || c > '9' {
				break
			}
			size = size*10 + int64(c-'0')
		}
	}
	if size *= pageBytes; size > testArena/2 {
		t.Skipf("this process has %d bytes of addresses", size)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: testArena * 3 / 4, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_AS, &was)
	f := newFabric(nil)
	defer f.close()
	ta, tb := f.open(t, wire.ProcID{Job: 4, Serial: 1}), f.open(t, wire.ProcID{Job: 4, Serial: 2})
	defer tb.Close()
	defer ta.Close()
	file := newArena(t)
	for _, tr := range []*Transport{ta, tb} {
		_ = tr.memory.Take(1, func(int64) error { return nil }) // opens its files
	}
	files, pieces := openFiles(t), ta.shared.Load()
	as, bs := shareArena(t, file, ta, tb, 3)
	if n := ta.shared.Load() - pieces; n != 3 {
		t.Errorf("%d ranges are mapped", n)
	}
	if n := openFiles(t); n != files+2 {
		t.Errorf("%d files are open, %d before", n, files)
	}
	ta.mostShared = ta.shared.Load()
	if _, err := ta.Attach(transport.SharedKey{}, 100, wire.ArenaRange{Arena: 3, Total: testArena, Off: 1 << 30, Bytes: 1 << 20, File: -1}); !errors.Is(err, transport.ErrUnavailable) {
		t.Errorf("a range more than may be mapped: %v", err)
	}
	for i := range as {
		ta.Leave(as[i])
		tb.Leave(bs[i])
	}
	if n := ta.shared.Load(); n != pieces {
		t.Errorf("%d ranges are mapped in the end", n-pieces)
	}
}
