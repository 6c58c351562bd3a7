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

// common is what one process shares with others of its host through pages: the arenas
// that these are in, each mapped once, and the bell of all who wait for something
// there.
type common struct {
	proc *core.Process

	mu     sync.Mutex
	arenas map[uint32]*mapping
	bell   int // -1: there is none yet, or the process has ended
	ended  bool
}

// mapping is memory that is mapped as long as somebody may look at it: should the
// process end before a page is left, one of its goroutines still may.
type mapping struct{ memory []byte }

func newMapping(memory []byte) *mapping {
	m := &mapping{memory}
	runtime.AddCleanup(m, func(b []byte) { segment.Unmap(b) }, memory)
	return m
}

type commonKey struct{}

func commonOf(p *core.Process) *common {
	return p.Keep(commonKey{}, func() any {
		return &common{proc: p, arenas: map[uint32]*mapping{}, bell: -1}
	}).(*common)
}

// hear takes over the descriptor of the bell, which is always the same one; -1: who
// gives it knows that the process has it.
func (s *common) hear(fd int) error {
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
	context.AfterFunc(s.proc.Ctx, s.silence)
	return nil
}

func errNoFiles() error {
	return fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
}

// silence closes the bell.
func (s *common) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; s.bell >= 0 {
		s.proc.Unhear(s.bell)
		protocol.CloseFiles(s.bell)
		s.bell = -1
	}
}

// ring wakes all who wait, on any page, and have the same bell.
func (s *common) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bell >= 0 {
		protocol.Ring(s.bell)
	}
}

// extent is memory that the agent has given out, of which others say where it is. file
// is the arena's, and stays the caller's; -1: there is none.
func (s *common) extent(x *wire.ArenaRange, file int) (*mapping, []byte, error) {
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
