// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"runtime"
	"time"

	"gompi/internal/control/changepage"
)

// Line is what a member of a watched set writes of itself on the set's page.
type Line struct {
	Iteration int           // of its last Check; -1: it has not called Check
	Time      time.Duration // the mean time of an iteration over the last 10 ms or so; 0: not known
	Bytes     int64         // see AddBytes; 0 again after each change of the set
}

// Bounds of a line that is shown.
const (
	mostTime  = time.Hour
	mostBytes = 1 << 50
)

// Lines yields the lines of the members on the caller's host, by their ranks in the
// watched set: for rank, line := range w.Lines. It sends no message and allocates nothing.
// Any goroutine may call it at any time. It yields nothing once the watch is closed. Local.
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

// AddTime adds to f the present time of an iteration with the size of the watched set: the
// longest Line.Time of the members on the caller's host. It adds nothing while no time is
// known. A program that calls it before each Commit has a fit after the first change of
// size. Any goroutine may call it. Local.
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

// AddBytes reports that this member has moved n more bytes of the data that a change waits
// for. A report of any member begins one deadline of the change anew: that of the members
// (Deadlines.Accept) while they hold the change back (Options.Hold), that of the votes
// (Deadlines.Commit) once members got the change. Any goroutine may call it. Local.
func (w *Watcher) AddBytes(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.page != nil && n > 0 {
		w.page.member.AddBytes(uint64(n))
		runtime.KeepAlive(w)
	}
}
