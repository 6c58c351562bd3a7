// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostmem_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gompi/internal/control/hostmem"
	"gompi/internal/control/protocol"
	"gompi/internal/host/huge"
	"gompi/internal/host/segment"
)

// kernelCan skips the test where the kernel makes no huge page of shared memory.
func kernelCan(t *testing.T) {
	t.Helper()
	if huge.SharedMode() == huge.Never {
		t.Skip("huge pages of shared memory are off on this machine")
	}
	fd, n, err := segment.CreateArena(4 * huge.PageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer protocol.CloseFiles(fd)
	mem, err := segment.MapArena(fd, n)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Unmap(mem)
	huge.Advise(mem)
	for i := 0; i < len(mem); i += huge.PageBytes {
		mem[i] = 1
	}
	if err := huge.Collapse(mem); err != nil {
		t.Skip("MADV_COLLAPSE of shared memory: ", err)
	}
}

// inHuge is how many bytes of a mapping are mapped in huge pages.
func inHuge(t *testing.T, mem []byte) (bytes int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("no smaps: ", err)
	}
	defer f.Close()
	at, found, counted := fmt.Sprintf("%x-", &mem[0]), false, false
	at = strings.TrimPrefix(at, "0x")
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int
		if first, _, _ := strings.Cut(s.Text(), " "); !strings.HasSuffix(first, ":") {
			found = strings.HasPrefix(first, at)
		} else if n, _ := fmt.Sscanf(s.Text(), "ShmemPmdMapped: %d kB", &kb); n == 1 && found {
			bytes, counted = bytes+kb<<10, true
		}
	}
	if !counted {
		t.Fatalf("no mapping begins at %s, or the kernel does not count its huge pages", at)
	}
	return bytes
}

// What one process has filled another one maps in huge pages: all that fit into the range of
// the first, also where ranges have other borders. Nobody touches more than is filled.
func TestHuge(t *testing.T) {
	kernelCan(t)
	const n, border = 40<<20 + 4096, 17<<20 + 8192
	const want = (40 - 2) << 20 // but the one with the border
	j, procs := job(t, 3)
	x := []*hostmem.Memory{open(t, procs[0], n, false), open(t, procs[1], n, false)}
	for k, r := range []hostmem.Range{{Lo: 0, Hi: border}, {Lo: border, Hi: n}} {
		if taken, err := x[k].Fill(r); taken != r.Hi-r.Lo || err != nil {
			t.Fatalf("%d bytes taken of %d: %v", taken, r.Hi-r.Lo, err)
		}
		for i := r.Lo; i < r.Hi; i += 4096 {
			x[k].Bytes()[i] = byte(i / 4096 % 127)
		}
	}
	last := open(t, procs[2], n, false)
	if taken, err := last.Fill(hostmem.Range{Lo: 0, Hi: n}); taken != 0 || err != nil {
		t.Fatalf("%d bytes taken, %v", taken, err)
	}
	for i := 0; i < n; i += 4096 {
		if last.Bytes()[i] != byte(i/4096%127) {
			t.Fatalf("byte %d is %d", i, last.Bytes()[i])
		}
	}
	if got := inHuge(t, last.Bytes()); got < want {
		kernelCan(t) // still
		t.Errorf("%d bytes are in huge pages of %d", got, want)
	}
	if err := errors.Join(x[0].Close(), x[1].Close(), last.Close()); err != nil {
		t.Error(err)
	}
	none(t, j)
}

// With guard what others have is a fault as it is with small pages.
func TestGuardHuge(t *testing.T) {
	const n, border = 32 << 20, 11<<20 + 4096
	_, procs := job(t, 2)
	mine, theirs := hostmem.Range{Lo: 0, Hi: border}, hostmem.Range{Lo: border, Hi: n}
	x, y := open(t, procs[0], n, true), open(t, procs[1], n, true)
	defer x.Close()
	defer y.Close()
	for _, err := range []error{x.Own(mine), y.Own(theirs)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for k, m := range []*hostmem.Memory{x, y} {
		if _, err := m.Fill([]hostmem.Range{mine, theirs}[k]); err != nil {
			t.Fatal(err)
		}
	}
	look := func(m *hostmem.Memory, own hostmem.Range) {
		t.Helper()
		for i := int64(0); i < n; i += 1 << 20 {
			at := i + 8192 // border is on a page
			if is := faults(m.Bytes(), int(at)); is == (at >= own.Lo && at < own.Hi) {
				t.Errorf("byte %d, own %v: a fault is %v", at, own, is)
			}
		}
	}
	look(x, mine)
	look(y, theirs)
	if taken, err := x.Fill(theirs); taken != 0 || err != nil {
		t.Errorf("%d bytes taken, %v", taken, err)
	}
	if err := errors.Join(x.Own(theirs), y.Own(mine)); err != nil {
		t.Error(err)
	}
	look(x, theirs)
	look(y, mine)
}
