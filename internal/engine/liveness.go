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

// A process learns the end of others from the control plane alone.
// docs/design/015-failure-semantics.md.

// liveness is what a process knows of the ends of others, and its queries about them.
type liveness struct {
	process *process
	waiters *waiters

	dead     map[wire.ProcID]*departure // processes that have ended, as long as a context or a query needs them
	watched  map[wire.ProcID]struct{}   // processes whose end the control plane will report
	asked    map[wire.ProcID]int        // by process: calls of Ask that Unask has not ended
	pings    map[uint64]*ping           // without an answer so far
	lastPing uint64
	lost     []loss    // processes that will not answer any more, in the order in which this process learnt it
	syncers  []*waiter // they wait for the last messages of processes that have ended
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

// departure is the end of a process, and how it came about.
type departure struct {
	how   string      // for messages: "was killed ..." if it died, "has finalized ..." if it left
	class fault.Class // ProcFailed, Left, or Transport if there was no such process
	told  bool        // the server of remote memory knows
	holds int         // contexts that have the process as a member
}

// loss is a process that will not answer any more: it has ended, or it lives and cannot be
// reached.
type loss struct {
	proc wire.ProcID
	f    *fault.Fault // without a member: see faultAt
}

// fault returns the fault of the end. It names no rank: the caller adds that.
func (d *departure) fault() *fault.Fault {
	if d.class == fault.Left {
		return &fault.Fault{Class: fault.Left, Peer: -1, Err: left{-1, d.how}}
	}
	return &fault.Fault{Class: d.class, Peer: -1, Err: errors.New(d.how)}
}

// hold asks the control plane to report the end of each member of a context. It also
// reports members that have ended already.
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

// unwatched reports whether the end of a process is neither known nor asked for. It marks
// it as asked for.
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

// wakeSyncers wakes the waiters that wait for the end of others.
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

// awaitEnd waits until another process has ended, a ping was answered, or user ends.
func (lv *liveness) awaitEnd(c *Context, op fault.Call, user context.Context) {
	w := lv.waiters.newWaiter()
	w.Need, w.user = 1, user
	w.call = callInfo{op: op, ctx: c, rank: callreg.NoPeer}
	lv.syncers = append(lv.syncers, w)
	lv.waiters.await(w)
	lv.syncers = slices.DeleteFunc(lv.syncers, func(x *waiter) bool { return x == w })
	lv.waiters.freeWaiter(w)
}

// A process that cannot be reached may be about to end. On a busy machine the control plane
// reports that seconds later, so no timeout decides. The control plane asks the process
// itself: a process that is leaving does not answer.

// ping is a query whether a process takes part in the job.
type ping struct {
	proc     wire.ProcID
	peer     *Peer // it waits for the answer; may be nil
	answered bool
}

// ping asks a process until unping or the answer. If this process itself answers, the
// control plane has reported all deaths that it knew when it was asked.
func (lv *liveness) ping(proc wire.ProcID, p *Peer) (uint64, *ping) {
	lv.lastPing++
	g := &ping{proc: proc, peer: p}
	lv.pings[lv.lastPing] = g
	lv.process.cfg.Control.Ping(proc, lv.lastPing)
	return lv.lastPing, g
}

func (l *liveness) unping(id uint64) { delete(l.pings, id) }

// Pinged tells the engine that a process cannot reach this one, and asks for an answer.
func (lv *liveness) Pinged(by wire.ProcID, id uint64) {
	lv.process.mu.Lock()
	defer lv.process.mu.Unlock()
	if !lv.process.closed {
		lv.process.cfg.Control.Pong(by, id)
	}
}

// hasFinalized describes a process that has left in order.
const hasFinalized = "has finalized; nothing more will come"

// left is the cause of an error: a process has left the job.
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
