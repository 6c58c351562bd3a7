// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pageBits = 21 // 2 MiB, the huge page of amd64 and of arm64 with 4 KiB pages
	pageSize = 1 << pageBits

	smallPage = 4096

	// enough bytes moved through a page before it becomes a huge one. That
	// takes 0.3 to 0.6 ms, which so many bytes save; 6 ms in a virtual machine
	// whose memory was never used before. So what the last ones took decides
	// about the next: it has to be saved in as many bytes as were moved before.
	// Time is the clock's: whoever copies from or to this process, or maps
	// anything, waits for the kernel meanwhile.
	collapseAfter = 16 << 20
	// plenty of bytes are worth any page.
	alwaysWorth = 128 << 20
	// saved by each small page of a huge one that is copied.
	savedPerPage = 210 * time.Nanosecond
	// again: Go's scavenger splits a page when it gives back free memory in it,
	// so a heavily used one is asked for again after so many bytes. In one that
	// a buffer fills there is nothing free as long as the buffer lives.
	repeatAfter      = 256 << 20
	repeatWholeAfter = 4 << 30

	// slow is a call after which there is no other. The kernel first has a thread
	// of its own run on every processor: 50 ms where these compute, and 600 were
	// seen.
	slowCall = 20 * time.Millisecond

	// maxShared bounds the pages that hold other memory than the buffers: the
	// process may grow by what of them was never touched.
	maxShared = 8

	maxKnown = 4096
)

// Pages counts how the memory of one process is used. Use is for one goroutine
// at a time; the kernel is asked in the background. The zero value is ready.
type Pages struct {
	off            bool                // for good
	slow           atomic.Bool         // likewise
	oversubscribed atomic.Bool         // see Oversubscribed
	asked          bool                // whether the administrator allows it
	known          map[uintptr]pageUse // by address >> pageBits
	shared         int

	worth     atomic.Int64 // bytes that save what the last huge pages cost; 0: unknown
	busy      atomic.Bool  // the kernel is being asked, for page
	page      uintptr
	postponed atomic.Uintptr // 1 + a page for which the kernel was not asked, as others computed; 0: none
	run       func()         // work, made once
	done      sync.WaitGroup

	// What tests replace; nil is the system's.
	call func(addr, n uintptr) (time.Duration, error) // collapse
	idle func() bool
}

// Oversubscribed tells whether the processes of this host outnumber its processors:
// then the kernel is not asked. Safe for any goroutine.
func (p *Pages) Oversubscribed(yes bool) { p.oversubscribed.Store(yes) }

// allowed reports whether the administrator has not turned huge pages off.
func allowed() bool {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !strings.Contains(string(enabled), "[never]")
}

// Use notes that b, of which nothing is kept, is copied once by system calls.
func (p *Pages) Use(b []byte) {
	if p.off || len(b) == 0 || p.slow.Load() || p.oversubscribed.Load() {
		return
	}
	if !p.asked {
		p.asked, p.off = true, !allowed()
		if p.off {
			return
		}
	}
	if p.postponed.Load() != 0 {
		p.postpone(p.postponed.Swap(0) - 1)
	}
	worth := min(max(collapseAfter, p.worth.Load()), alwaysWorth)
	from := addrOf(b)
	to := from + min(uintptr(len(b)), maxKnown<<pageBits)
	for n := from >> pageBits; n <= (to-1)>>pageBits; n++ {
		lo, hi := max(from, n<<pageBits), min(to, (n+1)<<pageBits)
		u, found := p.known[n]
		if !found {
			if len(p.known) >= maxKnown {
				clear(p.known)
			}
			if p.known == nil {
				p.known = make(map[uintptr]pageUse)
			}
		}
		u.moved += int64(hi - lo)
		whole := hi-lo == pageSize
		limit := worth
		switch {
		case u.asked && whole:
			limit = max(worth, repeatWholeAfter)
		case u.asked:
			limit = max(worth, repeatAfter)
		}
		if u.moved >= limit && (whole || u.asked || p.shared < maxShared) && p.request(n) {
			part := u.part || !whole && !u.asked
			if part && !u.part {
				p.shared++
			}
			u = pageUse{asked: true, part: part}
		}
		p.known[n] = u
	}
}

// use of one page.
type pageUse struct {
	moved int64 // bytes since the kernel was asked
	asked bool  // ever
	part  bool  // it counts as one that holds other memory
}

// postpone has a page for which the kernel was not asked earn it once more, and
// the look at who computes as well.
func (p *Pages) postpone(n uintptr) {
	u, found := p.known[n]
	if !found {
		return
	}
	if u.part {
		p.shared--
	}
	p.known[n] = pageUse{moved: u.moved - alwaysWorth}
}

// ask has a goroutine talk to the kernel about a page; false: it is still
// talking about another, or that was the last.
func (p *Pages) request(n uintptr) bool {
	if !p.busy.CompareAndSwap(false, true) {
		return false
	}
	if p.slow.Load() { // the call for an earlier page of the same buffer was
		p.busy.Store(false)
		return false
	}
	p.page = n
	p.done.Add(1)
	if p.run == nil {
		p.run = p.work
	}
	go p.run()
	return true
}

// work asks for one page, unless other processes compute. A kernel that cannot
// (before Linux 6.1, short of memory, a mapping of another kind) leaves
// everything as it was.
func (p *Pages) work() {
	defer p.done.Done()
	defer p.busy.Store(false)
	call, idle := p.call, p.idle
	if call == nil {
		call, idle = collapse, processorsIdle
	}
	if !idle() {
		p.postponed.Store(p.page + 1)
		return
	}
	took, err := call(p.page<<pageBits, pageSize)
	if took >= slowCall {
		p.slow.Store(true)
	}
	if err == nil {
		worth := int64(took / savedPerPage * smallPage)
		if last := p.worth.Load(); last != 0 {
			worth = (worth + last) / 2
		}
		p.worth.Store(worth)
	}
}

// Close ends the counting and waits until the kernel has answered.
func (p *Pages) Close() {
	p.off = true
	p.done.Wait()
}
