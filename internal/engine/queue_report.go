// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// maxListed bounds each list of Queues. maxGroups bounds how many groups it collects.
const (
	maxListed = 64
	maxGroups = 4096
)

// queuesTimeout is how long Queues waits for the lock. It tries again every queuesPause.
const (
	queuesTimeout = 300 * time.Millisecond
	queuesPause   = time.Millisecond
)

// lot is what the messages or operations of one line of the report have in common.
type lot struct {
	op        fault.Call
	peer, tag int32
	ctx       wire.ContextID
	stage     string
	instead   string
}

// tally counts a lot and its sizes.
type tally struct {
	lot
	n      int
	lo, hi int64
	first  int // position of its first one
}

// size describes the sizes: "42 to 44 B".
func (t *tally) size() string {
	if t.lo == t.hi {
		return fmt.Sprintf("%d B", t.lo)
	}
	return fmt.Sprintf("%d to %d B", t.lo, t.hi)
}

// tallies groups a list with sizes, largest groups first. After maxGroups groups it only
// counts.
func tallies(all iter.Seq2[lot, int64]) (list []*tally, n int) {
	byLot := map[lot]*tally{}
	for l, size := range all {
		n++
		t := byLot[l]
		if t == nil {
			if len(list) == maxGroups {
				continue
			}
			t = &tally{lot: l, lo: size, hi: size, first: n}
			byLot[l] = t
			list = append(list, t)
		}
		t.n++
		t.lo, t.hi = min(t.lo, size), max(t.hi, size)
	}
	slices.SortFunc(list, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.first, b.first))
	})
	return list, n
}

// Queues describes unmatched messages and pending operations for people: first the senders
// of the memory in use, then a line for each peer, tag and communicator. It also answers
// while a user's operation holds the engine's lock, perhaps for ever.
func (e *Engine) Queues() string {
	if !e.tryLock(time.Now().Add(queuesTimeout)) {
		return "not known: the library is locked, as by a user operation (see NewOp) that takes long or calls the library; the goroutines tell\n"
	}
	defer e.mu.Unlock()
	var b strings.Builder
	e.tellFull(&b)
	list := func(title string, line func(*tally) string, all iter.Seq2[lot, int64]) {
		ts, n := tallies(all)
		if n == 0 {
			return
		}
		fmt.Fprintf(&b, "%s: %d\n", title, n)
		for _, t := range ts[:min(len(ts), maxListed)] {
			fmt.Fprintf(&b, "  %s, %s, %s", line(t), t.size(), t.ctx.Label())
			if t.instead != "" {
				fmt.Fprintf(&b, "; there is instead %s", t.instead)
			}
			b.WriteByte('\n')
			n -= t.n
		}
		if n > 0 {
			fmt.Fprintf(&b, "  and %d more\n", n)
		}
	}
	list("receives posted, not matched", func(t *tally) string {
		return fmt.Sprintf("%d %s from rank %s, tag %s", t.n, t.op, orAny(t.peer), orAny(t.tag))
	}, func(yield func(lot, int64) bool) {
		sought := 0
		for p := range e.table.EachPosted {
			other := ""
			if sought++; sought <= maxListed {
				other = instead(e, p.Key)
			}
			if !yield(lot{op: p.Val.op, peer: p.Key.Source(), tag: p.Key.Tag(), ctx: p.Key.Context(), instead: other}, p.Val.buf.Bytes()) {
				return
			}
		}
	})
	list("probes, not matched", func(t *tally) string {
		return fmt.Sprintf("%d %s from rank %s, tag %s", t.n, t.op, orAny(t.peer), orAny(t.tag))
	}, func(yield func(lot, int64) bool) {
		for _, w := range e.probers {
			key := w.call.ctx.keys[0].With(w.call.rank, w.call.tag)
			if !yield(lot{op: w.call.op, peer: w.call.rank, tag: w.call.tag, ctx: key.Context(), instead: instead(e, key)}, 0) {
				return
			}
		}
	})
	list("messages arrived, not received", func(t *tally) string {
		return fmt.Sprintf("%d from rank %d, tag %d", t.n, t.peer, t.tag)
	}, func(yield func(lot, int64) bool) {
		for a := range e.table.Walk {
			if !yield(lot{peer: a.Key.Source(), tag: a.Key.Tag(), ctx: a.Key.Context()}, a.Val.bytes()) {
				return
			}
		}
	})
	list("sends not complete", func(t *tally) string {
		return fmt.Sprintf("%d %s to rank %d, tag %d (%s)", t.n, t.op, t.peer, t.tag, t.stage)
	}, func(yield func(lot, int64) bool) {
		for _, chunk := range e.pool.chunks {
			for i := range chunk {
				r := &chunk[i]
				if r.kind == reqSend && !r.done &&
					!yield(lot{op: r.op, peer: r.rank, tag: r.tag, ctx: r.ctx.ID, stage: r.stage()}, r.buf.Bytes()) {
					return
				}
			}
		}
	})
	return b.String()
}

// maxSought bounds how many messages are compared with a receive.
const maxSought = 1 << 10

// instead describes the arrived message that resembles a pending receive most, or returns
// "". It does not match: a matching one would have been received.
func instead(e *Engine, want match.Key) string {
	var best *arrival
	var at match.Key
	most, seen := 0, 0
	for a := range e.table.Walk {
		if seen++; seen > maxSought {
			break
		}
		if n := likeness(want, a.Key); n > most {
			most, best, at = n, a.Val, a.Key
		}
	}
	if best == nil {
		return ""
	}
	text := fmt.Sprintf("a message with tag %d of %d bytes from rank %d", at.Tag(), best.bytes(), at.Source())
	if at.Context() != want.Context() {
		text += ", " + at.Context().Label()
	}
	return text
}

// likeness counts how much of what a receive wants a message has. Zero means nothing.
func likeness(want, m match.Key) int {
	if want.Plane() != m.Plane() {
		return 0
	}
	source := want.Source() == match.Any || want.Source() == m.Source()
	tag := want.Tag() == match.Any || want.Tag() == m.Tag()
	switch same := want.Context() == m.Context(); {
	case same && source:
		return 4
	case source && tag: // in another communicator
		return 3
	case same && tag:
		return 2
	case same:
		return 1
	}
	return 0
}

// tryLock takes the lock if it becomes free before end.
func (ps *process) tryLock(end time.Time) bool {
	for !ps.mu.TryLock() {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(queuesPause)
	}
	return true
}

// tellFull names the senders whose messages use this process's memory.
func (e *Engine) tellFull(b *strings.Builder) {
	for _, p := range e.tight {
		if p.state == peerDown || !p.credit.AnyFull() {
			continue
		}
		held := int64(0)
		ts, _ := tallies(func(yield func(lot, int64) bool) {
			for a := range e.table.Walk {
				u := a.Val
				if u.peer != p {
					continue
				}
				size := int64(0)
				if u.kind != kindRTS {
					size = u.bytes()
				}
				held += size
				if !yield(lot{peer: a.Key.Source(), tag: a.Key.Tag(), ctx: a.Key.Context()}, size) {
					return
				}
			}
		})
		if len(ts) == 0 {
			continue
		}
		t := ts[0]
		who := "this process"
		if c := e.contexts[t.ctx]; c != nil {
			who = fmt.Sprintf("rank %d", c.Rank)
		}
		what := fmt.Sprintf("%s of unexpected messages", people(held))
		if p.credit.Full(credit.Announced) {
			what += fmt.Sprintf(" and %d announcements of more", p.credit.Held(credit.Announced))
		}
		fmt.Fprintf(b, "%s holds %s from rank %d and has no memory for more: it receives none of tag %d, %s\n", who, what, t.peer, t.tag, t.ctx.Label())
	}
}

// people formats a number of bytes.
func people(n int64) string {
	const k = 1000
	switch {
	case n >= k*k*k:
		return fmt.Sprintf("%.1f GB", float64(n)/(k*k*k))
	case n >= k*k:
		return fmt.Sprintf("%.1f MB", float64(n)/(k*k))
	case n >= k:
		return fmt.Sprintf("%.1f kB", float64(n)/k)
	}
	return fmt.Sprintf("%d B", n)
}

func orAny(v int32) string {
	if v == match.Any {
		return "any"
	}
	return fmt.Sprint(v)
}

func (r *Request) stage() string {
	p := r.peer
	switch {
	case r.pend&pendQueue != 0 && p.state > peerUp:
		return "its connection has ended, and nobody has said why yet"
	case r.pend&pendQueue != 0 && p.state != peerUp:
		return "waits for a connection"
	case r.pend&pendQueue != 0 && p.credit.NoEnvelopes():
		return "waits until the receiver, which is full of messages, receives some"
	case r.pend&pendQueue != 0:
		return "waits for room at the receiver"
	case r.pend&pendBulk != 0 && p.credit.NoEager() && !r.e.credit.Fixed() && r.buf.Bytes() <= int64(p.link.eager):
		return "not matched, and the receiver has no memory left to take it"
	case r.pend&(pendAck|pendBulk) != 0:
		return "not matched, or under way"
	}
	return "leaving"
}
