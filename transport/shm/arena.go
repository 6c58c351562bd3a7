// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// arenas are the files from which the host's agent allocates ranges. Each arena is mapped
// whole, as address space, when its first range arrives. It stays mapped until the
// transport is closed and no range of it is in use. If a limit forbids that (ulimit -v),
// the file stays open and ranges are mapped one at a time.
type arenas struct {
	mu     sync.Mutex
	all    map[uint32]*arena
	used   map[*byte]*arena // by the first byte of a range
	held   uint64           // the arenas in all, by number, as bits
	closed bool
}

type arena struct {
	number uint32
	mem    []byte // nil: ranges are mapped one at a time
	file   int    // -1 if the arena is mapped whole
	bytes  int64
	ranges int // in use
}

// Preallocated implements transport.Sharer.
func (t *Transport) Preallocated() bool { return true }

// HeldArenas implements transport.Sharer.
func (t *Transport) HeldArenas() uint64 {
	t.arenas.mu.Lock()
	defer t.arenas.mu.Unlock()
	return t.arenas.held
}

// Attach implements transport.Sharer: it maps a range that the agent has given to this
// process.
func (t *Transport) Attach(k transport.SharedKey, n int, x wire.ArenaRange) (mem []byte, err error) {
	size := wholePages(n)
	if n <= 0 || x.Arena >= wire.MaxArenas || x.Off < 0 || x.Off%pageBytes != 0 || x.Total > segment.SpanBytes || x.Bytes < size || x.Bytes > x.Total || x.Off > x.Total-x.Bytes {
		closeFD(x.File)
		return nil, fmt.Errorf("shm: %v: %d bytes of common memory, of %d at %d of %d: %w", k.Context, n, x.Bytes, x.Off, x.Total, transport.ErrProtocol)
	}
	t.arenas.mu.Lock()
	defer t.arenas.mu.Unlock()
	r, err := t.arena(x)
	if err != nil {
		return nil, fmt.Errorf("shm: %v: %w", k.Context, err)
	}
	if r.mem != nil {
		mem = r.mem[x.Off:][:size:size]
	} else if mem, err = t.mapShared(r.file, x.Off, size); err != nil {
		return nil, err
	}
	if t.arenas.used[&mem[0]] != nil {
		return nil, fmt.Errorf("shm: %v: the common memory at %d is in use: %w", k.Context, x.Off, transport.ErrProtocol)
	}
	if t.arenas.used == nil {
		t.arenas.used = map[*byte]*arena{}
	}
	t.arenas.used[&mem[0]] = r
	r.ranges++
	return mem[:n], nil
}

// arena returns the arena of an extent, whose file it owns. The caller holds mu.
func (t *Transport) arena(x wire.ArenaRange) (*arena, error) {
	r := t.arenas.all[x.Arena]
	if r != nil {
		closeFD(x.File)
		if r.bytes != x.Total {
			return nil, fmt.Errorf("arena %d has %d bytes, not %d: %w", r.number, r.bytes, x.Total, transport.ErrProtocol)
		}
		return r, nil
	}
	if t.arenas.closed {
		closeFD(x.File)
		return nil, transport.ErrUnavailable
	}
	return t.addArena(x)
}

// knowArena adds an arena whose ranges come without its file. The file belongs to the
// caller.
func (t *Transport) knowArena(x wire.ArenaRange) error {
	if x.Total == 0 || x.File < 0 {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(x.File), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("shm: arena %d: %w", x.Arena, err)
	}
	x.File = fd
	t.arenas.mu.Lock()
	defer t.arenas.mu.Unlock()
	if _, err := t.addArena(x); err != nil {
		return fmt.Errorf("shm: arena %d: %w", x.Arena, err)
	}
	return nil
}

// addArena adds an arena, whose file it owns. The caller holds mu.
func (t *Transport) addArena(x wire.ArenaRange) (*arena, error) {
	if x.Arena >= wire.MaxArenas || x.Total > segment.SpanBytes {
		closeFD(x.File)
		return nil, fmt.Errorf("arena %d of %d bytes: %w", x.Arena, x.Total, transport.ErrProtocol)
	}
	if err := segment.CheckArena(x.File, x.Total); err != nil {
		closeFD(x.File)
		return nil, err
	}
	r := &arena{number: x.Arena, file: x.File, bytes: x.Total}
	if mem, err := segment.MapArena(r.file, r.bytes); err == nil {
		closeFD(r.file)
		r.mem, r.file = mem, -1
	}
	if t.arenas.all == nil {
		t.arenas.all = map[uint32]*arena{}
	}
	t.arenas.all[r.number] = r
	t.arenas.held |= 1 << r.number
	return r, nil
}

// leaveArena ends the use of a range. It returns false if mem is not a range of an arena.
func (t *Transport) leaveArena(mem []byte) bool {
	t.arenas.mu.Lock()
	defer t.arenas.mu.Unlock()
	r := t.arenas.used[&mem[0]]
	if r == nil {
		return false
	}
	delete(t.arenas.used, &mem[0])
	if r.mem == nil {
		t.unmapShared(mem)
	}
	if r.ranges--; t.arenas.closed {
		t.dropArena(r)
	}
	return true
}

// closeArenas unmaps all arenas that are not in use. The others go with their last user.
func (t *Transport) closeArenas() {
	t.arenas.mu.Lock()
	defer t.arenas.mu.Unlock()
	t.arenas.closed = true
	for _, r := range t.arenas.all {
		t.dropArena(r)
	}
}

// dropArena unmaps an arena if it is not in use. The caller holds mu.
func (t *Transport) dropArena(r *arena) {
	if r.ranges > 0 {
		return
	}
	delete(t.arenas.all, r.number)
	if r.mem != nil {
		segment.Unmap(r.mem)
	} else {
		closeFD(r.file)
	}
}
