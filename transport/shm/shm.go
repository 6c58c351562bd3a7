// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/base/freelist"
	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/host/huge"
	"gompi/internal/host/segment"
	"gompi/transport"
	"gompi/transport/tuning"
)

const (
	maxEager     = 16 << 10    // above, a bulk transfer is faster
	closeTimeout = time.Second // for a copy of the peer's, at the end
)

// Transport is the shared-memory transport of one process. Its owner is the
// engine: no two methods but those of Sharer run at the same time. It keeps the descriptors
// env.Segment and env.Bell in use until Close, without owning them.
type Transport struct {
	env       transport.Env
	caps      transport.Caps
	shape     shape // of the fast boxes that this process makes
	ways      tuning.Table
	waysGiven bool // they are kept to
	cmaOff    bool
	noDuplex  bool  // nothing is sent in duplex lines
	fresh     *bulk // is pushed behind the message that comes next

	span    int64 // bytes of address space in the own segment
	headMem []byte
	own     *headWords

	bellName bellName
	dir      directory
	armed    bool

	conns  []*conn // by slot index; nil where free
	byProc map[wire.ProcID]*conn

	// rings holds every connected in-ring; the first hot of them are looked
	// at by each Poll, the others a few a turn.
	rings     []*inRing
	hot       int
	hotVictim int
	coldNext  int
	first     int  // the hot ring where the next Poll begins
	full      bool // the last Poll ended because ev was full

	delivered []*inRing // gave out payloads in the last Poll
	events    eventQueue
	chores    chores

	zombies []retired // fast boxes that their senders may still touch
	doomed  []retired // to be freed when payloads have become invalid

	silence atomic.Uint64 // the next word of fast boxes that have ended

	spansMu    sync.Mutex
	spans      freelist.List // shared once, and taken back; guarded by spansMu
	unshared   int64         // from here on nothing was ever shared; likewise
	shared     atomic.Int64  // pieces of shared memory that are mapped
	mostShared int64
	arenas     arenas

	spare  []*bulk
	pages  huge.Pages
	memory segment.Memory // asked before memory of a segment is touched
	nextID uint64         // of offers
	wide   int            // rings to peers that are wide
	// crowded: see Oversubscribed.
	crowded atomic.Bool
	nonce   uint64
	turns   uint64 // connections made
}

// Open starts the transport of one process. env.Segment must come from
// segment.Create; without segment or bell it returns ErrUnavailable.
//
// Settings: GOMPI_RING is the size in bytes of a data ring (a power of two
// from 256; others are rounded up; default twice the cache that is a processor's own, of
// which 64 KiB have memory until a stream or longer messages need more) and bounds EagerMax to half
// of it. GOMPI_CMA=off makes large transfers go through the rings. GOMPI_HUGE=off
// leaves the pages of buffers as they are (see package huge). GOMPI_DUPLEX=off sends
// nothing in duplex lines; what a peer sends there is taken. GOMPI_SHM_TABLE are limits of
// package ways.
func Open(env transport.Env) (*Transport, error) {
	if env.Segment < 0 || env.Bell < 0 {
		return nil, fmt.Errorf("shm: no segment or bell given: %w", transport.ErrUnavailable)
	}
	setting := env.Setting
	if setting == nil {
		setting = func(string) string { return "" }
	}
	ring, err := settings.Ring.Lookup(setting, wideRing())
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	given := setting("GOMPI_SHM_TABLE")
	table, err := tuning.Parse(given)
	if err != nil {
		return nil, fmt.Errorf("shm: GOMPI_SHM_TABLE: %w", err)
	}
	g := shapeFor(uint64(ring))
	t := &Transport{
		env:        env,
		shape:      g,
		ways:       table,
		waysGiven:  given != "",
		cmaOff:     setting("GOMPI_CMA") == "off",
		noDuplex:   setting("GOMPI_DUPLEX") == "off",
		byProc:     make(map[wire.ProcID]*conn),
		nonce:      rand.Uint64() | 1,
		mostShared: mostShared,
		caps: transport.Caps{
			Name:         "shm",
			NeedsConnect: true,
			EagerMax:     int(g.eager),
			EagerBest:    int(g.eager),
			Local:        true,
		},
	}
	if t.cmaOff || setting("GOMPI_HUGE") == "off" {
		t.pages.Close()
	}
	if t.span, err = segment.Span(env.Segment); err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	if t.headMem, err = mapHead(env.Segment, env.Self); err != nil {
		return nil, err
	}
	t.own = viewHead(t.headMem)
	grid := gridOf(t.span, g)
	t.unshared = grid.end()
	if err := t.dir.open(env.Segment, env.Bell, t.own, grid); err != nil {
		segment.Unmap(t.headMem)
		return nil, err
	}
	if err := t.knowArena(env.Arena); err != nil {
		t.dir.close()
		segment.Unmap(t.headMem)
		return nil, err
	}
	return t, nil
}

// shapeFor is the shape of a fast box with a data ring of at least so many bytes.
func shapeFor(bytes uint64) shape {
	g := shape{data: minData}
	for uint64(g.data) < bytes {
		g.data *= 2
	}
	g.slots = min(max(g.first()/1024, min(g.data/4096, 128), minSlots), maxSlots)
	g.eager = min(g.data/2, maxEager)
	return g
}

// Caps says what shared memory can do.
func (t *Transport) Caps() transport.Caps { return t.caps }

// FD is the bell: an eventfd that peers ring when this process is armed.
func (t *Transport) FD() int { return t.env.Bell }

// Oversubscribed implements transport.Oversubscriber: huge pages and wide rings are for those
// who do not wait for processors.
func (t *Transport) Oversubscribed(yes bool) {
	t.crowded.Store(yes)
	t.pages.Oversubscribed(yes)
}

// Flushed reports whether nothing waits in this process: what Send accepted
// lies in the peers' memory, but control messages and transfers need us.
func (t *Transport) Flushed() bool {
	return len(t.chores.bulks) == 0 && len(t.chores.letters) == 0
}

// Close says goodbye to every peer and undoes the mappings. It waits up to a
// second for copies that a peer has under way.
func (t *Transport) Close() error {
	end := time.Now().Add(closeTimeout)
	for _, c := range t.conns {
		if c == nil {
			continue
		}
		for !t.quiet(c) && time.Now().Before(end) {
			time.Sleep(20 * time.Microsecond)
		}
		t.drop(c)
		t.detach(c)
	}
	t.pages.Close()
	t.memory.Close()
	t.closeArenas()
	t.freeDoomed()
	for _, z := range t.zombies {
		segment.Unmap(z.mem)
	}
	t.dir.close()
	return segment.Unmap(t.headMem)
}

// conn is one peer, or its memory after EvDown.
type conn struct {
	slot  transport.Slot
	proc  wire.ProcID
	state connState
	err   error // of EvDown

	pid       int      // 0: no direct copies
	cma       cmaState // from it
	cmaTo     cmaState // to it
	nonceAddr uint64
	nonce     uint64

	out outRing
	in  *inRing // nil until the peer has connected

	offers  bulkList  // we send
	takes   bulkList  // we receive
	waiting bulkQueue // of takes: not begun
	solos   bulkQueue // of takes: read by us alone, one after the other
	pieces  bulkQueue // of offers: sent through the ring, likewise
	letters letters

	// blockGen is the last generation given to each block of the peer's fast box
	// to us, blockBusy whether that transfer is still in takes.
	blockGen  [blockCount]uint32
	blockBusy [blockCount]bool

	came  counts // transfers from there
	longs int    // long messages and transfers, as long as the ring is not wide
	lost  uint64 // of offers up to this pushed pieces do not come any more

	wanting bool // Send answered Full
	wantLen int
	gone    bool // the peer process has ended
	bye     bool // the peer has said its last word
	deaf    bool // nothing more may be read from it
	untold  bool // we have cut the connection, and Connect will tell the peer
}

type connState uint8

const (
	connUp connState = iota
	connFailing
	connDown
)

// newConn gives proc a slot: the lowest numbers are used again first, because
// an engine keeps a table by slot.
func (t *Transport) newConn(proc wire.ProcID) *conn {
	i := slices.Index(t.conns, nil)
	if i < 0 {
		i = len(t.conns)
		t.conns = append(t.conns, nil)
	}
	c := &conn{slot: transport.Slot(i), proc: proc}
	t.conns[i] = c
	t.byProc[proc] = c
	return c
}

// conn looks a slot up; nil if it is not in use.
func (t *Transport) conn(s transport.Slot) *conn {
	if int(s) >= len(t.conns) {
		return nil
	}
	return t.conns[s]
}

// eventQueue holds what happened outside of the rings.
type eventQueue struct {
	q    []transport.Event
	next int
}

func (e *eventQueue) push(ev transport.Event) { e.q = append(e.q, ev) }

func (e *eventQueue) empty() bool { return e.next == len(e.q) }

// take moves events to ev and returns their number.
func (e *eventQueue) take(ev []transport.Event) int {
	n := copy(ev, e.q[e.next:])
	clear(e.q[e.next : e.next+n])
	e.next += n
	if e.next == len(e.q) {
		e.q, e.next = e.q[:0], 0
	}
	return n
}

// forget removes the events that drop says.
func (e *eventQueue) forget(drop func(*transport.Event) bool) {
	e.q = slices.DeleteFunc(e.q[e.next:], func(ev transport.Event) bool { return drop(&ev) })
	e.next = 0
}
