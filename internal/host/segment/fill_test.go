// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/host/huge"
)

// arena is memory of n bytes, mapped so many times.
func arena(t *testing.T, n int64, maps int) (fd int, list [][]byte) {
	t.Helper()
	fd, n, err := CreateArena(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for range maps {
		mem, err := MapArena(fd, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { Unmap(mem) })
		list = append(list, mem)
	}
	return fd, list
}

func fill(t *testing.T, fd int, mem []byte, lo, hi, want int64) {
	t.Helper()
	var m Memory
	defer m.Close()
	if taken, err := m.Fill(fd, mem, lo, hi); err != nil || taken != want {
		t.Fatalf("%d bytes at %d: %d taken, want %d: %v", hi-lo, lo, taken, want, err)
	}
}

// Fill takes the pages of the range and no others, whether huge pages fit into it or not, and
// what is there is not taken again.
func TestFill(t *testing.T) {
	page := int64(os.Getpagesize())
	for _, n := range []int64{page, 3<<20 + 100, hugeLeast + page, 3 * hugeStep / 2} {
		fd, maps := arena(t, n, 2)
		whole := int64(len(maps[0]))
		lo := whole / 3 &^ (page - 1)
		fill(t, fd, maps[0], lo, whole, whole-lo)
		if got := resident(t, fd); got != whole-lo {
			t.Errorf("%d bytes are there of %d that were filled", got, whole-lo)
		}
		fill(t, fd, maps[1], 0, whole, lo)
		fill(t, fd, maps[0], 0, whole, 0)
		if got := resident(t, fd); got != whole {
			t.Errorf("%d bytes are there of %d", got, whole)
		}
	}
}

// Processes that fill neighbouring ranges at once, and the same ones, and write to their own
// as soon as they have it, lose nothing.
func TestFillTogether(t *testing.T) {
	const ranks, each = 4, 11<<20 + 4096 // no border is on a huge page
	fd, maps := arena(t, ranks*each, 2*ranks)
	var wg sync.WaitGroup
	errs := make([]error, 2*ranks)
	for i, mem := range maps {
		wg.Go(func() {
			var m Memory
			defer m.Close()
			r := int64(i % ranks)
			if _, errs[i] = m.Fill(fd, mem, r*each, (r+1)*each); errs[i] != nil || i >= ranks {
				return
			}
			for k := r * each; k < (r+1)*each; k += 64 {
				mem[k] = byte(k/64%101) + 1
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for k := int64(0); k < ranks*each; k += 64 {
		if got, want := maps[ranks][k], byte(k/64%101)+1; got != want {
			t.Fatalf("byte %d is %d, want %d", k, got, want)
		}
	}
	if got := resident(t, fd); got != ranks*each {
		t.Errorf("%d bytes are there of %d", got, ranks*each)
	}
}

// What is punched out of huge pages reads as zeros, its neighbours stay, and it can be filled
// again.
func TestFillPunched(t *testing.T) {
	const n, lo, hi = 16 << 20, 3<<20 + 4096, 9 << 20
	fd, maps := arena(t, n, 2)
	fill(t, fd, maps[0], 0, n, n)
	fill(t, fd, maps[1], 0, n, 0)
	for i := range maps[0] {
		maps[0][i] = byte(i%100) + 1
	}
	if err := Punch(maps[0][lo:hi]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for k, mem := range maps {
			if i := bytes.IndexFunc(mem[lo:hi], func(r rune) bool { return r != 0 }); i >= 0 {
				t.Errorf("mapping %d: byte %d is %d", k, lo+i, mem[lo+i])
			}
			for i, b := range mem {
				if (i < lo || i >= hi) && b != byte(i%100)+1 {
					t.Fatalf("mapping %d: byte %d is %d", k, i, b)
				}
			}
		}
		var m Memory
		defer m.Close()
		if _, err := m.Fill(fd, maps[1], 0, n); err != nil { // reading has made pages
			t.Fatal(err)
		}
		if got := resident(t, fd); got != n {
			t.Errorf("%d bytes are there of %d", got, n)
		}
	}
}

// Large mappings lie as huge pages want them, and leave nothing else behind.
func TestMapAligned(t *testing.T) {
	seg, _ := create(t)
	size := func() int64 {
		var pages int64
		text, err := os.ReadFile("/proc/self/statm")
		if err == nil {
			_, err = fmt.Sscan(string(text), &pages)
		}
		if err != nil {
			t.Fatal(err)
		}
		return pages * int64(os.Getpagesize())
	}
	before := size()
	for i := range int64(200) {
		off := i * 4096 * 37
		mem, err := Map(seg, off, huge.PageBytes+100+i*8191, true)
		if err != nil {
			t.Fatal(err)
		}
		if !onHugePage(mem[(huge.PageBytes-off%huge.PageBytes)%huge.PageBytes:]) {
			t.Fatalf("%d bytes at %d are mapped at %p", len(mem), off, mem)
		}
		if err := Unmap(mem[:len(mem)-1]); err == nil {
			t.Fatal("part of a mapping is unmapped")
		}
		if err := Unmap(mem); err != nil {
			t.Fatal(err)
		}
	}
	if grown := size() - before; grown > 100*huge.PageBytes {
		t.Errorf("address space has grown by %d bytes", grown)
	}
}

// Inside a memory cgroup Fill is an error and not a kill where the group has less, in huge
// pages as in small ones.
func TestTightCgroupFill(t *testing.T) {
	const limit = 128 << 20
	if os.Getenv(envTight) == "" {
		if out := inCgroup(t, limit, 1); !strings.Contains(out, "bytes came") {
			t.Error(out)
		}
		return
	}
	os.Stdin.Read(make([]byte, 1))
	fd, maps := arena(t, 2*limit, 1)
	var m Memory
	defer m.Close()
	var nm *NoMemoryError
	if taken, err := m.Fill(fd, maps[0], 0, 2*limit); taken != 0 || !errors.As(err, &nm) || nm.Limit != "memory cgroup" {
		t.Errorf("twice what there is: %d bytes taken, %v", taken, err)
	}
	if got := resident(t, fd); got != 0 {
		t.Errorf("%d bytes were taken", got)
	}
	at := int64(0)
	for err := error(nil); err == nil; at += 20 << 20 {
		if at > limit {
			t.Fatalf("%d bytes of %d came", at, limit)
		}
		if _, err = m.Fill(fd, maps[0], at, at+20<<20); err != nil && !errors.As(err, &nm) {
			t.Fatal(err)
		}
	}
	t.Logf("%d bytes came", resident(t, fd))
}
