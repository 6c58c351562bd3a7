// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// What this process knows of others: docs/design/015-failure-semantics.md. Only
// the control plane says that a process has died or left.

// liveness is what a process knows of the end of others, and asks about it.
type liveness struct {
	process *process
	waiters *waiters

	dead     map[wire.ProcID]*departure // those that have ended, as long as anybody cares
	watched  map[wire.ProcID]struct{}   // whose end will be told
	asked    map[wire.ProcID]int        // by name: calls of Ask that Unask has not ended
	pings    map[uint64]*ping           // not answered yet
	lastPing uint64
	lost     []loss    // who will answer no more, in the order in which it was learnt
	syncers  []*waiter // who wait for the last messages of those that have ended
}

func newLiveness(p *process, w *waiters) liveness {
	return liveness{
		process: p,
		waiters: w,
		dead:    map[wire.ProcID]*departure{},
		watched: map[wire.ProcID]struct{}{},
		asked:   map[wire.ProcID]int{},
		pings:   map[uint64]*ping{},
	}
}

// departure is how a process ended.
type departure struct {
	how   string      // died: "was killed ..."; left: "has finalized ...", said of it
	class fault.Class // ProcFailed, Left, or Transport: there never was such a process
	told  bool        // to the server of remote memory
	holds int         // contexts that have it
}

// loss is what became of a process that will answer no more: it has ended, or
// lives and cannot be reached.
type loss struct {
	proc wire.ProcID
	f    *fault.Fault // of no seat
}

// fault says nothing of who it was: errors have the rank.
func (d *departure) fault() *fault.Fault {
	if d.class == fault.Left {
		return &fault.Fault{Class: fault.Left, Peer: -1, Err: left{-1, d.how}}
	}
	return &fault.Fault{Class: d.class, Peer: -1, Err: errors.New(d.how)}
}

// hold asks to be told of the end of all members of a context. The control
// plane also tells of those that have ended.
func (lv *liveness) hold(c *Context) {
	if len(lv.watched) == 0 {
		lv.watched = make(map[wire.ProcID]struct{}, c.Members.Len()+c.Remote.Len())
	}
	var b wire.MembersBuilder
	for _, m := range [...]wire.Members{c.Members, c.Remote} {
		for _, p := range m.All() {
			if lv.unwatched(p) {
				b.Add(wire.Range{First: p, Count: 1})
			}
		}
	}
	if m := b.Members(); m.Len() > 0 {
		lv.process.cfg.Control.Watch(m)
	}
}

// unwatched reports whether nothing is known of a process and nothing will be
// told, and notes that it is asked for.
func (lv *liveness) unwatched(p wire.ProcID) bool {
	if _, asked := lv.watched[p]; asked || p == lv.process.cfg.Self || lv.dead[p] != nil {
		return false
	}
	lv.watched[p] = struct{}{}
	return true
}

func (lv *liveness) ask(p wire.ProcID) {
	if lv.unwatched(p) {
		lv.process.cfg.Control.Watch(wire.MembersOf(p))
	}
}

// wakeSyncers lets those look again who wait for news of others.
func (lv *liveness) wakeSyncers() {
	for _, w := range lv.syncers {
		lv.process.prog.Hit(&w.Waiter)
	}
	lv.syncers = lv.syncers[:0]
}

// unlose forgets a loss, if there is one.
func (l *liveness) unlose(proc wire.ProcID) bool {
	i := slices.IndexFunc(l.lost, func(x loss) bool { return x.proc == proc })
	if i < 0 {
		return false
	}
	l.lost = slices.Delete(l.lost, i, i+1)
	return true
}

// awaitEnd waits until another process has ended or a ping was answered, or until
// user ends.
func (lv *liveness) awaitEnd(c *Context, op fault.Call, user context.Context) {
	w := lv.waiters.newWaiter()
	w.Need, w.user = 1, user
	w.call = callInfo{op: op, ctx: c, rank: callreg.NoPeer}
	lv.syncers = append(lv.syncers, w)
	lv.waiters.await(w)
	lv.syncers = slices.DeleteFunc(lv.syncers, func(x *waiter) bool { return x == w })
	lv.waiters.freeWaiter(w)
}

// A process that cannot be reached may be about to end: on a busy machine the
// control plane's word of that comes seconds later. So nobody is given up after
// a time. The process itself is asked, by way of the control plane, and one that
// is leaving does not answer.

// ping is a question whether a process takes part in the job.
type ping struct {
	proc     wire.ProcID
	peer     *Peer // which waits for it; or nil
	answered bool
}

// ping asks a process, until unping or its answer. Answered by this process
// itself it says that the control plane has told of all deaths it knew of.
func (lv *liveness) ping(proc wire.ProcID, p *Peer) (uint64, *ping) {
	lv.lastPing++
	g := &ping{proc: proc, peer: p}
	lv.pings[lv.lastPing] = g
	lv.process.cfg.Control.Ping(proc, lv.lastPing)
	return lv.lastPing, g
}

func (l *liveness) unping(id uint64) { delete(l.pings, id) }

// Pinged tells that a process cannot reach this one, and asks.
func (lv *liveness) Pinged(by wire.ProcID, id uint64) {
	lv.process.mu.Lock()
	defer lv.process.mu.Unlock()
	if !lv.process.closed {
		lv.process.cfg.Control.Pong(by, id)
	}
}

// hasFinalized is said of a process that has left in order.
const hasFinalized = "has finalized; nothing more will come"

// left is the cause of an error that a process has left the job.
type left struct {
	rank int32
	how  string
}

func (l left) Error() string {
	if l.rank < 0 {
		return "the process " + l.how
	}
	return fmt.Sprintf("rank %d %s", l.rank, l.how)
}
