// SPDX-License-Identifier: Apache-2.0

package huge

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hugeBytes of this process that are in huge pages now.
func hugeBytes(t *testing.T) int {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip("no smaps_rollup: ", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int
		if strings.HasPrefix(s.Text(), "AnonHugePages:") {
			if _, err := fmt.Sscanf(s.Text(), "AnonHugePages: %d kB", &kb); err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Skip("the kernel does not count huge pages")
	return 0
}

// mapped returns n bytes of small pages, all touched.
func mapped(t *testing.T, n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	for i := range b {
		b[i] = byte(i*7 + i>>12)
	}
	return b
}

// kernelCan skips the test where a page cannot be collapsed at all.
func kernelCan(t *testing.T) {
	if !allowed() {
		t.Skip("transparent huge pages are off on this machine")
	}
	b := mapped(t, 3*pageSize)
	if err := collapse((addrOf(b)+pageSize-1)>>pageBits<<pageBits, pageSize); err != nil {
		t.Skip("MADV_COLLAPSE: ", err)
	}
}

func TestUsedMemoryBecomesHuge(t *testing.T) {
	kernelCan(t)
	b := mapped(t, 6*pageSize)
	p := new(Pages)
	before := hugeBytes(t)
	for range enough/pageSize - 1 {
		p.Use(b)
	}
	p.done.Wait()
	if got := hugeBytes(t) - before; got > 0 {
		t.Errorf("%d bytes became huge before they were worth it", got)
	}
	for range 7 { // one after the other
		p.worth.Store(0)
		p.Use(b)
		p.done.Wait()
	}
	if got := hugeBytes(t) - before; got < 5*pageSize {
		t.Errorf("%d bytes became huge, want at least %d", got, 5*pageSize)
	}
	for i := range b {
		if b[i] != byte(i*7+i>>12) {
			t.Fatalf("byte %d has changed", i)
		}
	}
	p.Close()
}

// What a huge page has cost decides when there is another.
func TestCostlyPagesAreRare(t *testing.T) {
	kernelCan(t)
	b := mapped(t, 3*pageSize)
	b = b[pageSize-addrOf(b)%pageSize:][:pageSize]
	p := &Pages{asked: true}
	p.worth.Store(4 * enough)
	for range 4*enough/pageSize - 1 {
		p.Use(b)
	}
	if p.busy.Load() {
		t.Error("the kernel is asked before the last page's cost is worth it")
	}
	p.Use(b)
	p.done.Wait()
	if w := p.worth.Load(); w == 4*enough || w <= 0 {
		t.Errorf("%d bytes are worth a page after one was made", w)
	}
	p.Close()
}

// A process that sends many small buffers does not grow by a huge page for
// each.
func TestSharedPagesAreFew(t *testing.T) {
	p := new(Pages)
	if !allowed() {
		t.Skip("transparent huge pages are off on this machine")
	}
	b := mapped(t, 2*maxShared*pageSize)
	for range enough / 4096 {
		for i := range 2 * maxShared {
			p.Use(b[i*pageSize+8192:][:4096])
		}
	}
	for range 2 * maxShared {
		for i := range 2 * maxShared {
			p.worth.Store(0)
			p.Use(b[i*pageSize+8192:][:4096])
			p.done.Wait()
		}
	}
	if p.shared != maxShared {
		t.Errorf("%d shared pages were asked for, want %d", p.shared, maxShared)
	}
	p.Close()
	if p.Use(b); p.busy.Load() {
		t.Error("a closed counter still asks")
	}
}

func TestKnownPagesAreBounded(t *testing.T) {
	p := &Pages{asked: true}
	b, err := unix.Mmap(-1, 0, (maxKnown+10)*pageSize, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skip("no address space: ", err)
	}
	defer unix.Munmap(b)
	p.Use(b)
	if len(p.known) > maxKnown {
		t.Errorf("%d pages are remembered, want at most %d", len(p.known), maxKnown)
	}
}
