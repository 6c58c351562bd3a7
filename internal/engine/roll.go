// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gompi/internal/match"
	"gompi/internal/rollcall"
)

// entry describes a blocking call for the roll call. It runs on the goroutine
// of the call, whose caller it names.
func (e *Engine) entry(op Op, c *Context, rank, tag int32, size int64) rollcall.Entry {
	en := rollcall.Entry{Op: string(op), Peer: int(rank), Tag: int(tag), Bytes: size, Since: time.Now(), Caller: e.caller()}
	if c == nil {
		return en
	}
	en.Comm, en.CommSize, en.Rank = c.ID, c.Members.Len(), c.Rank
	if rank >= 0 && c.exists(seat(rank)) {
		en.PeerProc = c.procAt(seat(rank))
	}
	return en
}

// site is how a goroutine came to wait: frames of this library, and that of
// its caller or callers.
type site [12]uintptr

// maxSites bounds the descriptions that are kept.
const maxSites = 1024

// caller is the innermost frame outside this library. Descriptions are kept:
// making one allocates, and the same loop waits again and again.
func (e *Engine) caller() string {
	var at site
	runtime.Callers(3, at[:])
	text, ok := e.sites[at]
	if !ok {
		text = outermost()
		if e.sites == nil || len(e.sites) >= maxSites {
			e.sites = map[site]string{}
		}
		e.sites[at] = text
	}
	return text
}

// Caller is where the program called the function of this library that asks.
func Caller() string { return outermost() }

func outermost() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	for {
		f, more := frames.Next()
		name := f.Function
		if !inside(name) || !more {
			return fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, name[strings.LastIndexByte(name, '/')+1:])
		}
	}
}

// inside reports whether a function belongs to the library.
func inside(name string) bool {
	for _, pkg := range [...]string{"mpi", "rma", "internal/engine", "internal/remote"} {
		if strings.HasPrefix(name, "gompi/"+pkg+".") {
			return true
		}
	}
	return false
}

// maxListed bounds each list of Queues.
const maxListed = 64

// queuesPatience is how long Queues waits for the lock, looking every
// queuesPause.
const (
	queuesPatience = 300 * time.Millisecond
	queuesPause    = time.Millisecond
)

// Queues describes what is unmatched and pending, a line each, for people. It
// answers also where a user's operation has locked the engine, for ever maybe.
func (e *Engine) Queues() string {
	for end := time.Now().Add(queuesPatience); !e.mu.TryLock(); time.Sleep(queuesPause) {
		if time.Now().After(end) {
			return "not known: the library is locked, as by a user operation (see NewOp) that takes long or calls the library; the goroutines tell\n"
		}
	}
	defer e.mu.Unlock()
	var b strings.Builder
	list := func(title string, n int, each func(func(string) bool)) {
		if n == 0 {
			return
		}
		fmt.Fprintf(&b, "%s: %d\n", title, n)
		shown := 0
		each(func(s string) bool {
			fmt.Fprintf(&b, "  %s\n", s)
			shown++
			return shown < maxListed
		})
		if shown < n {
			fmt.Fprintf(&b, "  and %d more\n", n-shown)
		}
	}
	list("receives posted, not matched", e.table.PostedLen(), func(yield func(string) bool) {
		for p := range e.table.EachPosted {
			if !yield(fmt.Sprintf("%s from %s tag %s, %d bytes, %s", p.Val.op,
				orAny(p.Key.Source()), orAny(p.Key.Tag()), p.Val.buf.Bytes(), p.Key.Context().Label())) {
				return
			}
		}
	})
	list("messages arrived, not received", e.table.ArrivedLen(), func(yield func(string) bool) {
		for a := range e.table.EachArrived {
			if !yield(fmt.Sprintf("from %d tag %d, %d bytes, %s", a.Key.Source(), a.Key.Tag(), a.Val.bytes, a.Key.Context().Label())) {
				return
			}
		}
	})
	var sends []string
	for _, chunk := range e.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			if r.kind == reqSend && !r.done {
				sends = append(sends, fmt.Sprintf("%s to %d tag %d, %d bytes, %s: %s", r.op, r.rank, r.tag, r.buf.Bytes(), r.ctx.ID.Label(), r.stage()))
			}
		}
	}
	list("sends not complete", len(sends), func(yield func(string) bool) {
		for _, s := range sends {
			if !yield(s) {
				return
			}
		}
	})
	return b.String()
}

func orAny(v int32) string {
	if v == match.Any {
		return "any"
	}
	return fmt.Sprint(v)
}

func (r *Request) stage() string {
	switch {
	case r.pend&pendQueue != 0 && r.peer.state != peerUp:
		return "waits for a connection"
	case r.pend&pendQueue != 0:
		return "waits for room at the receiver"
	case r.pend&(pendAck|pendBulk) != 0:
		return "not matched, or under way"
	}
	return "leaving"
}

// protocol cuts off a peer that broke the rules, or that cannot be answered.
func (e *Engine) protocol(p *Peer, err error) {
	if p == nil || p.state == peerDown {
		return
	}
	if p.link == e.links[0] {
		panic(fmt.Sprintf("gompi: BUG: %v from myself", err))
	}
	if p.cause == nil {
		p.cause = err
	}
	p.link.Cut(p.slot, err) // EvDown follows
}
