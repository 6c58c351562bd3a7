// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"

	"gompi/internal/base/freelist"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// heap is the memory of a host of which processes are given ranges: arenas, which
// they map as a whole, once. A range is given out again when nobody touches it any
// more, and its pages have gone.
type heap struct {
	most   int64 // bytes of an arena
	arenas []*arena
	memory *segment.Memory // asked before pages are taken
	used   int             // ranges that are not free
	lost   int             // of these, whose pages would not go
}

// arenaBytes is the size of an arena: address space, of which processes map all.
const arenaBytes = 64 << 30

// arena is a file of a size that never changes.
type arena struct {
	number uint32
	files  *Files
	bytes  int64
	free   freelist.List
	small  bool
}

// extent is a range that is not free.
type extent struct {
	arena      *arena
	off, bytes int64
	holders    int     // who may touch it
	open       *common // not nil: others may ask for it
	left       *page   // not nil: it was this page, of which members are to tell that they have left it
	gift       *gift   // not nil: holders may begin to use it
	busy       bool    // pages are being taken, or given back
}

// smallBytes is the size of an arena of small ranges, which processes map even where
// they are not allowed more address space than they need.
const smallBytes = 64 << 20

// place names an extent among those of a process.
type place struct {
	arena uint32
	off   int64
}

func (x *extent) place() place { return place{x.arena.number, x.off} }

// take finds room for n bytes.
func (h *heap) take(n int64) (*extent, error) { return h.takeIn(n, h.most, false) }

// takeSmall finds room for what all processes of the host come to have.
func (h *heap) takeSmall(n int64) (*extent, error) { return h.takeIn(n, min(h.most, smallBytes), true) }

// takeIn finds room in arenas of so many bytes.
func (h *heap) takeIn(n, most int64, small bool) (*extent, error) {
	n = wholePages(n)
	for _, r := range h.arenas {
		if r.small != small {
			continue
		}
		if x := h.takeOf(r, n); x != nil {
			return x, nil
		}
	}
	if n > most || len(h.arenas) == wire.MaxArenas {
		return nil, protocol.Refused("no room for %d bytes in %d arenas of %d", n, len(h.arenas), most)
	}
	r, err := h.newArena(most, small)
	if err != nil {
		return nil, err
	}
	if n > r.bytes {
		r.files.Release()
		return nil, fmt.Errorf("common memory of %d bytes: %w", n, errFileLimit(r.bytes))
	}
	h.arenas = append(h.arenas, r)
	return h.takeOf(r, n), nil
}

func wholePages(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}

// takeOf finds room in one arena; nil: there is none.
func (h *heap) takeOf(r *arena, n int64) *extent {
	off, ok := r.free.Take(wholePages(n))
	if !ok {
		return nil
	}
	h.used++
	return &extent{arena: r, off: off, bytes: wholePages(n)}
}

// newArena makes one of so many bytes, or of what a file may have.
func (h *heap) newArena(most int64, small bool) (*arena, error) {
	fd, bytes, err := segment.CreateArena(most)
	if err != nil {
		return nil, err
	}
	r := &arena{number: uint32(len(h.arenas)), files: &Files{segment: fd, bell: -1}, bytes: bytes, free: freelist.List{{Size: bytes}}, small: small}
	r.files.refs.Store(1)
	return r, nil
}

// gifts is the arena out of which processes are given what they have not asked for; nil:
// there is none.
func (h *heap) gifts() *arena {
	for _, r := range h.arenas {
		if !r.small {
			return r
		}
	}
	if len(h.arenas) == wire.MaxArenas {
		return nil
	}
	r, err := h.newArena(h.most, false)
	if err != nil {
		return nil
	}
	h.arenas = append(h.arenas, r)
	return r
}

// errFileLimit: a file may have so many bytes (ulimit -f).
type errFileLimit int64

func (n errFileLimit) Error() string { return fmt.Sprintf("files may have %d bytes", int64(n)) }

// close frees the arenas, and with them all that nobody maps.
func (h *heap) close() {
	for _, r := range h.arenas {
		r.files.Release()
	}
	h.arenas = nil
	h.memory.Close()
}

// hold counts a process among those that may touch a range.
func (a *Agent) hold(p *Proc, x *extent) {
	if at := x.place(); p.holds[at] == nil {
		if p.holds == nil {
			p.holds = map[place]*extent{}
		}
		p.holds[at] = x
		x.holders++
	}
}

// leave: p does not touch a range any more.
func (a *Agent) leave(p *Proc, x *extent) {
	at := x.place()
	if p.holds[at] != x {
		return
	}
	delete(p.holds, at)
	a.drop(x)
	a.late()
}

// drop ends one hold of a range.
func (a *Agent) drop(x *extent) {
	if x.holders--; x.holders == 0 && !x.busy {
		a.clear(x)
	}
}

// leaveAll: nothing of p runs any more.
func (a *Agent) leaveAll(p *Proc) {
	for _, x := range p.holds {
		a.leave(p, x)
	}
	for name := range p.memories {
		a.dropMemory(p, name)
	}
}

// work does something about a range that may take long, without the agent, and
// tells it how that went.
func (a *Agent) work(x *extent, do func(fd int) error, done func(error)) {
	x.busy = true
	f := x.arena.files
	f.retain()
	a.out = append(a.out, Action{
		Files: f,
		Work:  func() error { return do(f.segment) },
		Done: func(err error) {
			x.busy = false
			done(err)
		},
	})
}

// clear gives back the pages of a range that nobody holds; then it is free.
func (a *Agent) clear(x *extent) {
	if x.open != nil {
		a.forget(x.open)
	}
	if g := x.left; g != nil {
		x.left = nil
		delete(a.left, g)
		a.closePage(g)
	}
	if x.gift != nil {
		a.endGift(x.gift)
	}
	a.work(x, func(fd int) error { return segment.Release(fd, x.off, x.bytes) }, func(err error) {
		if err != nil {
			a.heap.lost++ // what stands there would be another's
			return
		}
		a.heap.used--
		x.arena.free.Put(x.off, x.bytes)
	})
}
