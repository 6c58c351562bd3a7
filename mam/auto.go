// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"strings"

	"gompi/internal/base/settings"
	"gompi/internal/resize/cost"
	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// inputs are what Auto depends on beside the data and the number of ranks: rank 0's, which
// all take.
type inputs struct {
	Cores     int         // that the job may use on rank 0's host
	Hosts     int         // of the ranks
	Transport string      // between ranks of a host
	Model     *cost.Model `json:",omitempty"` // that gompirun was given; nil: the built-in one
}

// autoMethods are those among which Auto chooses, the first of those that take as long.
var autoMethods = []Method{Pull, COL, P2P, RMALockall, RMALock}

// look finds the inputs.
func look(comm *mpi.Comm) (x inputs, err error) {
	p := comm.Process().Core().Process()
	if text := p.Setting(settings.MamModel); text != "" {
		if x.Model, err = cost.Parse(text); err != nil {
			return x, fmt.Errorf("%s: %w", settings.MamModel, err)
		}
	}
	x.Cores, x.Hosts, x.Transport = max(p.Usable(), 1), hosts(comm), p.Transport
	return x, nil
}

// hosts is how many the ranks are on, the same on all.
func hosts(comm *mpi.Comm) int {
	at := map[uint32]bool{}
	for _, h := range comm.Core().Comm().Hosts() {
		at[h] = true
	}
	return max(len(at), 1)
}

// check says whether another process's inputs can be.
func (x *inputs) check() error {
	switch {
	case x.Cores < 1 || x.Cores > layout.MaxRanks || x.Hosts < 1 || x.Hosts > layout.MaxRanks:
		return fmt.Errorf("%d hosts of %d processors", x.Hosts, x.Cores)
	case len(x.Transport) > mostName:
		return fmt.Errorf("a transport with a name of %d bytes", len(x.Transport))
	case x.Model != nil:
		return x.Model.Check()
	}
	return nil
}

// choose fills in what the configuration leaves to Auto of method and strategy, the same
// on all; why is what it goes by, "" where nothing was left.
func (a *adoption) choose(x *inputs) (why string) {
	c := &a.config
	if c.Method != Auto && c.Strategy != Auto {
		return ""
	}
	methods := autoMethods
	if c.Method != Auto {
		methods = []Method{c.Method}
	}
	var names []string
	for _, m := range methods {
		names = append(names, m.String())
	}
	model := x.Model
	if model == nil {
		model = &cost.Builtin
	}
	w := a.work(x)
	list := model.Best(w, names, c.Strategy <= Blocking, c.Strategy != Blocking)
	if len(list) == 0 {
		if c.Method == Auto {
			c.Method = COL
		}
		if c.Strategy == Auto {
			c.Strategy = Blocking
		}
		return fmt.Sprintf("nothing is known of %s over %s, %d hosts: %v, %v", strings.Join(names, ", "), x.Transport, x.Hosts, c.Method, c.Strategy)
	}
	best := list[0]
	for _, m := range methods {
		if m.String() == best.Method {
			c.Method = m
		}
	}
	if c.Strategy == Auto {
		c.Strategy = Blocking
		if best.Background {
			c.Strategy = WaitDrains
		}
	}
	why = fmt.Sprintf("%d MiB, %d data, from %d to %d ranks, %d hosts of %d processors: %v", w.Moved>>20, w.Arrays, w.NS, w.ND, w.Hosts, w.Cores, best)
	for _, o := range list[1:] {
		if o.Method != best.Method {
			return why + "; not " + o.String()
		}
	}
	return why
}

// mayPull reports whether constant data may be read before a change is handed out.
func (c *Config) mayPull() bool {
	m := c.others()
	return (m == Pull || m == Auto) && c.Strategy != Blocking
}

// work is what there is to do, on the target with the most of it.
func (a *adoption) work(x *inputs) cost.Work {
	w := cost.Work{NS: a.times.NS, ND: a.times.ND, Cores: x.Cores, Hosts: x.Hosts, Transport: x.Transport}
	type load struct{ moved, fresh, late, lent int64 }
	targets := make([]load, a.times.ND)
	for _, y := range a.moves {
		if y.shared != nil && x.Hosts == 1 {
			continue // it moves nowhere
		}
		w.Arrays++
		for d := range targets {
			moved, fresh := int64(0), int64(0)
			switch {
			case y.Replicated && d >= len(a.stay):
				fresh = y.Rule.N
				moved = fresh
			case !y.Replicated:
				fresh = y.next.Count(d)
				moved = fresh
				if sideBySide(y) {
					moved -= a.kept(y, d)
				}
			}
			t := &targets[d]
			t.moved, t.fresh = t.moved+moved*y.Bytes, t.fresh+fresh*y.Bytes
			if y.Mode == Variable {
				t.late += moved * y.Bytes
				if y.lent() {
					t.lent += moved * y.Bytes
				}
			}
		}
	}
	for _, t := range targets {
		w.Moved, w.Fresh = max(w.Moved, t.moved), max(w.Fresh, t.fresh)
		w.Late, w.Lent = max(w.Late, t.late), max(w.Lent, t.lent)
	}
	return w
}

// kept is how many elements a target has before and after the change.
func (a *adoption) kept(y *move, target int) (n int64) {
	if target >= len(a.stay) {
		return 0
	}
	for p := range layout.Receives(y.split, y.next, target) {
		if p.From == a.stay[target] {
			n += p.Len
		}
	}
	return n
}
