// SPDX-License-Identifier: Apache-2.0

// Package hostmem is memory of a host that a job opens by name. The agent makes it, so it
// outlives each of the processes that use it. Every process maps the whole memory, so a range
// can change its owner without a copy. Open returns a Memory; Fill makes a range usable; Own
// and Guard detect wrong accesses.
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

// Control is the part of the control plane that Open needs.
type Control interface {
	AskFiles(ctx context.Context, m, body protocol.Message) (fds [protocol.FrameFDs]int, err error)
	Tell(m protocol.Message) error
}

// Options say how a process uses a memory.
type Options struct {
	Guard bool // an access to whole pages outside of the owned ranges faults; see Own
	Small bool // make no huge pages
}

// Range is the bytes of a memory from Lo on, before Hi.
type Range struct{ Lo, Hi int64 }

// Memory is a memory of the host as mapped in this process. It is safe for any goroutine,
// except Close.
type Memory struct {
	ctl   Control
	name  string
	host  uint32
	mem   []byte // whole pages; constant after Open
	bytes int64  // requested size
	opts  Options
	stop  func() bool // keeps the end of Open's context from closing the file

	mu   sync.Mutex // guards page tables, protections and the fields below
	file int        // descriptor of the memory; -1: none
	own  []Range    // see Own
}

// Open maps memory of so many bytes, at least 1, by a name of the job. The memory is zeroed if
// no process of this host has it. It has no pages: call Fill for a range before you touch it.
// The caller must call Close. When ctx ends, a descriptor is closed, which only makes Fill
// slower. That is for ranks that are goroutines, which are killed without a Close.
func Open(ctx context.Context, ctl Control, name string, bytes int64, opts Options) (*Memory, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("memory of a host: %w", errors.ErrUnsupported)
	}
	var b protocol.MemoryBody
	fds, err := ctl.AskFiles(ctx, &protocol.Memory{Name: name, Bytes: bytes}, &b)
	if err != nil {
		return nil, err
	}
	protocol.CloseFiles(fds[1:]...)
	x := &Memory{
		ctl:   ctl,
		name:  name,
		host:  b.Host,
		file:  fds[0],
		bytes: bytes,
		opts:  opts,
	}
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

// Bytes returns the whole memory.
func (x *Memory) Bytes() []byte { return x.mem[:x.bytes:x.bytes] }

// Host returns a number that is the same for all processes of the job with the same memory, and
// different for others.
func (x *Memory) Host() uint32 { return x.host }

// pages returns the pages that a range touches, or with inside the pages that it covers.
func (x *Memory) pages(r Range, inside bool) Range {
	page := int64(os.Getpagesize())
	lo, hi := r.Lo&^(page-1), (r.Hi+page-1)&^(page-1)
	if inside {
		lo, hi = (r.Lo+page-1)&^(page-1), r.Hi&^(page-1)
		if r.Hi == x.bytes {
			hi = int64(len(x.mem)) // no range has the rest of the last page
		}
	}
	if r.Lo >= r.Hi || lo >= hi {
		return Range{}
	}
	return Range{lo, hi}
}

// slice returns the memory of whole pages.
func (x *Memory) slice(pages Range) []byte { return x.mem[pages.Lo:pages.Hi] }

// Fill makes sure that a range can be touched, and fills the page tables for it. It returns the
// number of bytes of memory that this took; pages that other processes have touched exist
// already. Fill makes huge pages (2 MiB) where many pages are missing and whole huge ones fit
// into the range. The error is a *segment.NoMemoryError if memory is short.
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

// Own sets the ranges that this process may touch from now on. Without Guard it may touch every
// range that was filled.
func (x *Memory) Own(own ...Range) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.own = own
	return x.protect(own)
}

// protect makes all pages fault except those that the ranges touch. The caller holds mu.
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

// Punch gives back the pages that contain no byte of the ranges, for all processes with the memory.
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

// gaps returns the parts of the memory between the ranges.
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

// Close unmaps the memory. Call it once, when this process does not touch the memory any more.
// The memory ends with the last process that has it.
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
	_ = x.ctl.Tell(&protocol.LeaveMemory{Name: x.name}) // a process without a connection keeps the memory until it ends
	return err
}

func (x *Memory) closeFile() {
	x.mu.Lock()
	defer x.mu.Unlock()
	protocol.CloseFiles(x.file)
	x.file = -1
}
