// SPDX-License-Identifier: Apache-2.0

// Package huge asks the kernel for huge pages where memory is copied by system
// calls again and again. process_vm_readv and writev look up every page of the
// other process: 0.21 us for each 4 KiB, as much as the copying itself.
package huge

import (
	"os"
	"strings"
	"sync"
)

const (
	pageBits = 21 // 2 MiB, the huge page of amd64 and of arm64 with 4 KiB pages
	pageSize = 1 << pageBits

	// enough bytes moved through a page before it becomes a huge one: what
	// that costs (0.3 ms, at times 5 ms) is saved within twice as many.
	enough = 16 << 20
	// again: Go's scavenger splits a page when it gives back free memory in it,
	// so a heavily used one is asked for again after so many bytes. In one that
	// a buffer fills there is nothing free as long as the buffer lives.
	again      = 256 << 20
	againWhole = 4 << 30

	// maxShared bounds the pages that hold other memory than the buffers: the
	// process may grow by what of them was never touched.
	maxShared = 8

	maxKnown = 4096
)

// Pages counts how the memory of one process is used. Use is for one goroutine
// at a time; the kernel is asked in the background. The zero value is ready.
type Pages struct {
	off    bool            // for good
	asked  bool            // whether the administrator allows it
	known  map[uintptr]use // by address >> pageBits
	shared int

	mu      sync.Mutex
	queue   []uintptr
	running bool
	run     func() // work, made once
	done    sync.WaitGroup
}

// allowed reports whether the administrator has not turned huge pages off.
func allowed() bool {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && !strings.Contains(string(enabled), "[never]")
}

// Use notes that b, of which nothing is kept, is copied once by system calls.
func (p *Pages) Use(b []byte) {
	if p.off || len(b) == 0 {
		return
	}
	if !p.asked {
		p.asked, p.off = true, !allowed()
		if p.off {
			return
		}
	}
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
				p.known = make(map[uintptr]use)
			}
			u.left = enough
		}
		u.left -= int64(hi - lo)
		whole := hi-lo == pageSize
		if u.left <= 0 && (whole || u.asked || p.shared < maxShared) {
			if !whole && !u.asked {
				p.shared++
			}
			u = use{left: again, asked: true}
			if whole {
				u.left = againWhole
			}
			p.ask(n)
		}
		p.known[n] = u
	}
}

// use of one page.
type use struct {
	left  int64 // bytes to be moved until the kernel is asked
	asked bool  // before
}

// ask queues a page for the goroutine that talks to the kernel.
func (p *Pages) ask(n uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, n)
	if !p.running {
		p.running = true
		p.done.Add(1)
		if p.run == nil {
			p.run = p.work
		}
		go p.run()
	}
}

func (p *Pages) work() {
	defer p.done.Done()
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		last := len(p.queue) - 1
		n := p.queue[last]
		p.queue = p.queue[:last]
		p.mu.Unlock()
		// A kernel that cannot (before Linux 6.1, short of memory, a mapping
		// of another kind) leaves everything as it was.
		collapse(n<<pageBits, pageSize)
	}
}

// Close ends the counting and waits until the kernel has answered everything.
func (p *Pages) Close() {
	p.off = true
	p.mu.Lock()
	p.queue = nil
	p.mu.Unlock()
	p.done.Wait()
}
