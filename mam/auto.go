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

// inputs are what Auto depends on besides the data and the numbers of ranks. All take those of
// rank 0.
type inputs struct {
	Cores     int         // processors of rank 0's host that the job may use
	Hosts     int         // the number of hosts of the ranks
	Transport string      // the transport between ranks of a host
	Model     *cost.Model `json:",omitempty"` // given to gompirun; nil: the built-in one
}

// autoMethods are the methods among which Auto chooses. Of methods with the same cost it takes
// the first.
var autoMethods = []Method{Pull, COL, P2P, RMALockall, RMALock}

// findInputs finds the inputs of this process.
func findInputs(comm *mpi.Comm) (x inputs, err error) {
	p := comm.Process().Core().Process()
	if text := p.Setting(settings.MamModel); text != "" {
		if x.Model, err = cost.Parse(text); err != nil {
			return x, fmt.Errorf("%s: %w", settings.MamModel, err)
		}
	}
	x.Cores, x.Hosts, x.Transport = max(p.Usable(), 1), hostCount(comm), p.Transport
	return x, nil
}

// hostCount returns the number of hosts that the ranks are on. It is the same on all.
func hostCount(comm *mpi.Comm) int {
	at := map[uint32]bool{}
	for _, h := range comm.Core().Comm().Hosts() {
		at[h] = true
	}
	return max(len(at), 1)
}

// check checks the inputs of another process.
func (x *inputs) check() error {
	switch {
	case x.Cores < 1 || x.Cores > layout.MaxRanks || x.Hosts < 1 || x.Hosts > layout.MaxRanks:
		return fmt.Errorf("%d hosts of %d processors", x.Hosts, x.Cores)
	case len(x.Transport) > maxName:
		return fmt.Errorf("a transport with a name of %d bytes", len(x.Transport))
	case x.Model != nil:
		return x.Model.Check()
	}
	return nil
}

// chooseAuto fills in method and strategy where the configuration leaves them to Auto. The choice
// is the same on all. why gives the reason; "": nothing was left to Auto.
func (rc *reconfiguration) chooseAuto(x *inputs) (why string) {
	c := &rc.config
	if c.Method != Auto && c.Strategy != Auto {
		return ""
	}
	candidates := autoMethods
	if c.Method != Auto {
		candidates = []Method{c.Method}
	}
	var names []string
	for _, m := range candidates {
		names = append(names, m.String())
	}
	model := x.Model
	if model == nil {
		model = &cost.Builtin
	}
	w := rc.work(x)
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
	for _, m := range candidates {
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

// work returns what there is to do on the target with the most of it.
func (rc *reconfiguration) work(x *inputs) cost.Work {
	w := cost.Work{NS: rc.times.NS, ND: rc.times.ND, Cores: x.Cores, Hosts: x.Hosts, Transport: x.Transport}
	type load struct{ moved, memory, late, preCopied int64 }
	targets := make([]load, rc.times.ND)
	for _, y := range rc.transfers {
		if y.shared != nil && x.Hosts == 1 {
			continue // it does not move
		}
		w.Arrays++
		for d := range targets {
			moved, memory := int64(0), int64(0)
			switch {
			case y.Replicated && d >= len(rc.stay):
				memory = y.Rule.N
				moved = memory
			case !y.Replicated:
				memory = y.nextSplit.Count(d)
				moved = memory
				if sideBySide(y) {
					moved -= rc.keptElems(y, d)
				}
			}
			t := &targets[d]
			t.moved, t.memory = t.moved+moved*y.Bytes, t.memory+memory*y.Bytes
			if y.Mode == Variable {
				t.late += moved * y.Bytes
				if y.canPreCopy() {
					t.preCopied += moved * y.Bytes
				}
			}
		}
	}
	for _, t := range targets {
		w.Moved, w.Fresh = max(w.Moved, t.moved), max(w.Fresh, t.memory)
		w.Late, w.Lent = max(w.Late, t.late), max(w.Lent, t.preCopied)
	}
	return w
}

// keptElems returns how many elements a target has both before and after the change.
func (rc *reconfiguration) keptElems(y *transfer, target int) (n int64) {
	if target >= len(rc.stay) {
		return 0
	}
	for p := range layout.Receives(y.split, y.nextSplit, target) {
		if p.From == rc.stay[target] {
			n += p.Len
		}
	}
	return n
}
