// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync"

	"gompi/internal/shmem"
	"gompi/internal/span"
)

const (
	// minStock is the size of the first arena of a stock, maxStock that of the
	// later ones, in bytes, and stockBytes that of all.
	minStock   = 256 << 10
	maxStock   = 4 << 20
	stockBytes = 16 << 20
	// maxPiece is the most that a stock gives out at once.
	maxPiece = maxStock

	// stockStride is between the addresses of two arenas: they never touch.
	stockStride = 2 * maxStock
)

// stock gives out the memory of small regions: pieces of arenas, which stay
// until the process ends, so that others map them once. Safe for any goroutine.
type stock struct {
	share shmem.Sharing

	mu     sync.Mutex
	arenas []*arena
	free   span.List // arena i has the addresses from i*stockStride on
	bytes  int       // of all arenas
	live   int       // pieces in use
	closed bool      // the process ends: the arenas go when nothing in them is used
}

// piece is memory of a stock.
type piece struct {
	arena *arena
	off   int64 // in the arena
	at    int64 // its address in the stock
	n     int
}

func (p *piece) mem() []byte { return p.arena.mem[p.off:][:p.n:p.n] }

func stockSize(n int) int64 { return (int64(n) + controlAlign - 1) &^ (controlAlign - 1) }

// take gives out n zeroed bytes, which begin on a line; false: there are none.
func (k *stock) take(n int) (p piece, ok bool) {
	if n <= 0 || n > maxPiece {
		return piece{}, false
	}
	size := stockSize(n)
	k.mu.Lock()
	at, ok := k.free.Take(size)
	for !ok && k.grow(int(size)) {
		at, ok = k.free.Take(size)
	}
	if ok {
		a := k.arenas[at/stockStride]
		p = piece{a, at % stockStride, at, n}
		k.live++
	}
	k.mu.Unlock()
	if ok {
		clear(p.mem()) // it has been used before
	}
	return p, ok
}

// grow adds an arena that has n bytes. mu is given away meanwhile.
func (k *stock) grow(n int) bool {
	want := max(min(minStock<<len(k.arenas), maxStock), n)
	if k.bytes+want > stockBytes {
		want = n
	}
	if k.closed || k.bytes+want > stockBytes {
		return false
	}
	k.bytes += want
	k.mu.Unlock()
	mem, name, err := k.share.Share(want)
	k.mu.Lock()
	if err != nil {
		k.bytes -= want
		return false
	}
	k.free.Put(int64(len(k.arenas))*stockStride, int64(want))
	k.arenas = append(k.arenas, &arena{mem: mem, name: name})
	return true
}

// put takes a piece back. used: others may still write there; it is not given
// out again.
func (k *stock) put(p piece, used bool) {
	k.mu.Lock()
	k.live--
	if !used {
		k.free.Put(p.at, stockSize(p.n))
	}
	gone := k.unused()
	k.mu.Unlock()
	leaveAll(k.share, gone)
}

// own finds an arena of this process by what others call it.
func (k *stock) own(name uint64, bytes int64) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.arenas {
		if a.name == name && int64(len(a.mem)) == bytes {
			return a.mem
		}
	}
	return nil
}

// close tells that the process ends.
func (k *stock) close() {
	k.mu.Lock()
	k.closed = true
	gone := k.unused()
	k.mu.Unlock()
	leaveAll(k.share, gone)
}

// unused takes the arenas away once the process ends and nothing is in use.
func (k *stock) unused() (gone [][]byte) {
	if !k.closed || k.live > 0 {
		return nil
	}
	for _, a := range k.arenas {
		gone = append(gone, a.mem)
	}
	k.arenas, k.free = nil, nil
	return gone
}
