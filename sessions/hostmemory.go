// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/host/segment"
)

// hostMemory is the memory that a process shares with others of its host for change
// pages: the arenas that hold the pages, each mapped once, and the bell of the processes
// that wait for something there.
type hostMemory struct {
	proc *core.Process

	mu     sync.Mutex
	arenas map[uint32]*mapping
	bell   int // -1: not opened yet, or the process has ended
	ended  bool
}

// mapping is memory that stays mapped as long as a goroutine may read it: that may be
// after the process has left the job.
type mapping struct{ memory []byte }

func newMapping(memory []byte) *mapping {
	m := &mapping{memory}
	runtime.AddCleanup(m, func(b []byte) { segment.Unmap(b) }, memory)
	return m
}

type hostMemoryKey struct{}

func hostMemoryOf(p *core.Process) *hostMemory {
	return p.Keep(hostMemoryKey{}, func() any {
		return &hostMemory{proc: p, arenas: map[uint32]*mapping{}, bell: -1}
	}).(*hostMemory)
}

// openBell takes over the descriptor of the bell. All pages of a process have the same
// bell; -1 means that the process has it already.
func (s *hostMemory) openBell(fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.bell >= 0 || s.ended:
		protocol.CloseFiles(fd)
		return nil
	case fd < 0:
		return errNoFiles()
	}
	if err := s.proc.Hear(fd); err != nil {
		protocol.CloseFiles(fd)
		return err
	}
	s.bell = fd
	context.AfterFunc(s.proc.Ctx, s.closeBell)
	return nil
}

func errNoFiles() error {
	return fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
}

// closeBell closes the bell for good.
func (s *hostMemory) closeBell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; s.bell >= 0 {
		s.proc.Unhear(s.bell)
		protocol.CloseFiles(s.bell)
		s.bell = -1
	}
}

// ring wakes all processes with the same bell that wait on any page.
func (s *hostMemory) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bell >= 0 {
		protocol.Ring(s.bell)
	}
}

// extent maps memory that the agent has given out, and checks where others say that it
// is. file is the arena's, and stays the caller's; -1: none.
func (s *hostMemory) extent(x *wire.ArenaRange, file int) (*mapping, []byte, error) {
	if x.Arena >= wire.MaxArenas || x.Off < 0 || x.Off%int64(os.Getpagesize()) != 0 || x.Bytes <= 0 || x.Total < x.Bytes || x.Off > x.Total-x.Bytes {
		return nil, nil, fmt.Errorf("%d bytes at %d of %d of arena %d", x.Bytes, x.Off, x.Total, x.Arena)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.arenas[x.Arena]; r != nil {
		if int64(len(r.memory)) != x.Total {
			return nil, nil, fmt.Errorf("arena %d has %d bytes, not %d", x.Arena, len(r.memory), x.Total)
		}
		return r, r.memory[x.Off:][:x.Bytes:x.Bytes], nil
	}
	if file < 0 {
		return nil, nil, errNoFiles()
	}
	if err := segment.CheckArena(file, x.Total); err != nil {
		return nil, nil, err
	}
	if memory, err := segment.MapArena(file, x.Total); err == nil {
		r := newMapping(memory)
		s.arenas[x.Arena] = r
		return r, memory[x.Off:][:x.Bytes:x.Bytes], nil
	}
	memory, err := segment.Map(file, x.Off, x.Bytes, true) // there is a limit (ulimit -v)
	if err != nil {
		return nil, nil, err
	}
	return newMapping(memory), memory, nil
}
