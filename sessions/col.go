// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/internal/resize/col"

// COL is what a program tells a resource manager about its scaling: a model of its
// speed, the sizes that it may have, its priority, and the cost of a change. Encode
// returns the bytes for Request.COL and Operation.Update. The zero value of a field says
// nothing, and is left out of the JSON form. Times are in seconds. See
// docs/design/029-resource-managers.md.
type COL struct {
	Version int `json:"version"` // Encode fills it in
	// Model is how fast the job is with how many processes; nil: not known. The manager
	// then assumes that the job uses its processes well, up to Pref if that is given.
	Model *COLModel `json:"model,omitempty"`

	// Min and Max bound the number of processes; Max 0: no bound. Pref is the number that
	// the job starts with, and that it gets before other jobs get more.
	Min  int `json:"min,omitempty"`
	Max  int `json:"max,omitempty"`
	Pref int `json:"pref,omitempty"`
	// Sizes are the only sizes allowed, Invalid the sizes that are not allowed.
	Sizes   []int `json:"sizes,omitempty"`
	Invalid []int `json:"invalid,omitempty"`
	// PowerOfTwo allows only powers of two.
	PowerOfTwo bool `json:"power_of_two,omitempty"`
	// Delta: a change is by a multiple of Delta. Factor: a change multiplies or divides
	// the size by a power of Factor. Neither binds the first size.
	Delta  int `json:"delta,omitempty"`
	Factor int `json:"factor,omitempty"`
	// Mapping is which slots the processes take: "" and "dense" any, "sparse" a host for
	// each, "4:node" a host for each four.
	Mapping string `json:"mapping,omitempty"`

	// Priority weighs the job's speed against that of other jobs, 1 to 1,000; 0 means 1.
	Priority int `json:"priority,omitempty"`

	// Cost is how long a change from p to q processes stops the job, with the
	// redistribution of data; nil: 0.
	Cost *COLExpr `json:"cost,omitempty"`
	// Hysteresis is the share by which a change has to be better than no change, beyond its
	// cost: 0.1 is a tenth.
	Hysteresis float64 `json:"hysteresis,omitempty"`
	// Settle is the least time from one change to the next.
	Settle float64 `json:"settle,omitempty"`
	// Remaining is how many iterations are still to come; 0: not known. It needs a model
	// that knows times.
	Remaining float64 `json:"remaining,omitempty"`
}

// COLModel says how fast a job is with how many processes. In the laws S is the speedup
// over one process, T the seconds of an iteration, and p the number of processes:
//
//	amdahl      T = Serial + Parallel/p
//	inverse     S = (Serial + Parallel/p) / (Serial + Parallel)
//	linear      S = Slope*p + Offset
//	constant    S = Offset
//	table       T as in Points; between two points the law of Amdahl through both
//	expression  T = Time
//	fitted      the law of Amdahl through Points, by least squares
type COLModel struct {
	Kind string `json:"kind"` // one of the laws above
	// Serial and Parallel are the seconds of an iteration that stay, and that become fewer
	// with more processes: amdahl, inverse.
	Serial   float64 `json:"serial,omitempty"`
	Parallel float64 `json:"parallel,omitempty"`
	// Slope and Offset are of linear, Offset alone of constant. Unit is the time of an
	// iteration at a speedup of 1; 0: not known.
	Slope  float64 `json:"slope,omitempty"`
	Offset float64 `json:"offset,omitempty"`
	Unit   float64 `json:"unit,omitempty"`
	// Points are measured times: table (in the order of P, each once), fitted.
	Points []COLPoint `json:"points,omitempty"`
	// Time is the seconds of an iteration with p processes: expression.
	Time *COLExpr `json:"time,omitempty"`
}

// COLPoint is a measured time of an iteration.
type COLPoint struct {
	P       int     `json:"p"` // processes
	Seconds float64 `json:"seconds"`
}

// COLFit finds the law of Amdahl that fits the measured times of a program best, by least
// squares. It keeps sums only, so a program may add times as long as it runs. The zero
// value has no times.
type COLFit struct{ fit col.Fit }

// COLExpr is an expression of p, or of p before and q after a change: see ParseCOLExpr.
// Its JSON form is a string, or a number.
type COLExpr struct{ expr col.Expr }

// ParseCOL reads the JSON form of a COL, which internal/resize/col/schema.json describes.
// Local.
func ParseCOL(text []byte) (*COL, error) {
	c, err := col.Decode(text)
	if err != nil {
		return nil, err
	}
	return &COL{
		Version: c.Version, Model: modelOf(c.Model),
		Min: c.Min, Max: c.Max, Pref: c.Pref, Sizes: c.Sizes, Invalid: c.Invalid,
		PowerOfTwo: c.PowerOfTwo, Delta: c.Delta, Factor: c.Factor, Mapping: string(c.Mapping),
		Priority: c.Priority, Cost: exprOf(c.Cost),
		Hysteresis: c.Hysteresis, Settle: c.Settle, Remaining: c.Remaining,
	}, nil
}

// ParseCOLExpr reads an expression such as "0.15 + 2.5/min(p,q)": numbers, p, q,
// + - * / ^, parentheses, min, max, log2, sqrt, ceil, floor and abs, at most 512 bytes.
// Local.
func ParseCOLExpr(text string) (*COLExpr, error) {
	e, err := col.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return exprOf(e), nil
}

// Encode returns the JSON form of a COL, at most 64 KiB. Local. An error says which field
// is out of bounds.
func (c *COL) Encode() ([]byte, error) { return c.internal().Encode() }

// Check returns which field of a COL is out of bounds, or that Version is not known.
// Local.
func (c *COL) Check() error { return c.internal().Check() }

// Allows reports whether the job may have n processes. Local.
func (c *COL) Allows(n int) bool { return c.internal().Allows(n) }

// May reports whether one change may lead from one number of processes to another. From
// 0 means that the job starts. Local.
func (c *COL) May(from, to int) bool { return c.internal().May(from, to) }

// AppendSizes appends the sizes up to most that one change from a size may lead to, in
// order, without that size. Local.
func (c *COL) AppendSizes(list []int, from, most int) []int {
	return c.internal().AppendSizes(list, from, most)
}

// Largest returns the largest size up to most that one change from a size may lead to,
// which may be that size; 0: none. Local.
func (c *COL) Largest(from, most int) int { return c.internal().Largest(from, most) }

// Speedup returns the speedup of the model with p processes. Without a model it is that of
// a job that uses its processes well, up to Pref if that is given. Local.
func (c *COL) Speedup(p int) float64 { return c.internal().Speedup(p) }

// Weight returns the priority as a factor. Local.
func (c *COL) Weight() float64 { return c.internal().Weight() }

// Seconds returns how long a change stops the job. An expression without a valid value
// gives the longest time. Local.
func (c *COL) Seconds(from, to int) float64 { return c.internal().Seconds(from, to) }

// Value returns the work that the job does in the given seconds if a change leads from one
// number of processes to another, in seconds of one process. See
// docs/design/029-resource-managers.md. Local.
func (c *COL) Value(from, to int, seconds float64) float64 {
	return c.internal().Value(from, to, seconds)
}

// Worth reports whether a change that the sizes allow saves more than it costs within the
// given seconds. Local.
func (c *COL) Worth(from, to int, seconds float64) bool {
	return c.internal().Worth(from, to, seconds)
}

// Seconds returns the time of an iteration with p processes; false: the model does not
// know it. Local.
func (m *COLModel) Seconds(p int) (float64, bool) { return m.internal().Seconds(p) }

// Speedup returns how much faster the job is with p processes than with one; 0: the model
// does not know it. Local.
func (m *COLModel) Speedup(p int) float64 { return m.internal().Speedup(p) }

// Marginal returns by how much the p-th process adds to the speedup. Local.
func (m *COLModel) Marginal(p int) float64 { return m.internal().Marginal(p) }

// Add adds the time of an iteration with p processes. It ignores values that are not
// times. Local.
func (f *COLFit) Add(p int, seconds float64) { f.fit.Add(p, seconds) }

// Model returns the law that fits best, of those without negative times. Local. Error:
// there are not times of two sizes.
func (f *COLFit) Model() (COLModel, error) {
	m, err := f.fit.Model()
	if err != nil {
		return COLModel{}, err
	}
	return *modelOf(&m), nil
}

// String returns the text of the expression.
func (e *COLExpr) String() string { return e.expr.String() }

// Eval returns the value with these p and q, which may be infinite or NaN. Local.
func (e *COLExpr) Eval(p, q float64) float64 { return e.expr.Eval(p, q) }

// MarshalJSON returns the text as a JSON string.
func (e *COLExpr) MarshalJSON() ([]byte, error) { return e.expr.MarshalJSON() }

// UnmarshalJSON reads a string or a number.
func (e *COLExpr) UnmarshalJSON(text []byte) error { return e.expr.UnmarshalJSON(text) }

// internal returns the form that resource managers use.
func (c *COL) internal() *col.COL {
	return &col.COL{
		Version: c.Version, Model: c.Model.internal(),
		Min: c.Min, Max: c.Max, Pref: c.Pref, Sizes: c.Sizes, Invalid: c.Invalid,
		PowerOfTwo: c.PowerOfTwo, Delta: c.Delta, Factor: c.Factor, Mapping: col.Mapping(c.Mapping),
		Priority: c.Priority, Cost: c.Cost.internal(),
		Hysteresis: c.Hysteresis, Settle: c.Settle, Remaining: c.Remaining,
	}
}

func (m *COLModel) internal() *col.Model {
	if m == nil {
		return nil
	}
	n := &col.Model{
		Kind: col.Kind(m.Kind), Serial: m.Serial, Parallel: m.Parallel,
		Slope: m.Slope, Offset: m.Offset, Unit: m.Unit, Time: m.Time.internal(),
	}
	for _, p := range m.Points {
		n.Points = append(n.Points, col.Point(p))
	}
	return n
}

func (e *COLExpr) internal() *col.Expr {
	if e == nil {
		return nil
	}
	return &e.expr
}

// modelOf returns the public form of a model; nil for nil.
func modelOf(m *col.Model) *COLModel {
	if m == nil {
		return nil
	}
	n := &COLModel{
		Kind: string(m.Kind), Serial: m.Serial, Parallel: m.Parallel,
		Slope: m.Slope, Offset: m.Offset, Unit: m.Unit, Time: exprOf(m.Time),
	}
	for _, p := range m.Points {
		n.Points = append(n.Points, COLPoint(p))
	}
	return n
}

// exprOf returns the public form of an expression; nil for nil.
func exprOf(e *col.Expr) *COLExpr {
	if e == nil {
		return nil
	}
	return &COLExpr{*e}
}
