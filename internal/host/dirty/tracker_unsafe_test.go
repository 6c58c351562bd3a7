// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dirty

// unsafe: another process writes to an address.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func tracker(t testing.TB) *Tracker {
	k, err := Open()
	if err != nil {
		t.Skip("the kernel cannot do it: ", err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// pages is memory of a kind that programs have.
var pages = map[string]func(t *testing.T, n int) []byte{
	"heap": func(t *testing.T, n int) []byte { return make([]byte, n) },
	"heap, not from its beginning": func(t *testing.T, n int) []byte {
		return make([]byte, n+3*ChunkBytes)[777:][:n]
	},
	"mapped": func(t *testing.T, n int) []byte { return mapped(t, n, unix.MAP_PRIVATE|unix.MAP_ANON) },
	"huge pages": func(t *testing.T, n int) []byte {
		b := mapped(t, n+4<<20, unix.MAP_PRIVATE|unix.MAP_ANON)
		skip := int(-uintptr(unsafe.Pointer(&b[0])) & (2<<20 - 1))
		unix.Madvise(b[skip:][:n], unix.MADV_HUGEPAGE)
		return b[skip:][:n]
	},
}

func mapped(t testing.TB, n, flags int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

const writerEnv = "DIRTY_TEST_WRITER"

func TestMain(m *testing.M) {
	if os.Getenv(writerEnv) != "" {
		writeForOthers()
		return
	}
	os.Exit(m.Run())
}

// writeForOthers writes a byte to addresses of a process, as its lines say: pid, address.
func writeForOthers() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var pid int
		var at uintptr
		fmt.Sscan(in.Text(), &pid, &at)
		b := []byte{0xee}
		_, err := unix.ProcessVMWritev(pid, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: at, Len: 1}}, 0)
		fmt.Println(err)
	}
}

// writer is another process that writes to memory of this one.
func writer(t *testing.T) func(b []byte) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	lines := bufio.NewReader(out)
	return func(b []byte) {
		fmt.Fprintln(in, os.Getpid(), uint64(uintptr(unsafe.Pointer(&b[0]))))
		if text, err := lines.ReadString('\n'); err != nil || text != "<nil>\n" {
			t.Fatalf("another process cannot write: %s, %v", text, err)
		}
	}
}

// All ways of writing to all kinds of memory are found, and nothing else but ends of pages
// that are others', too.
func TestTracker(t *testing.T) {
	k := tracker(t)
	other := writer(t)
	pipe := make([]int, 2)
	if err := unix.Pipe(pipe); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	ways := []func(b []byte){
		func(b []byte) { b[0]++ },
		func(b []byte) { copy(b, "something else") },
		func(b []byte) { clear(b) },
		func(b []byte) {
			unix.Write(pipe[1], []byte("ten bytes."))
			if n, err := unix.Read(pipe[0], b); err != nil || n != min(10, len(b)) {
				t.Fatal(n, err)
			}
			for rest := 10 - len(b); rest > 0; {
				n, err := unix.Read(pipe[0], make([]byte, rest))
				if err != nil {
					t.Fatal(err)
				}
				rest -= n
			}
		},
		func(b []byte) { other(b) },
	}
	for name, of := range pages {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, uint64(len(name))))
			for _, touched := range []bool{true, false} {
				n := 300<<10 + 1234
				if name == "huge pages" {
					n = 2<<20 + 1234
				}
				mem := of(t, n)
				if touched {
					for i := 0; i < n; i += ChunkBytes {
						mem[i] = 1
					}
				}
				skew := int(uintptr(unsafe.Pointer(&mem[0])) % ChunkBytes)
				for range 2 {
					w, err := k.Arm(mem)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := k.Arm(mem[n/2:]); err == nil {
						t.Error("it is armed twice")
					}
					twin := newTwin(n, skew)
					if skew > 0 {
						twin.add(0, 1)
					}
					if (n+skew)%ChunkBytes > 0 {
						twin.add(n-1, n)
					}
					for range 3 {
						for range r.IntN(40) {
							from := r.IntN(n)
							to := min(n, from+1+r.IntN(20))
							if r.IntN(20) == 0 {
								to = min(n, from+r.IntN(n/4)+1)
							}
							way := r.IntN(len(ways))
							ways[way](mem[from:to])
							switch way {
							case 0, 4:
								to = from + 1
							case 1:
								to = min(to, from+len("something else"))
							case 3:
								to = min(to, from+10)
							}
							twin.add(from, to)
						}
						_ = mem[r.IntN(n)] // reading is no writing
						runtime.GC()
						s, err := w.Written()
						if err != nil {
							t.Fatal(err)
						}
						twin.same(t, s, r)
					}
					if err := w.Disarm(); err != nil {
						t.Error(err)
					}
					if _, err := w.Written(); err == nil {
						t.Error("what was disarmed is still watched")
					}
					if err := w.Disarm(); err != nil {
						t.Error("the second time: ", err)
					}
				}
			}
		})
	}
}

// Pages that a program has the kernel forget are others afterwards.
func TestForgottenPages(t *testing.T) {
	k := tracker(t)
	mem := mapped(t, 64*ChunkBytes, unix.MAP_PRIVATE|unix.MAP_ANON)
	for i := range mem {
		mem[i] = 7
	}
	w, err := k.Arm(mem)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Disarm()
	if err := unix.Madvise(mem[8*ChunkBytes:][:4*ChunkBytes], unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	twin := newTwin(len(mem), 0)
	twin.add(8*ChunkBytes, 12*ChunkBytes)
	s, err := w.Written()
	if err != nil {
		t.Fatal(err)
	}
	twin.same(t, s, rand.New(rand.NewPCG(1, 1)))
}

// Memory that others may map is refused, as is what has no whole page.
func TestRefused(t *testing.T) {
	k := tracker(t)
	shared := mapped(t, 4*ChunkBytes, unix.MAP_SHARED|unix.MAP_ANON)
	if _, err := k.Arm(shared); !errors.Is(err, errShared) {
		t.Errorf("shared: %v", err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	file, err := unix.Mmap(int(self.Fd()), 0, 4*ChunkBytes, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(file)
	if _, err := k.Arm(file); !errors.Is(err, errShared) {
		t.Errorf("of a file: %v", err)
	}
	for _, n := range []int{0, 1, ChunkBytes - 1} {
		if _, err := k.Arm(make([]byte, 2*ChunkBytes)[1:][:n]); !errors.Is(err, errSmall) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	two := mapped(t, 4*ChunkBytes, unix.MAP_PRIVATE|unix.MAP_ANON)
	unix.Mprotect(two[:ChunkBytes], unix.PROT_READ) // two mappings beside each other
	if w, err := k.Arm(two); err != nil {
		t.Errorf("two mappings: %v", err)
	} else {
		w.Disarm()
	}
}

func TestCovers(t *testing.T) {
	const maps = `00400000-00600000 r-xp 00000000 08:01 1234 /bin/a program
c000000000-c000400000 rw-p 00000000 00:00 0 [anon: Go: heap]
c000400000-c004000000 ---p 00000000 00:00 0
c004000000-c005000000 rw-s 00000000 00:01 77 /memfd:x (deleted)
c005000000-c006000000 rw-p 00000000 00:00 0`
	for _, c := range []struct {
		start, end uintptr
		is         bool
	}{
		{0xc000000000, 0xc000001000, true}, {0xc0003ff000, 0xc000401000, true}, {0xc000000000, 0xc004000000, true},
		{0xc000000000, 0xc004001000, false}, {0xc004001000, 0xc004002000, false}, {0x400000, 0x401000, false},
		{0xbffffff000, 0xc000001000, false}, {0xc005fff000, 0xc006001000, false}, {0x700000, 0x701000, false}, {0xc005000000, 0xc006000000, true},
	} {
		if is, err := covers(strings.NewReader(maps), c.start, c.end); is != c.is || err != nil {
			t.Errorf("%#x to %#x: %v, %v", c.start, c.end, is, err)
		}
	}
	for _, bad := range []string{"x", "1-2", "1 rw-p 0 0 0", "z-2 rw-p 0 0 0", "1-z rw-p 0 0 0"} {
		if is, err := covers(strings.NewReader(bad), 1, 2); is || err == nil {
			t.Errorf("%q: %v, %v", bad, is, err)
		}
	}
}

// Memory that was armed and then freed is Go's again: what comes there is not disturbed,
// and what is not freed keeps what it has.
func TestFreed(t *testing.T) {
	k := tracker(t)
	kept := make([]uint64, 1<<18)
	for round := range 20 {
		mem := make([]byte, 2<<20)
		for i := range mem {
			mem[i] = byte(round)
		}
		w, err := k.Arm(mem)
		if err != nil {
			t.Fatal(err)
		}
		mem[5*ChunkBytes] = 99
		if err := w.Disarm(); err != nil {
			t.Fatal(err)
		}
		mem, w = nil, nil
		debug.FreeOSMemory()
		again := make([]uint64, 1<<18) // perhaps where it was
		for i := range again {
			if again[i] != 0 {
				t.Fatal("new memory is not zero")
			}
			again[i], kept[i] = uint64(i), kept[i]+1
		}
	}
	for _, v := range kept {
		if v != 20 {
			t.Fatalf("%d", v)
		}
	}
}

// A copy of memory that is written meanwhile is no race, and is what was there.
func TestCopy(t *testing.T) {
	src, dst := make([]byte, 1<<20+77), make([]byte, 1<<20+77)
	for i := 0; i+8 <= len(src); i += 8 {
		binary.NativeEndian.PutUint64(src[i:], uint64(i))
	}
	if err := Copy(dst, src); err != nil || string(dst) != string(src) {
		t.Fatal("it is not the same: ", err)
	}
	if err := errors.Join(Copy(nil, nil), Copy(nil, src), CanCopy()); err != nil {
		t.Error(err)
	}
	end := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i = (i + 4096) % len(src) {
			src[i] ^= 0xff
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	for range 100 {
		if err := Copy(dst, src); err != nil {
			t.Fatal(err)
		}
	}
	close(end)
	<-done
	gone, err := unix.Mmap(-1, 0, ChunkBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	if err := Copy(dst[:10], gone); err == nil {
		t.Error("memory that nobody can read was copied")
	}
}

// What it costs: docs/results/resize.md.
func BenchmarkTracker(b *testing.B) {
	const n = 256 << 20
	k := tracker(b)
	mem := make([]byte, n)
	for i := 0; i < n; i += ChunkBytes {
		mem[i] = 1
	}
	var w Watch
	arm := func(b *testing.B) {
		var err error
		if w, err = k.Arm(mem); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("arm", func(b *testing.B) {
		for b.Loop() {
			arm(b)
			b.StopTimer()
			w.Disarm()
			b.StartTimer()
		}
	})
	b.Run("scan", func(b *testing.B) {
		arm(b)
		defer w.Disarm()
		for i := 0; i < n; i += 100 * ChunkBytes { // one per cent
			mem[i] = 2
		}
		for b.Loop() {
			if s, err := w.Written(); err != nil || s.Bytes() < n/100 {
				b.Fatal(s.Bytes(), err)
			}
		}
	})
	b.Run("disarm", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			arm(b)
			b.StartTimer()
			w.Disarm()
		}
	})
	b.Run("first-write", func(b *testing.B) {
		at := n
		for b.Loop() {
			if at >= n {
				b.StopTimer()
				if w != nil {
					w.Disarm()
				}
				arm(b)
				at = 0
				b.StartTimer()
			}
			mem[at]++
			at += ChunkBytes
		}
		w.Disarm()
	})
	b.Run("first-write-huge", func(b *testing.B) { // one in each huge page, which is split
		const whole = 2 << 20
		all := mapped(b, n+whole, unix.MAP_PRIVATE|unix.MAP_ANON)
		skip := int(-uintptr(unsafe.Pointer(&all[0])) & (whole - 1))
		mem := all[skip:][:n]
		unix.Madvise(mem, unix.MADV_HUGEPAGE)
		at := n
		var w Watch
		for b.Loop() {
			if at >= n {
				b.StopTimer()
				if w != nil {
					w.Disarm()
				}
				unix.Madvise(mem, unix.MADV_DONTNEED)
				for i := 0; i < n; i += ChunkBytes {
					mem[i] = 1
				}
				var err error
				if w, err = k.Arm(mem); err != nil {
					b.Fatal(err)
				}
				at = 0
				b.StartTimer()
			}
			mem[at]++
			at += whole
		}
		w.Disarm()
	})
	b.Run("copy", func(b *testing.B) {
		to := make([]byte, n)
		b.SetBytes(n)
		for b.Loop() {
			if err := Copy(to, mem); err != nil {
				b.Fatal(err)
			}
		}
	})
}
