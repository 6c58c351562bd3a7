// SPDX-License-Identifier: Apache-2.0

// Package hostmem is memory of a host that the agent makes by a name, and that outlives
// each of the processes that have it: mapped whole by each of them, so that a range of it
// changes its owner without a byte moving.
package hostmem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Control is what Open needs of the control plane.
type Control interface {
	AskFiles(ctx context.Context, m, body protocol.Message) (fds [protocol.FrameFDs]int, err error)
	Tell(m protocol.Message) error
}

// Options are how a process has a memory.
type Options struct {
	Guard bool // it faults where it touches whole pages that it does not own: see Own
	Small bool // it makes no huge pages
}

// Range is bytes of a memory, from Lo on, before Hi.
type Range struct{ Lo, Hi int64 }

// Memory is one, as this process has it. Safe for any goroutine, but for Close.
type Memory struct {
	ctl   Control
	name  string
	host  uint32
	mem   []byte // whole pages; not written after Open
	bytes int64  // that were asked for
	opts  Options
	stop  func() bool // not to close the file when the context of Open ends

	mu   sync.Mutex // of page tables and protections; guards the rest
	file int        // that mem maps; -1: none
	own  []Range    // see Own
}

// Open maps memory of so many bytes, at least 1, by a name of the job: zeroed if nobody
// of this host has it. No page is there, and none may be touched before Fill. Close must
// follow. When ctx ends a descriptor of it is closed, which only makes Fill slower: ranks
// that are goroutines are killed without Close.
func Open(ctx context.Context, ctl Control, name string, bytes int64, how Options) (*Memory, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("memory of a host: %w", errors.ErrUnsupported)
	}
	var b protocol.MemoryBody
	fds, err := ctl.AskFiles(ctx, &protocol.Memory{Name: name, Bytes: bytes}, &b)
	if err != nil {
		return nil, err
	}
	protocol.CloseFiles(fds[1:]...)
	x := &Memory{ctl: ctl, name: name, host: b.Host, file: fds[0], bytes: bytes, opts: how}
	switch {
	case x.file < 0:
		err = fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	case b.Bytes < bytes:
		err = fmt.Errorf("a file has %d bytes (ulimit -f)", b.Bytes)
	default:
		if err = segment.CheckArena(x.file, b.Bytes); err == nil {
			x.mem, err = segment.MapArena(x.file, b.Bytes)
		}
	}
	if err == nil {
		err = x.Own()
	}
	if err != nil {
		_ = x.Close()
		return nil, fmt.Errorf("memory of %d bytes: %w", bytes, err)
	}
	x.stop = context.AfterFunc(ctx, x.closeFile)
	return x, nil
}

// Bytes is all of it.
func (x *Memory) Bytes() []byte { return x.mem[:x.bytes:x.bytes] }

// Host is a number that processes with the same memory have in common, and no others of
// the job.
func (x *Memory) Host() uint32 { return x.host }

// pages are those that a range touches, or, inside, those that it has whole.
func (x *Memory) pages(r Range, inside bool) Range {
	page := int64(os.Getpagesize())
	lo, hi := r.Lo&^(page-1), (r.Hi+page-1)&^(page-1)
	if inside {
		lo, hi = (r.Lo+page-1)&^(page-1), r.Hi&^(page-1)
		if r.Hi == x.bytes {
			hi = int64(len(x.mem)) // nobody has the rest of the last one
		}
	}
	if r.Lo >= r.Hi || lo >= hi {
		return Range{}
	}
	return Range{lo, hi}
}

// at is the memory of whole pages.
func (x *Memory) slice(pages Range) []byte { return x.mem[pages.Lo:pages.Hi] }

// Fill makes sure that a range can be touched, and fills the page tables for it. So many
// bytes of memory were taken, in huge pages where many are missing at once and whole ones fit
// into the range (2 MiB from a multiple of that on): what others have touched is there. The error is a
// *segment.NoMemoryError when memory is short.
func (x *Memory) Fill(r Range) (taken int64, err error) {
	pages := x.pages(r, false)
	if pages.Lo == pages.Hi {
		return 0, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.protect(append(slices.Clone(x.own), r)); err != nil {
		return 0, err
	}
	m := segment.Memory{Small: x.opts.Small}
	defer m.Close()
	taken, err = m.Fill(x.file, x.mem, pages.Lo, pages.Hi)
	if failed := x.protect(x.own); err == nil {
		err = failed
	}
	return taken, err
}

// Own says which ranges this process may touch from now on. Without Guard it may touch
// all that was filled.
func (x *Memory) Own(own ...Range) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.own = own
	return x.protect(own)
}

// protect makes all faults but the pages that some ranges touch; mu is held.
func (x *Memory) protect(open []Range) error {
	if !x.opts.Guard {
		return nil
	}
	for _, r := range open {
		if pages := x.slice(x.pages(r, false)); len(pages) > 0 {
			if err := segment.Guard(pages, true); err != nil {
				return err
			}
		}
	}
	for _, r := range x.gaps(open) {
		if pages := x.slice(x.pages(r, true)); len(pages) > 0 {
			if err := segment.Guard(pages, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Punch gives the pages back of which none of these ranges has a byte, for all who have
// the memory.
func (x *Memory) Punch(keep []Range) error {
	for _, r := range x.gaps(keep) {
		if pages := x.slice(x.pages(r, true)); len(pages) > 0 {
			if err := segment.Punch(pages); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside is what lies between ranges.
func (x *Memory) gaps(of []Range) (list []Range) {
	of = slices.Clone(of)
	slices.SortFunc(of, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	at := int64(0)
	for _, r := range of {
		if r.Lo >= r.Hi {
			continue
		}
		if at < r.Lo {
			list = append(list, Range{at, r.Lo})
		}
		at = max(at, r.Hi)
	}
	if at < x.bytes {
		list = append(list, Range{at, x.bytes})
	}
	return list
}

// Close unmaps it, once: nothing of this process touches it any more. It goes with the
// last process that has it.
func (x *Memory) Close() error {
	if x.stop != nil {
		x.stop()
	}
	x.closeFile()
	mem := x.mem
	x.mem = nil
	var err error
	if mem != nil {
		err = segment.Unmap(mem)
	}
	_ = x.ctl.Tell(&protocol.LeaveMemory{Name: x.name}) // who has no connection any more has it until it ends
	return err
}

func (x *Memory) closeFile() {
	x.mu.Lock()
	defer x.mu.Unlock()
	protocol.CloseFiles(x.file)
	x.file = -1
}
