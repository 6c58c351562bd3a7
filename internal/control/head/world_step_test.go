// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// start carries out a Launch.
func (w *world) start() {
	l := w.launches[0]
	w.launches = w.launches[1:]
	if w.rng.IntN(8) == 0 || slices.ContainsFunc(l.Places, func(at Place) bool { return w.lost[at.Host] }) {
		w.say("no places for operation %d", l.Op)
		w.h.Launched(l, errors.New("no places"))
		w.flush()
		return
	}
	procs := w.h.Bind(l)
	w.say("launch of operation %d: %v", l.Op, procs)
	for _, p := range procs {
		m := w.add(p.Proc, p.Host)
		m.coming, m.op = true, l.Op
	}
	w.flush()
	if procs == nil {
		return
	}
	if l.InGroups() {
		w.h.Begin(l, procs)
		w.flush()
		w.free()
		return
	}
	err := w.forks(procs)
	w.h.Launched(l, err)
	w.flush()
	w.free()
}

// startGroup carries out a Start.
func (w *world) startGroup() {
	g := w.groups[0]
	w.groups = w.groups[1:]
	err := w.forks(g.Procs)
	w.say("group %d of operation %d: %v", g.Group, g.Op, err)
	w.h.Started(g, err)
	w.flush()
	w.free()
}

// forks makes processes run, or some of them, or none.
func (w *world) forks(procs []protocol.StartProc) error {
	var err error
	if w.rng.IntN(8) == 0 {
		err = errors.New("no such program")
	}
	for _, p := range procs {
		m := w.procs[p.Proc.Serial]
		if m.over || m.fate == Discarded || w.lost[m.host] { // before it was forked
			err = protocol.ErrUnwanted
		}
	}
	for _, p := range procs {
		m := w.procs[p.Proc.Serial]
		if m.unwanted = err != nil; m.over || m.fate == Discarded || w.lost[m.host] {
			m.over, m.exited = true, true
			continue
		}
		if m.forked = err == nil || w.rng.IntN(2) == 0; !m.forked {
			m.over, m.exited = true, true
		}
	}
	return err
}

// free reports what was freed meanwhile.
func (w *world) free() {
	for _, serial := range w.frees {
		w.reports = append(w.reports, report{w.procs[serial].host, protocol.Report{Kind: protocol.ReportFreed, Serial: serial}})
	}
	w.frees = nil
}

func (w *world) some() *member {
	var list []*member
	for n := uint32(1); n <= w.h.lastProc; n++ {
		if m := w.procs[n]; m != nil && m.forked && !m.over {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// anySet is a set that there may be.
func (w *world) anySet() uint32 {
	if w.rng.IntN(2) == 0 {
		return 0
	}
	return uint32(w.rng.IntN(int(w.h.lastSet) + 3))
}

func (w *world) request() change.Request {
	r := change.Request{Kind: change.Kind(1 + w.rng.IntN(5)), NoQueue: w.rng.IntN(6) == 0}
	n := 1 + w.rng.IntN(3)
	switch r.Kind {
	case change.Add:
		r.Join = []int{n}
		for range w.rng.IntN(2) {
			r.In = append(r.In, w.anySet())
		}
	case change.Sub:
		r.In, r.Leave = []uint32{w.anySet()}, 1
	case change.Grow:
		r.In, r.Join = []uint32{w.anySet()}, []int{n}
	case change.Shrink:
		r.In, r.Leave = []uint32{w.anySet()}, n
	case change.Replace:
		r.In, r.To = []uint32{w.anySet()}, 1+w.rng.IntN(8)
	}
	if w.rng.IntN(4) == 0 {
		r.Min, r.Max = w.rng.IntN(4), w.rng.IntN(9)
	}
	if w.rng.IntN(3) == 0 {
		r.Start, r.Place = starts.Strategy(w.rng.IntN(4)), starts.Placement(w.rng.IntN(2))
	}
	if w.rng.IntN(5) == 0 {
		r.Whole = time.Duration(w.rng.IntN(100)) * time.Second
	}
	return r
}

// step lets something happen.
func (w *world) step() {
	w.free()
	if w.rng.IntN(8) == 0 {
		w.consistent()
	}
	if len(w.reports) > 0 && w.rng.IntN(2) == 0 {
		w.deliver()
		return
	}
	if len(w.launches) > 0 && w.rng.IntN(3) == 0 {
		w.start()
		return
	}
	if len(w.groups) > 0 && w.rng.IntN(3) == 0 {
		w.startGroup()
		return
	}
	m := w.some()
	if m == nil {
		return
	}
	if !m.joined {
		if (m.fate == Discarded || m.unwanted) && w.rng.IntN(2) == 0 {
			w.end(m)
			return
		}
		m.joined = true
		w.say("process %d joins", m.id.Serial)
		w.take(m.host, protocol.Report{Kind: protocol.ReportHello, Serial: m.id.Serial})
		return
	}
	switch k := w.rng.IntN(100); {
	case m.fate == Discarded:
		w.end(m)
	case m.change != nil && k < 50:
		c := m.change
		m.change = nil
		if w.rng.IntN(2) == 0 {
			w.tell(m, &protocol.Op{Kind: protocol.KindProgress, Op: c.Op})
		}
		if w.rng.IntN(12) == 0 {
			w.decline(m, c.Op)
			break
		}
		w.tell(m, &protocol.Op{Kind: protocol.KindReadied, Op: c.Op})
		if w.rng.IntN(12) == 0 {
			w.decline(m, c.Op)
			break
		}
		w.tell(m, &protocol.Op{Kind: protocol.KindVoted, Op: c.Op})
		w.ask(m, &protocol.Await{Op: c.Op, Until: change.Committed})
		if w.rng.IntN(2) == 0 {
			w.ask(m, &protocol.GetChange{Op: c.Op})
		}
	case k < 30 && len(m.sets) == 0:
		set := w.h.main // what its world was, or is
		if w.rng.IntN(10) == 0 {
			set = w.anySet()
		}
		w.ask(m, &protocol.Subscribe{Set: set, Options: w.options})
	case k < 36 && len(m.asks) < 3:
		coll := [...]uint32{w.h.main, w.h.proc(m.id).self, w.h.proc(m.id).world, w.anySet()}
		w.ask(m, &protocol.Subscribe{Set: coll[w.rng.IntN(4)], In: [...]uint32{w.h.main, w.anySet()}[w.rng.IntN(2)]})
	case k < 60:
		w.check(m)
	case k < 72:
		r := w.request()
		s := &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, max(1, len(r.Parts)))}
		if w.rng.IntN(3) == 0 {
			s.Parts[0].Names = []string{fmt.Sprint("name", w.rng.IntN(3))}
		}
		w.ask(m, s)
	case k < 78:
		w.ofOp(m)
	case k >= 95:
		if w.talks == 0 {
			break
		}
		for range w.talks {
			w.talk(m)
		}
		if w.rng.IntN(100) == 0 {
			w.large(m)
		}
	case k < 80:
		w.hostile(m)
	case k < 82:
		w.end(m)
	case k < 84:
		w.leave(m)
	case k < 85 && len(w.h.hosts) > 1 && w.rng.IntN(5) == 0 && !w.lost[m.host]:
		w.lose(m.host)
	case k < 86 && len(m.asks) > 0 && w.rng.IntN(2) == 0:
		w.tell(m, &protocol.Set{Kind: protocol.KindUnsubscribe, Number: m.asks[0]})
		m.asks = m.asks[1:]
	case k < 86 && len(m.sets) > 0:
		w.tell(m, &protocol.Set{Kind: protocol.KindUnsubscribe, Number: m.sets[0]})
		m.sets = m.sets[1:]
	case k < 95:
		w.now += time.Duration(w.rng.IntN(20)) * time.Second
		if at, ok := w.h.Next(); ok && at <= w.now {
			w.say("%v", w.now)
			w.h.Tick()
			w.flush()
		}
	}
}
