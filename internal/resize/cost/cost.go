// SPDX-License-Identifier: Apache-2.0

// Package cost predicts how long a redistribution takes by each method. Model.Best compares the
// methods for a given Work; Fit fits a Model to measurements. All functions are pure, so all
// processes of a change reach the same choice without a message.
package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Coefficients describe the time of one method on one kind of transport.
type Coefficients struct {
	Start float64 // microseconds, independent of the data
	Array float64 // microseconds for each array
	Byte  float64 // nanoseconds for each byte that a processor moves
	// Omega is the slowdown of iterations while data moves in the background, if each process
	// has a processor. Crowded is the slowdown if processes share processors. Omega 0 means that
	// the method cannot move data in the background. Share is the part of a processor that the
	// background work gets in the crowded case.
	Omega, Crowded, Share float64 `json:",omitempty"`
}

// Model describes a machine. The zero value is not valid; Builtin serves machines without
// measurements.
type Model struct {
	Touch float64 // nanoseconds for each byte of new memory at its first touch
	// Lines has the coefficients by transport and then by method, named as in the settings.
	Lines map[string]map[string]Coefficients
}

// Work describes a redistribution.
type Work struct {
	NS, ND    int    // number of sources and of targets
	Cores     int    // of the host with the fewest
	Hosts     int    // of the sources
	Transport string // between processes of a host; between hosts it is "tcp"
	Arrays    int
	// Moved and Fresh are bytes of the target with the most: those that it gets from others, and
	// those of new memory. Late of the moved bytes can move only at the commit. Lent of these
	// can also be pulled before, and again as far as they were written meanwhile.
	Moved, Fresh, Late, Lent int64
}

// Choice is a method with its predicted times.
type Choice struct {
	Method     string
	Background bool
	// Stall is how long the application stands still. Lost is the total loss against a change
	// that takes no time. Both are in microseconds.
	Stall, Lost float64
}

// String describes the choice for a message.
func (c Choice) String() string {
	when := "at the commit"
	if c.Background {
		when = "in the background"
	}
	return fmt.Sprintf("%s %s: %.1f ms standing, %.1f ms lost", c.Method, when, c.Stall/1e3, c.Lost/1e3)
}

// Best compares methods and returns all choices, the best first. Of two equal choices the one with
// the earlier method comes first. commit allows to move all data at the commit. background allows
// to move in the background what is not late.
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
				o.Late -= o.Lent / 2 // a guess: how much is written again is unknown
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

// transport returns the name of the slowest transport in use.
func (w *Work) transport() string {
	if w.Hosts > 1 {
		return "tcp"
	}
	return w.Transport
}

// oversubscription returns the number of processes per processor, at least 1.
func (w *Work) oversubscription(processes int) float64 {
	cores := max(w.Cores, 1) * max(w.Hosts, 1)
	return max(1, float64(processes)/float64(cores))
}

// blocking returns the time to move bytes while all processes stand still, in microseconds.
func (m *Model) blocking(l *Coefficients, w *Work, moved, fresh int64) float64 {
	return l.Start + l.Array*float64(w.Arrays) + (l.Byte*float64(moved)+m.Touch*float64(fresh))*w.oversubscription(w.ND)/1e3
}

// background returns the choice to move in the background what is not late. Let R be the time of
// that, omega the slowdown of iterations meanwhile, and s the speedup after the change. Compared
// with an immediate change the application loses R - R/(omega*s). (Equations 1 and 2 of the study
// of MaM with RMA, at equal progress.)
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

// Check returns an error if m is not a valid model.
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

// validCoefficient reports whether v can be a coefficient.
func validCoefficient(v float64) bool { return v >= 0 && v < 1e9 && !math.IsNaN(v) }

// maxText bounds the size of a model in a file, in bytes.
const maxText = 32 << 10

// Parse parses a model in the form that gompibench tune writes.
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
