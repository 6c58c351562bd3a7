// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"gompi/internal/base/wire"
)

// Registry is the owner's side of the record of blocking calls. Its methods may be called from
// any goroutine.
type Registry struct {
	words []atomic.Uint64
	taken atomic.Uint64 // bit i says that slot i is taken
}

// Open turns mem into an empty registry. mem must be Bytes of a mapped segment that begin at a
// word. There must be only one Registry for it, and it must not be in use when mem is unmapped.
func Open(mem []byte) (*Registry, error) {
	if len(mem) < Bytes {
		return nil, fmt.Errorf("registry of blocking calls has %d bytes, needs %d", len(mem), Bytes)
	}
	w, ok := words(mem[:Bytes])
	if !ok {
		return nil, errors.New("registry of blocking calls does not begin at a word")
	}
	for i := range w {
		if w[i].Load() != 0 { // new memory is zero, and a store costs 8 ns
			w[i].Store(0)
		}
	}
	w[1].Store(version)
	w[0].Store(magic)
	return &Registry{words: w}, nil
}

// Enter records a call and returns its slot for Leave. It returns -1 if all slots are taken; then
// the call is not recorded. Enter keeps nothing of e. With Leave it costs some 500 ns, because
// each word is an atomic store, so call it only when a wait has become long.
func (b *Registry) Enter(e *Entry) int {
	slot := b.take()
	if slot < 0 {
		return -1
	}
	var img [slotWords]uint64
	used := e.encode(&img)
	w := b.slot(slot)
	seq := w[wSeq].Load()
	w[wSeq].Store(seq + 1)
	for i := wState; i < used; i++ {
		w[i].Store(img[i])
	}
	for i := wHoldJob; i < wUnused; i++ {
		w[i].Store(img[i])
	}
	w[wSeq].Store(seq + 2)
	return slot
}

// SetHolder records which process keeps the call in a slot waiting; see Entry.Holder. Slot -1 is
// allowed and has no effect. No other goroutine may leave the slot meanwhile.
func (b *Registry) SetHolder(slot int, holder wire.ProcID, waits bool) {
	if slot < 0 {
		return
	}
	job, serial := holdWords(holder, waits)
	w := b.slot(slot)
	if w[wHoldJob].Load() == job && w[wHold].Load() == serial {
		return
	}
	seq := w[wSeq].Load()
	w[wSeq].Store(seq + 1)
	w[wHoldJob].Store(job)
	w[wHold].Store(serial)
	w[wSeq].Store(seq + 2)
}

// holdWords returns the two words of a slot that describe the holder.
func holdWords(holder wire.ProcID, waits bool) (job, serial uint64) {
	serial = uint64(holder.Serial)
	if waits {
		serial |= 1 << 32
	}
	return uint64(holder.Job), serial
}

// Calls returns the recorded calls in the order of their slots. It calls more for each, which may
// complete the entry.
func (b *Registry) Calls(more func(slot int, e *Entry)) []Entry { return callsIn(b.words, more) }

// Leave ends the call in a slot. Slot -1 is allowed and has no effect.
func (b *Registry) Leave(slot int) {
	if slot < 0 {
		return
	}
	w := b.slot(slot)
	seq := w[wSeq].Load()
	w[wSeq].Store(seq + 1)
	w[wState].Store(0)
	w[wSeq].Store(seq + 2)
	if old := b.taken.And(^(uint64(1) << slot)); old&(1<<slot) == 0 {
		panic(fmt.Sprintf("gompi: BUG: slot %d of the registry of blocking calls left twice", slot))
	}
}

// take claims the lowest free slot, or returns -1.
func (b *Registry) take() int {
	for {
		old := b.taken.Load()
		slot := bits.TrailingZeros64(^old)
		if slot >= Slots {
			return -1
		}
		if b.taken.CompareAndSwap(old, old|1<<slot) {
			return slot
		}
	}
}

func (b *Registry) slot(i int) []atomic.Uint64 { return slotOf(b.words, i) }

func slotOf(w []atomic.Uint64, i int) []atomic.Uint64 {
	return w[headBytes/8+i*slotWords:][:slotWords]
}

// packPair packs two numbers into a word. Numbers that do not fit are clamped.
func packPair(low, high int) uint64 {
	return uint64(uint32(clamp(low))) | uint64(uint32(clamp(high)))<<32
}

func clamp(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

func low(w uint64) int  { return int(int32(uint32(w))) }
func high(w uint64) int { return int(int32(uint32(w >> 32))) }

// encode fills the words of a slot and returns how many of them matter.
func (e *Entry) encode(w *[slotWords]uint64) int {
	op := e.Op[:min(len(e.Op), MaxOp)]
	// If a caller is too long, keep its end, which says more than its beginning.
	caller := e.Caller[max(0, len(e.Caller)-MaxCaller):]
	w[wState] = packPair(inUse, e.CommSize)
	w[wCtxJob] = uint64(e.Comm.Creator.Job)
	w[wCtx] = uint64(e.Comm.Creator.Serial) | uint64(e.Comm.Serial)<<32
	w[wRank] = packPair(e.Rank, e.Peer)
	w[wPeerJob] = uint64(e.PeerProc.Job)
	w[wPeer] = uint64(e.PeerProc.Serial) | uint64(len(op))<<32 | uint64(len(caller))<<40
	w[wTag] = uint64(e.Tag)
	w[wBytes] = uint64(e.Bytes)
	w[wSince] = uint64(e.Since.UnixNano())
	putText(w[wOp:wCaller], op)
	putText(w[wCaller:wHoldJob], caller)
	w[wHoldJob], w[wHold] = holdWords(e.Holder, e.HolderWaits)
	return wCaller + (len(caller)+7)/8
}

// putText fills words with a text and zeros behind it.
func putText(w []uint64, text string) {
	for i := range w {
		var b [8]byte
		text = text[copy(b[:], text):]
		w[i] = binary.LittleEndian.Uint64(b[:])
	}
}

// getText reads n bytes of text, but no more than the words hold. It replaces characters that
// cannot be printed by question marks, because the text goes to a terminal.
func getText(w []uint64, n int) string {
	var sb strings.Builder
	for i := range min(n, 8*len(w)) {
		c := byte(w[i/8] >> (8 * (i % 8)))
		if c < ' ' || c > '~' {
			c = '?'
		}
		sb.WriteByte(c)
	}
	return sb.String()
}

// readTries bounds how often a slot is read again that keeps changing.
const readTries = 64

// Read returns the calls in mem in the order of their slots. mem may change meanwhile, and need not
// come from a Registry: each entry is whole or missing, and memory that is not a registry has none.
func Read(mem []byte) []Entry {
	w := registryIn(mem)
	if w == nil {
		return nil
	}
	return callsIn(w, func(int, *Entry) {})
}

func callsIn(w []atomic.Uint64, more func(slot int, e *Entry)) []Entry {
	var list []Entry
	for i := range Slots {
		var img [slotWords]uint64
		if readSlot(slotOf(w, i), &img) && low(img[wState]) == inUse {
			e := decode(&img)
			more(i, &e)
			list = append(list, e)
		}
	}
	return list
}

// registryIn returns the words of a registry, or nil if mem is not one.
func registryIn(mem []byte) []atomic.Uint64 {
	if len(mem) < Bytes {
		return nil
	}
	w, ok := words(mem[:Bytes])
	if !ok || w[0].Load() != magic || w[1].Load() != version {
		return nil
	}
	return w
}

// readSlot copies one slot. It returns false if the slot is unused, or changes all the time because
// its owner died while writing it.
func readSlot(w []atomic.Uint64, img *[slotWords]uint64) bool {
	for range readTries {
		seq := w[wSeq].Load()
		if seq == 0 {
			return false
		}
		if seq%2 != 0 {
			continue
		}
		for i := wState; i < wUnused; i++ {
			img[i] = w[i].Load()
		}
		if w[wSeq].Load() == seq {
			return true
		}
	}
	return false
}

// decode makes an entry from any words. It replaces numbers that no Registry writes by neutral
// ones.
func decode(w *[slotWords]uint64) Entry {
	e := Entry{
		Op:          getText(w[wOp:wCaller], int(w[wPeer]>>32&0xff)),
		Comm:        wire.ContextID{Creator: wire.ProcID{Job: wire.JobID(w[wCtxJob]), Serial: uint32(w[wCtx])}, Serial: uint32(w[wCtx] >> 32)},
		CommSize:    max(0, high(w[wState])),
		Rank:        max(0, low(w[wRank])),
		Peer:        max(NoPeer, high(w[wRank])),
		PeerProc:    wire.ProcID{Job: wire.JobID(w[wPeerJob]), Serial: uint32(w[wPeer])},
		Tag:         int(w[wTag]),
		Bytes:       max(0, int64(w[wBytes])),
		Since:       time.Unix(0, int64(w[wSince])),
		Caller:      getText(w[wCaller:wHoldJob], int(w[wPeer]>>40&0xff)),
		Holder:      wire.ProcID{Job: wire.JobID(w[wHoldJob]), Serial: uint32(w[wHold])},
		HolderWaits: w[wHold]>>32 == 1,
	}
	if e.Peer < 0 {
		e.PeerProc = wire.ProcID{}
	}
	return e
}
