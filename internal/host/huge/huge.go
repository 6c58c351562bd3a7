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

	// A page becomes a huge one after collapseAfter bytes have moved through it. The
	// kernel's work takes 0.3 to 0.6 ms, which so many bytes save. In a virtual machine it
	// takes 6 ms if the memory was never used before. So the times of the last calls
	// decide about the next page: it must have moved as many bytes as save that time.
	// Wall-clock time counts, because every thread that copies from or to this process, or
	// maps memory, waits for the kernel meanwhile.
	collapseAfter = 16 << 20
	// After alwaysWorth bytes a huge page pays whatever it costs.
	alwaysWorth = 128 << 20
	// savedPerPage is the time that a copy saves for each small page of a huge one.
	savedPerPage = 210 * time.Nanosecond
	// Go's scavenger splits a huge page when it gives back free memory in it. So a page is
	// requested again after repeatAfter bytes. A page that one buffer fills has no free
	// memory while the buffer lives; there repeatWholeAfter applies.
	repeatAfter      = 256 << 20
	repeatWholeAfter = 4 << 30

	// A call that takes slowCall is the last one. The kernel first runs a thread of its own
	// on every processor: that takes 50 ms if they compute, and up to 600 were seen.
	slowCall = 20 * time.Millisecond

	// maxShared bounds the number of pages that also hold other memory than the buffers.
	// Such a page may make the process grow by memory that it has never touched.
	maxShared = 8

	// maxKnown bounds the number of pages on record.
	maxKnown = 4096
)

// Pages records how system calls use the memory of one process and asks the kernel for huge
// pages. Only one goroutine at a time may call Use. The calls of the kernel run in the
// background. The zero value is ready.
type Pages struct {
	off            bool                // for ever
	slow           atomic.Bool         // a call was slow: make no other
	oversubscribed atomic.Bool         // see Oversubscribed
	asked          bool                // allowed was called
	known          map[uintptr]pageUse // by address >> pageBits
	shared         int                 // pages with part set

	worth     atomic.Int64 // bytes that save the time of the last calls; 0: unknown
	busy      atomic.Bool  // a call for page is under way
	page      uintptr
	postponed atomic.Uintptr // 1 + a page without a call because other processes computed; 0: none
	run       func()         // the method value of work, made once
	done      sync.WaitGroup

	// Tests replace these. nil means the system's.
	call func(addr, n uintptr) (time.Duration, error) // collapse
	idle func() bool
}

// Oversubscribed tells whether the processes of this host outnumber its processors. If so,
// no call is made. It is safe for any goroutine.
func (p *Pages) Oversubscribed(yes bool) { p.oversubscribed.Store(yes) }

// allowed reports whether the administrator allows huge pages.
func allowed() bool {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !strings.Contains(string(enabled), "[never]")
}

// Use records that a system call copies b once. It keeps nothing of b.
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

// pageUse is the record of one page.
type pageUse struct {
	moved int64 // bytes since the last call for the page
	asked bool  // there was such a call
	part  bool  // the page counts as one that also holds other memory
}

// postpone makes a page that got no call earn one again, before the next look at the load
// of the processors.
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

// request starts a goroutine that asks the kernel about a page. It returns false if the
// goroutine for another page still runs, or if there are to be no more calls.
func (p *Pages) request(n uintptr) bool {
	if !p.busy.CompareAndSwap(false, true) {
		return false
	}
	if p.slow.Load() { // by the call for an earlier page of the same buffer
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

// work asks the kernel for one page, unless other processes compute. A kernel that cannot do
// it leaves everything as it was: one before Linux 6.1, one that is short of memory, or one
// with another kind of mapping there.
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

// Close ends the recording and waits for a call that is under way.
func (p *Pages) Close() {
	p.off = true
	p.done.Wait()
}
