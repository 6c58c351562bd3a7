// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"runtime"
	"time"

	"gompi/internal/control/changepage"
)

// Line is what a member of a watched set says of itself, without a message.
type Line struct {
	Iteration int           // of its last Check; -1: it has not called any
	Time      time.Duration // of an iteration, the mean of those of the last 10 ms or so; 0: not known
	Bytes     int64         // see AddBytes; from 0 again after each change of the set
}

// What a member may say at most.
const (
	mostTime  = time.Hour
	mostBytes = 1 << 50
)

// Lines are those of the members that are on the caller's host, by their ranks in the
// set that is watched: for rank, line := range w.Lines. Nobody is asked, nothing is
// allocated, and any goroutine may look at any time. There are none once the watch is
// closed.
func (w *Watcher) Lines(yield func(rank int, l Line) bool) {
	w.mu.Lock()
	g, of := w.page, w.of
	if g != nil {
		g.retain()
	}
	w.mu.Unlock()
	if g == nil {
		return
	}
	defer g.release()
	here := of.Hosts.At(of.Members.Index(w.proc.Core().Process().Self))
	all := g.body.Members == of.Members.Len()
	for rank, place := 0, 0; rank < of.Members.Len() && place < g.body.Members; rank++ {
		if all || of.Hosts.At(rank) == here {
			if !yield(rank, lineOf(g.lines.MemberReport(place))) {
				return
			}
			place++
		}
	}
}

func lineOf(l changepage.MemberReport) Line {
	x := Line{
		Iteration: -1,
		Time:      time.Duration(min(l.Nanos, uint64(mostTime))),
		Bytes:     int64(min(l.Bytes, mostBytes)),
	}
	if l.Checked {
		x.Iteration = int(min(l.Iteration, changepage.Now))
	}
	return x
}

// AddTime adds to f how long an iteration takes just now with as many processes as the
// set that is watched has: the longest of Line.Time of the members on the caller's host;
// nothing while none is known. Who calls it before each Commit has a fit after the
// first change of size. Local; any goroutine may call it.
func (w *Watcher) AddTime(f *COLFit) {
	longest := time.Duration(0)
	for _, l := range w.Lines {
		longest = max(longest, l.Time)
	}
	w.mu.Lock()
	size := w.of.Members.Len()
	w.mu.Unlock()
	f.Add(size, longest.Seconds())
}

// AddBytes says that a layer has moved n more bytes of the data that a change waits for,
// on this process, of the set as it is now: while members hold a change back (Options.Hold)
// and bytes are added by any of them, its deadline (Deadlines.Accept) begins anew, and so does
// that of the votes (Deadlines.Commit) when members were handed it. Any goroutine may call it.
// Local.
func (w *Watcher) AddBytes(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.page != nil && n > 0 {
		w.page.member.AddBytes(uint64(n))
		runtime.KeepAlive(w)
	}
}
