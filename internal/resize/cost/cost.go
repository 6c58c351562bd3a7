// SPDX-License-Identifier: Apache-2.0

// Package cost says how long a redistribution takes, and which way is best: a pure
// function of what is to move and of a model of the machine, so that all who take part
// find the same without a message.
package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Line is what a way of moving takes on one kind of transport.
type Coefficients struct {
	Start float64 // microseconds, whatever is moved
	Array float64 // microseconds more for each array
	Byte  float64 // nanoseconds for each byte that a processor moves
	// Omega is how much longer iterations take while data moves in the background, where
	// each process has a processor, and Crowded where processes share them; 0: it cannot
	// move in the background. Share is how much of a processor it then takes, in
	// the crowded case.
	Omega, Crowded, Share float64 `json:",omitempty"`
}

// Model is what a machine is like. The zero value is none: Builtin is for machines of
// which nobody has measured anything.
type Model struct {
	Touch float64 // nanoseconds for each byte of new memory: its first touch
	// Lines are by transport and by method, as settings name them.
	Lines map[string]map[string]Coefficients
}

// Work is what is to be moved.
type Work struct {
	NS, ND    int
	Cores     int    // of the host with the fewest
	Hosts     int    // of the sources
	Transport string // between processes of a host; between hosts it is "tcp"
	Arrays    int
	// Bytes that the target with the most of them gets from others, and that it has new
	// memory for; Late of them can move only at the commit, but for Lent, which pull may
	// read before, and again as far as it is written meanwhile.
	Moved, Fresh, Late, Lent int64
}

// Choice is a way, and what it is expected to take.
type Choice struct {
	Method     string
	Background bool
	// Stall is how long the application stands still, and Lost all that it loses against
	// a change that takes no time, as long as it runs. In microseconds.
	Stall, Lost float64
}

// String is a choice for people.
func (c Choice) String() string {
	when := "at the commit"
	if c.Background {
		when = "in the background"
	}
	return fmt.Sprintf("%s %s: %.1f ms standing, %.1f ms lost", c.Method, when, c.Stall/1e3, c.Lost/1e3)
}

// Best chooses among methods, which are in order: of two that take as long the first one
// wins. Background says whether a method may move what is not late in the background,
// and Commit whether it may move all at the commit. All choices are returned, the best
// one first.
func (m *Model) Best(w Work, methods []string, commit, background bool) []Choice {
	lines := m.Lines[w.transport()]
	var list []Choice
	for _, name := range methods {
		l, ok := lines[name]
		if !ok {
			continue
		}
		if commit {
			t := m.blocking(&l, &w, w.Moved, w.Fresh)
			list = append(list, Choice{Method: name, Stall: t, Lost: t})
		}
		if background && l.Omega > 0 && (!commit || w.Late < w.Moved || name == "pull" && w.Lent > 0) {
			o := w
			if name == "pull" {
				o.Late -= o.Lent / 2 // who knows how much is written?
			}
			list = append(list, m.background(name, &l, &o))
		}
	}
	slices.SortStableFunc(list, func(a, b Choice) int {
		switch {
		case a.Lost < b.Lost:
			return -1
		case a.Lost > b.Lost:
			return 1
		}
		return 0
	})
	return list
}

// kind is the transport that decides.
func (w *Work) transport() string {
	if w.Hosts > 1 {
		return "tcp"
	}
	return w.Transport
}

// turns is by how much processes share processors.
func (w *Work) oversubscription(processes int) float64 {
	cores := max(w.Cores, 1) * max(w.Hosts, 1)
	return max(1, float64(processes)/float64(cores))
}

// blocking is how long it takes to move bytes while all stand still.
func (m *Model) blocking(l *Coefficients, w *Work, moved, fresh int64) float64 {
	return l.Start + l.Array*float64(w.Arrays) + (l.Byte*float64(moved)+m.Touch*float64(fresh))*w.oversubscription(w.ND)/1e3
}

// behind is the choice of moving in the background what is not late. With R for how long
// that takes, omega for how much slower iterations are meanwhile, and s for how much
// faster they are after the change, the application loses, against having changed at once,
// R - R/(omega*s) (equations 1 and 2 of the study of MaM with RMA, at equal
// progress).
func (m *Model) background(name string, l *Coefficients, w *Work) Choice {
	late := float64(w.Late) / float64(max(w.Moved, 1))
	early := m.blocking(l, w, w.Moved-w.Late, int64(float64(w.Fresh)*(1-late)))
	stall := l.Start/2 + (l.Byte*float64(w.Late)+m.Touch*float64(w.Fresh)*late)*w.oversubscription(w.ND)/1e3
	omega, faster := l.Omega, w.oversubscription(w.NS)*float64(w.ND)/(w.oversubscription(w.ND)*float64(w.NS))
	if most := max(w.NS, w.ND); w.oversubscription(most) > 1 {
		omega = l.Crowded
		early /= l.Share
	}
	return Choice{Method: name, Background: true, Stall: stall, Lost: stall + early*max(0, 1-1/(omega*faster))}
}

// Check says why m is no model; nil: it is one.
func (m *Model) Check() error {
	if !validCoefficient(m.Touch) {
		return fmt.Errorf("touch takes %v ns a byte", m.Touch)
	}
	if len(m.Lines) == 0 || len(m.Lines) > 8 {
		return fmt.Errorf("lines of %d transports, 1 to 8 allowed", len(m.Lines))
	}
	for transport, lines := range m.Lines {
		if len(lines) > 16 {
			return fmt.Errorf("%s: %d methods, at most 16 allowed", transport, len(lines))
		}
		for name, l := range lines {
			for _, v := range []float64{l.Start, l.Array, l.Byte, l.Omega, l.Crowded, l.Share} {
				if !validCoefficient(v) {
					return fmt.Errorf("%s, %s: %v", transport, name, v)
				}
			}
			if l.Omega > 0 && (l.Omega < 1 || l.Crowded < 1 || l.Share <= 0 || l.Share > 1) {
				return fmt.Errorf("%s, %s: iterations take %v and %v times as long, for a share of %v", transport, name, l.Omega, l.Crowded, l.Share)
			}
		}
	}
	return nil
}

// sane is what a coefficient can be.
func validCoefficient(v float64) bool { return v >= 0 && v < 1e9 && !math.IsNaN(v) }

// mostText bounds a model in a file, in bytes.
const maxText = 32 << 10

// Parse reads a model as gompibench tune writes it.
func Parse(text string) (*Model, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("a model of %d bytes, at most %d allowed", len(text), maxText)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	m := new(Model)
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one model")
	}
	return m, m.Check()
}
