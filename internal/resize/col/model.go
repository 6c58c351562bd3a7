// SPDX-License-Identifier: Apache-2.0

package col

import (
	"math"
	"sort"
)

// Kind is the law that a model follows.
type Kind string

// The laws. S is the speedup over one process, T the seconds per iteration, p the number of
// processes.
const (
	Amdahl     Kind = "amdahl"     // T = Serial + Parallel/p
	Inverse    Kind = "inverse"    // S = (Serial + Parallel/p) / (Serial + Parallel): each further process slows the job down
	Linear     Kind = "linear"     // S = Slope*p + Offset
	Constant   Kind = "constant"   // S = Offset
	Table      Kind = "table"      // T as in Points, and Amdahl's law between two points
	Expression Kind = "expression" // T = Time
	Fitted     Kind = "fitted"     // Amdahl's law fitted to Points by least squares
)

// Model describes the speed of a job.
type Model struct {
	Kind Kind `json:"kind"`
	// Serial and Parallel are the seconds of an iteration that do not, or do, shrink with more
	// processes. They belong to Amdahl and Inverse.
	Serial   float64 `json:"serial,omitempty"`
	Parallel float64 `json:"parallel,omitempty"`
	// Slope and Offset belong to Linear; Constant has only Offset. Unit is the seconds of an
	// iteration at a speedup of 1; 0: unknown.
	Slope  float64 `json:"slope,omitempty"`
	Offset float64 `json:"offset,omitempty"`
	Unit   float64 `json:"unit,omitempty"`
	// Points are measurements. They belong to Table, in ascending order of P, and to Fitted.
	Points []Point `json:"points,omitempty"`
	// Time is the seconds of an iteration with p processes. It belongs to Expression.
	Time *Expr `json:"time,omitempty"`

	fit *Model // law of Fitted, set by Decode
}

// fieldSet is a set of groups of fields of a model.
type fieldSet uint8

const (
	hasTimes fieldSet = 1 << iota
	hasSlope
	hasOffset
	hasUnit
	hasPoints
	hasTime
)

// fields are the allowed fields of each kind.
var fields = map[Kind]fieldSet{
	Amdahl:     hasTimes,
	Inverse:    hasTimes,
	Linear:     hasSlope | hasOffset | hasUnit,
	Constant:   hasOffset | hasUnit,
	Table:      hasPoints,
	Fitted:     hasPoints,
	Expression: hasTime,
}

// Point is a measurement: the seconds of an iteration with P processes.
type Point struct {
	P       int     `json:"p"`
	Seconds float64 `json:"seconds"`
}

func (m *Model) check() error {
	for _, x := range []float64{m.Serial, m.Parallel, m.Unit} {
		if !within(x, MaxNumber) {
			return invalid("model with %v seconds", x)
		}
	}
	if !finite(m.Slope) || !finite(m.Offset) {
		return invalid("model of %v*p + %v", m.Slope, m.Offset)
	}
	if len(m.Points) > MaxList {
		return invalid("model of %d points, at most %d allowed", len(m.Points), MaxList)
	}
	for i, x := range m.Points {
		if x.P < 1 || x.P > MaxSize || !(x.Seconds > 0 && x.Seconds <= MaxNumber) {
			return invalid("point %d of the model is %v seconds with %d processes", i, x.Seconds, x.P)
		}
	}
	may, known := fields[m.Kind]
	if !known {
		return invalid("model of kind %.40q", string(m.Kind))
	}
	var has fieldSet
	for f, is := range map[fieldSet]bool{
		hasTimes:  m.Serial != 0 || m.Parallel != 0,
		hasSlope:  m.Slope != 0,
		hasOffset: m.Offset != 0,
		hasUnit:   m.Unit != 0,
		hasPoints: m.Points != nil,
		hasTime:   m.Time != nil,
	} {
		if is {
			has |= f
		}
	}
	if has&^may != 0 {
		return invalid("a model of kind %s has fields of other kinds", m.Kind)
	}
	switch m.Kind {
	case Amdahl, Inverse:
		if m.Serial+m.Parallel == 0 {
			return invalid("a model of kind %s without times", m.Kind)
		}
	case Constant:
		if m.Offset <= 0 {
			return invalid("the constant speedup is %v", m.Offset)
		}
	case Table:
		if len(m.Points) == 0 || !ascending(m.Points) {
			return invalid("a table of %d points is empty or not in ascending order of processes", len(m.Points))
		}
	case Fitted:
		_, err := m.fitted()
		return err
	case Expression:
		switch {
		case m.Time == nil || m.Time.code == nil:
			return invalid("a model of kind %s without an expression", m.Kind)
		case m.Time.two:
			return invalid("the time of an iteration depends on q")
		}
	}
	return nil
}

// ascending reports whether each point has more processes than the one before.
func ascending(list []Point) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1].P >= list[i].P {
			return false
		}
	}
	return true
}

// Seconds returns the seconds of an iteration with p processes. It returns false if the model does
// not know them, or if p is not one of its sizes.
func (m *Model) Seconds(p int) (float64, bool) {
	t := math.NaN()
	n := float64(p)
	switch m.Kind {
	case Amdahl:
		t = m.Serial + m.Parallel/n
	case Inverse:
		one := m.Serial + m.Parallel
		t = one * one / (m.Serial + m.Parallel/n)
	case Linear, Constant:
		if m.Unit > 0 {
			t = m.Unit / m.Speedup(p)
		}
	case Table:
		t = m.interpolate(p)
	case Fitted:
		fit, err := m.fitted()
		if err != nil {
			return 0, false
		}
		return fit.Seconds(p)
	case Expression:
		t = m.Time.Eval(n, n)
	}
	if p < 1 || !(t > 0 && t <= MaxNumber) {
		return 0, false
	}
	return t, true
}

// fitted returns the law fitted to the points.
func (m *Model) fitted() (Model, error) {
	if m.fit != nil {
		return *m.fit, nil
	}
	var f Fit
	for _, x := range m.Points {
		f.Add(x.P, x.Seconds)
	}
	return f.Model()
}

// interpolate returns the time by a table. Amdahl's law is a line over 1/p.
func (m *Model) interpolate(p int) float64 {
	i := sort.Search(len(m.Points), func(i int) bool { return m.Points[i].P >= p })
	switch {
	case i == len(m.Points):
		return math.NaN()
	case m.Points[i].P == p:
		return m.Points[i].Seconds
	case i == 0:
		return math.NaN()
	}
	a, b := m.Points[i-1], m.Points[i]
	x := (1/float64(p) - 1/float64(b.P)) / (1/float64(a.P) - 1/float64(b.P))
	return b.Seconds + x*(a.Seconds-b.Seconds)
}

// Speedup returns how much faster the job is with p processes than with one, or 0 if the model does
// not know. If a table does not begin with one process, the reference is the speed per process of
// its first point.
func (m *Model) Speedup(p int) float64 {
	if p < 1 {
		return 0
	}
	s := 0.0
	switch m.Kind {
	case Linear:
		s = m.Slope*float64(p) + m.Offset
	case Constant:
		s = m.Offset
	default:
		t, ok := m.Seconds(p)
		if one, known := m.single(); ok && known {
			s = one / t
		}
	}
	if !(s > 0 && s <= MaxNumber) {
		return 0
	}
	return s
}

// single returns the seconds of an iteration with one process, estimated if need be.
func (m *Model) single() (float64, bool) {
	switch m.Kind {
	case Table:
		if len(m.Points) > 0 {
			return float64(m.Points[0].P) * m.Points[0].Seconds, true
		}
	case Linear, Constant:
		return m.Unit, m.Unit > 0
	}
	return m.Seconds(1)
}

// Marginal returns how much the p-th process adds to the speedup. For Amdahl's law it is the
// derivative at p, Parallel (Serial+Parallel) / (p Serial + Parallel)^2. For other models it is the
// difference between p and p-1.
func (m *Model) Marginal(p int) float64 {
	if m.Kind == Amdahl {
		d := float64(p)*m.Serial + m.Parallel
		return m.Parallel * (m.Serial + m.Parallel) / (d * d)
	}
	return m.Speedup(p) - m.Speedup(p-1)
}

// Fit fits Amdahl's law by least squares, in the form p T(p) = Serial p + Parallel. It keeps only
// sums, so a job can add times for as long as it runs.
type Fit struct {
	n, p, pp, y, py float64
	least, most     int
}

// Add adds the time of an iteration with p processes. It ignores invalid values.
func (f *Fit) Add(p int, seconds float64) {
	if p < 1 || p > MaxSize || !(seconds > 0 && seconds <= MaxNumber) {
		return
	}
	x, y := float64(p), float64(p)*seconds
	f.n++
	f.p += x
	f.pp += x * x
	f.y += y
	f.py += x * y
	if f.least == 0 || p < f.least {
		f.least = p
	}
	f.most = max(f.most, p)
}

// Model returns the best law without negative times. It fails unless there are times of two sizes.
func (f *Fit) Model() (Model, error) {
	if f.least == f.most {
		return Model{}, invalid("a fit needs times of two sizes, but all %v times are of %d", f.n, f.most)
	}
	d := f.n*f.pp - f.p*f.p
	m := Model{Kind: Amdahl, Serial: (f.n*f.py - f.p*f.y) / d, Parallel: (f.pp*f.y - f.p*f.py) / d}
	switch {
	case !(d > 0):
		return Model{}, invalid("sizes from %d to %d are too close for a fit", f.least, f.most)
	case m.Serial < 0: // the speedup is more than linear
		m.Serial, m.Parallel = 0, f.y/f.n
	case m.Parallel < 0: // more processes are slower
		m.Serial, m.Parallel = f.py/f.pp, 0
	}
	if !(m.Serial+m.Parallel > 0) || !finite(m.Serial+m.Parallel) {
		return Model{}, invalid("a fit of %v + %v/p", m.Serial, m.Parallel)
	}
	return m, nil
}
