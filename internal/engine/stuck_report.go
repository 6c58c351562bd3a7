// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// Calls returns the calls in which this process waits, for a report. It adds the processes
// that keep them waiting now; it finds these out and may ask other processes, so it takes a
// moment. Without a registry of blocking calls it returns nil.
func (e *Engine) Calls() []callreg.Entry {
	book := e.cfg.Book
	if book == nil {
		return nil
	}
	end := time.Now().Add(queuesTimeout)
	for ask := true; time.Now().Before(end) && e.tryLock(end); ask = false {
		unknown := 0
		for _, h := range e.prog.Hooks() {
			w, ok := h.(*Await)
			if !ok || w.Holder == nil || w.req == nil || w.req.waiter == nil {
				continue
			}
			rank, inLine, known := w.Holder(ask)
			if !known {
				unknown++
				continue
			}
			p, inLine := w.Ctx.holds(holder{rank, inLine})
			book.SetHolder(w.req.waiter.slot, p, inLine)
		}
		e.mu.Unlock()
		if unknown == 0 {
			break
		}
		time.Sleep(queuesPause)
	}
	others := insteads(e)
	return book.Calls(func(slot int, en *callreg.Entry) { en.Unmatched = others[slot] })
}

// insteads describes, by registry slot, the arrived messages that do not match the receives
// and probes in which this process waits.
func insteads(e *Engine) map[int]string {
	texts := map[int]string{}
	if !e.tryLock(time.Now().Add(queuesTimeout)) {
		return texts
	}
	defer e.mu.Unlock()
	for p := range e.table.EachPosted {
		if w := p.Val.waiter; w != nil && w.slot >= 0 && texts[w.slot] == "" {
			texts[w.slot] = instead(e, p.Key)
		}
	}
	for _, w := range e.probers {
		if w.slot >= 0 {
			texts[w.slot] = instead(e, w.call.ctx.keys[0].With(w.call.rank, w.call.tag))
		}
	}
	return texts
}

// Unreceived names the messages that have arrived and were not received: a line for each
// rank, tag and communicator.
func (e *Engine) Unreceived() (lines []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.progress() > 0 {
	}
	list, _ := tallies(func(yield func(lot, int64) bool) {
		for a := range e.table.Walk {
			if a.Key.Plane() == wire.TrafficP2P && !yield(lot{peer: a.Key.Source(), tag: a.Key.Tag(), ctx: a.Key.Context()}, a.Val.bytes()) {
				return
			}
		}
	})
	for _, t := range list {
		text, were := "a message with tag", "was"
		if t.n > 1 {
			text, were = fmt.Sprintf("%d messages with tag", t.n), "were"
		}
		lines = append(lines, fmt.Sprintf("%s %d of %s from rank %d, %s, %s not received", text, t.tag, strings.Replace(t.size(), " B", " bytes", 1), t.peer, t.ctx.Label(), were))
	}
	return lines
}
