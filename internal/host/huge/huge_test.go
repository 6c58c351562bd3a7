// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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
	if _, err := collapse((addrOf(b)+pageSize-1)>>pageBits<<pageBits, pageSize); err != nil {
		t.Skip("MADV_COLLAPSE: ", err)
	}
}

// quiet is a counter on a machine on which nobody else computes, and all calls
// are quick.
func quiet() *Pages {
	return &Pages{
		idle: func() bool { return true },
		call: func(addr, n uintptr) (time.Duration, error) {
			_, err := collapse(addr, n)
			return time.Millisecond / 2, err
		},
	}
}

func TestUsedMemoryBecomesHuge(t *testing.T) {
	kernelCan(t)
	b := mapped(t, 6*pageSize)
	p := quiet()
	before := hugeBytes(t)
	for range collapseAfter/pageSize - 1 {
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
	p := quiet()
	p.worth.Store(4 * collapseAfter)
	for range 4*collapseAfter/pageSize - 1 {
		p.Use(b)
	}
	if p.busy.Load() {
		t.Error("the kernel is asked before the last page's cost is worth it")
	}
	p.Use(b)
	p.done.Wait()
	if w := p.worth.Load(); w == 4*collapseAfter || w <= 0 {
		t.Errorf("%d bytes are worth a page after one was made", w)
	}
	p.Close()
}

// A call that took long is the last, and where processes outnumber the
// processors or others compute there is none.
func TestSlowCallIsTheLast(t *testing.T) {
	b := mapped(t, 4*pageSize)
	calls, took, idle := 0, time.Millisecond, true
	p := &Pages{
		asked: true,
		idle:  func() bool { return idle },
		call:  func(uintptr, uintptr) (time.Duration, error) { calls++; return took, nil },
	}
	use := func(want int, when string) {
		t.Helper()
		calls = 0
		for range alwaysWorth/pageSize + 1 {
			p.Use(b)
			p.done.Wait()
		}
		if calls > 0 != (want > 0) {
			t.Errorf("%s: %d calls", when, calls)
		}
		clear(p.known)
	}
	use(1, "quick calls")
	idle = false
	use(0, "others compute")
	idle = true
	p.Oversubscribed(true)
	use(0, "more processes than processors")
	p.Oversubscribed(false)
	took = slowCall
	use(1, "a slow call")
	if calls != 1 {
		t.Errorf("%d calls after a slow one", calls-1)
	}
	took = time.Millisecond
	use(0, "after a slow call")
	p.Close()
}

// A page for which the kernel was not asked is asked for when others compute no
// more, whether a buffer fills it or not.
func TestPostponed(t *testing.T) {
	b := mapped(t, 4*pageSize)
	calls, idle := 0, false
	p := &Pages{
		asked: true,
		idle:  func() bool { return idle },
		call:  func(uintptr, uintptr) (time.Duration, error) { calls++; return time.Millisecond, nil },
	}
	use := func() {
		for range 2 * (alwaysWorth + collapseAfter) / pageSize {
			p.Use(b[1 : len(b)-1])
			p.done.Wait()
		}
	}
	use()
	if calls != 0 || p.shared > 2 {
		t.Errorf("%d calls while others compute, %d pages hold other memory", calls, p.shared)
	}
	idle = true
	use()
	if calls < 4 {
		t.Errorf("%d pages of 4 were asked for", calls)
	}
	p.Close()
}

func TestProcessors(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8": 5, "": 0, "x": 0, "3-1": 0} {
		if got := processors(list); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
	for text, want := range map[string]int{"0.20 0.18 0.12 1/80 11206\n": 1, "0 0 0 17/80 1": 17} {
		if got, ok := running(text); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0 0 0", "0 0 0 x/y 3"} {
		if n, ok := running(text); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}

// A process that sends many small buffers does not grow by a huge page for
// each.
func TestSharedPagesAreFew(t *testing.T) {
	p := quiet()
	if !allowed() {
		t.Skip("transparent huge pages are off on this machine")
	}
	b := mapped(t, 2*maxShared*pageSize)
	for range collapseAfter / 4096 {
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

// TestAdvise: memory that is touched first after it comes in huge pages.
func TestAdvise(t *testing.T) {
	kernelCan(t)
	b, err := unix.Mmap(-1, 0, 4*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	before := hugeBytes(t)
	Advise(b)
	Advise(nil)
	Advise(b[1:2])
	for i := 0; i < len(b); i += smallPage {
		b[i] = 1
	}
	if got := hugeBytes(t) - before; got < pageSize {
		t.Errorf("%d bytes more are in huge pages", got)
	}
}
