// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
)

// Sample is the state of a job at one moment.
type Sample struct {
	When  time.Time
	Procs []protocol.StackReport
	Sets  []protocol.SetReport
	Ops   []protocol.OpReport
}

// Rates are per second, for one process or for several together.
type Rates struct {
	CPU                     float64 // busy processors
	Sent, SentBytes         float64
	Received, ReceivedBytes float64
	Collectives             float64
}

// rates returns the rates between two moments, or false if there are none.
func rates(from, to *protocol.Used) (r Rates, ok bool) {
	span := to.At - from.At
	if from.At == 0 || span <= 0 || to.CPU < from.CPU {
		return Rates{}, false
	}
	r.CPU = float64(to.CPU-from.CPU) / float64(span)
	for i, n := range r.messages() {
		was, is := *from.Numbers()[i], *to.Numbers()[i]
		if is < was {
			return Rates{}, false
		}
		*n = float64(is-was) / span.Seconds()
	}
	return r, true
}

// messages are in the order of Tally.Numbers.
func (r *Rates) messages() [5]*float64 {
	return [...]*float64{&r.Sent, &r.SentBytes, &r.Received, &r.ReceivedBytes, &r.Collectives}
}

func (r *Rates) add(more *Rates) {
	r.CPU += more.CPU
	for i, n := range more.messages() {
		*r.messages()[i] += *n
	}
}

// Row describes one process, or the processes of one host together.
type Row struct {
	Name   string
	Proc   *protocol.StackReport // nil: the row is a host
	Host   string
	Ranks  int // number of processes in the row
	Memory int64
	Rates
	Known bool // the rates are known; for a host, those of some processes, as newcomers have none yet
	// Waits is the call that it waits in, For the peer, and Waited the time. Or Waits
	// describes another state of the process.
	Waits, For string
	Waited     time.Duration
	Fresh      bool // it has arrived a moment ago
	Gone       bool // it has ended

	order int // position in the list
}

// freshFor is how long a process counts as new.
const freshFor = 5 * time.Second

// leastSpan is the shortest time over which rates are meaningful.
const leastSpan = 200 * time.Millisecond

// History keeps earlier samples for rates. The zero value has none.
type History struct {
	began time.Time
	procs map[uint32]*past // the latest sample, by serial
}

type past struct {
	since time.Time // when it was first seen
	ended time.Time // when it was first seen to have ended; zero: it has not
	used  protocol.Used
	rates Rates
	known bool
}

// Rows returns the processes of a sample, which must be later than all before. They are in
// the order of their ranks in the main set; others follow. A process that has ended stays
// for a moment.
func (h *History) Rows(s *Sample) []Row {
	if h.began.IsZero() {
		h.began = s.When
	}
	called := make(map[wire.ProcID]string, len(s.Procs))
	for i := range s.Procs {
		called[s.Procs[i].Proc] = s.Procs[i].Called()
	}
	before := h.procs
	h.procs = make(map[uint32]*past, len(s.Procs))
	rows := make([]Row, 0, len(s.Procs))
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.State == protocol.Spare {
			continue
		}
		was := before[p.Proc.Serial]
		switch {
		case was == nil:
			was = &past{since: s.When, used: p.Used}
		case p.Used.At == 0:
			was.known = false
		case p.Used.At-was.used.At >= leastSpan:
			was.rates, was.known = rates(&was.used, &p.Used)
			was.used = p.Used
		case p.Used.At < was.used.At || was.used.At == 0:
			was.used, was.known = p.Used, false
		}
		h.procs[p.Proc.Serial] = was
		if p.State == protocol.Exited {
			if was.ended.IsZero() && was.since != s.When {
				was.ended = s.When
			}
			if s.When.Sub(was.ended) >= freshFor {
				continue
			}
		}
		r := Row{Name: p.Called(), Proc: p, Host: printable(p.Host), Ranks: 1, Memory: p.Used.Memory, Rates: was.rates, Known: was.known,
			Fresh: was.since.After(h.began) && s.When.Sub(was.since) < freshFor, Gone: p.State == protocol.Exited, order: p.Rank}
		if p.Name != "" {
			r.order = protocol.MaxMembers + int(p.Proc.Serial)
		}
		r.waits(called, s.When)
		rows = append(rows, r)
	}
	return rows
}

// waits describes why a process waits.
func (r *Row) waits(called map[wire.ProcID]string, now time.Time) {
	switch p := r.Proc; {
	case p.State == protocol.Exited && p.How != "":
		r.Waits = printable(p.How)
	case p.State != protocol.Joined:
		r.Waits = p.State.String()
	case p.Silent != "":
		r.Waits = printable(p.Silent)
	case len(p.Calls) > 0:
		c := &p.Calls[0]
		r.Waits, r.For, r.Waited = c.Op, peer(c, called), max(0, now.Sub(c.Since))
	}
}

// peer names the peer of a call: one process, or any.
func peer(c *callreg.Entry, called map[wire.ProcID]string) string {
	switch {
	case c.Holder != (wire.ProcID{}) && called[c.Holder] != "": // the holder of the lock, not the owner of the memory
		return called[c.Holder]
	case c.Peer == callreg.NoPeer:
		return ""
	case c.Peer == callreg.AnyPeer:
		return "any rank"
	case called[c.PeerProc] != "":
		return called[c.PeerProc]
	}
	return fmt.Sprintf("rank %d of its communicator", c.Peer)
}
