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
	maxEager     = 16 << 10    // longer messages are faster as bulk transfers
	closeTimeout = time.Second // for a copy by the peer
)

// Transport is the shared-memory transport of one process. Its owner is the
// engine: no two methods run at the same time, except those of Sharer. It uses
// the descriptors env.Segment and env.Bell until Close, without owning them.
type Transport struct {
	// Settings.
	env             transport.Env
	caps            transport.Caps
	shape           shape // of the fast boxes that this process makes
	thresholds      tuning.Table
	thresholdsFixed bool // the user has set them: no trials
	cmaOff          bool
	noDuplex        bool  // no messages are sent in duplex lines
	pushNext        *bulk // its pieces follow the next message

	// The own segment.
	span    int64 // bytes of address space
	headMem []byte
	own     *headWords

	bellName bellName
	dir      directory
	armed    bool

	// Connections.
	conns  []*conn // by slot index; nil where free
	byProc map[wire.ProcID]*conn

	// rings holds every connected in-ring. Each Poll looks at the first active
	// ones, and at a few of the others.
	rings        []*inRing
	active       int
	activeVictim int
	idleNext     int
	first        int  // the active ring where the next Poll begins
	full         bool // the last Poll ended because ev was full

	// What the next Poll has to do.
	delivered []*inRing // the last Poll returned their payloads
	events    eventQueue
	work      pollWork

	retired     []retired // fast boxes that their senders may still touch
	reclaimable []retired // freed when payloads have become invalid

	silence atomic.Uint64 // the next word of fast boxes that have ended

	// Shared memory. spansMu guards spans and unshared.
	spansMu    sync.Mutex
	spans      freelist.List // shared before, and taken back
	unshared   int64         // from here on the segment was never shared
	shared     atomic.Int64  // pieces of shared memory that are mapped
	mostShared int64
	arenas     arenas

	spare          []*bulk
	pages          huge.Pages
	memory         segment.Memory // asked before memory of a segment is touched
	nextID         uint64         // of offers
	streamingRings int            // rings to peers that are streaming
	// oversubscribed is what Oversubscribed has said last.
	oversubscribed atomic.Bool
	nonce          uint64
	turns          uint64 // connections made
}

// Open starts the transport of one process. env.Segment must come from
// segment.Create. Without segment or bell it returns ErrUnavailable.
//
// Settings:
//
//   - GOMPI_RING is the size of a data ring in bytes. Sizes are powers of two
//     from 256; others are rounded up. The default is twice the cache that is a
//     processor's own; 64 KiB of it have memory until a stream or longer
//     messages need more. EagerMax is at most half of the size.
//   - GOMPI_CMA=off sends large transfers through the rings.
//   - GOMPI_HUGE=off leaves the pages of buffers as they are (package huge).
//   - GOMPI_DUPLEX=off sends no messages in duplex lines; those of a peer are
//     still read.
//   - GOMPI_SHM_TABLE has limits in the form of package tuning.
func Open(env transport.Env) (*Transport, error) {
	if env.Segment < 0 || env.Bell < 0 {
		return nil, fmt.Errorf("shm: no segment or bell given: %w", transport.ErrUnavailable)
	}
	setting := env.Setting
	if setting == nil {
		setting = func(string) string { return "" }
	}
	ring, err := settings.Ring.Lookup(setting, streamingRingBytes())
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
		env:             env,
		shape:           g,
		thresholds:      table,
		thresholdsFixed: given != "",
		cmaOff:          setting("GOMPI_CMA") == "off",
		noDuplex:        setting("GOMPI_DUPLEX") == "off",
		byProc:          make(map[wire.ProcID]*conn),
		nonce:           rand.Uint64() | 1,
		mostShared:      mostShared,
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

// shapeFor returns the shape of a fast box with a data ring of at least so many bytes.
func shapeFor(bytes uint64) shape {
	g := shape{data: minData}
	for uint64(g.data) < bytes {
		g.data *= 2
	}
	g.slots = min(max(g.first()/1024, min(g.data/4096, 128), minSlots), maxSlots)
	g.eager = min(g.data/2, maxEager)
	return g
}

// Caps returns the abilities of shared memory.
func (t *Transport) Caps() transport.Caps { return t.caps }

// FD returns the bell: an eventfd that peers ring while this process is armed.
func (t *Transport) FD() int { return t.env.Bell }

// Oversubscribed implements transport.Oversubscriber. Huge pages and streaming rings pay
// only if processes need not wait for processors.
func (t *Transport) Oversubscribed(yes bool) {
	t.oversubscribed.Store(yes)
	t.pages.Oversubscribed(yes)
}

// Flushed reports whether nothing waits in this process. Accepted messages lie in the
// peers' memory, but control messages and transfers need this process.
func (t *Transport) Flushed() bool {
	return len(t.work.bulks) == 0 && len(t.work.controls) == 0
}

// Close says goodbye to every peer and unmaps everything. It waits up to a second for
// copies that a peer has under way.
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
	t.freeReclaimable()
	for _, z := range t.retired {
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

	// Direct copies.
	pid       int      // 0: none
	cma       cmaState // from the peer
	cmaTo     cmaState // to the peer
	nonceAddr uint64
	nonce     uint64

	out outRing
	in  *inRing // nil until the peer has connected

	// Transfers.
	offers   bulkList  // outgoing
	takes    bulkList  // incoming
	waiting  bulkQueue // of takes: not begun
	solos    bulkQueue // of takes: read by this side alone, one after the other
	pieces   bulkQueue // of offers: sent through the ring, one after the other
	controls controlQueue

	// blockGen is the last generation given to each block of the peer's fast box
	// to this process. blockBusy says that its transfer is still in takes.
	blockGen  [blockCount]uint32
	blockBusy [blockCount]bool

	received   transferCounts // from the peer
	longs      int            // long messages and transfers, until the ring is streaming
	lostPushes uint64         // of offers up to this, no more pushed pieces come

	// A refused Send: EvWritable follows when wantLen bytes fit.
	wanting bool
	wantLen int

	// The end of the connection.
	gone       bool // the peer process has ended
	bye        bool // the peer has sent its last message
	readClosed bool // no more may be read from the peer
	cutPending bool // this side has cut the connection; Connect will tell the peer
}

type connState uint8

const (
	connUp connState = iota
	connFailing
	connDown
)

// newConn gives proc a slot. It reuses the lowest numbers first, because the engine keeps a
// table by slot.
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

// conn returns the connection of a slot, or nil.
func (t *Transport) conn(s transport.Slot) *conn {
	if int(s) >= len(t.conns) {
		return nil
	}
	return t.conns[s]
}

// eventQueue holds events that do not come from the rings.
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

// forget removes the events for which drop returns true.
func (e *eventQueue) forget(drop func(*transport.Event) bool) {
	e.q = slices.DeleteFunc(e.q[e.next:], func(ev transport.Event) bool { return drop(&ev) })
	e.next = 0
}
