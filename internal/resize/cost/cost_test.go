// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var methods = []string{"col", "p2p", "rma-lock", "rma-lockall", "pull"}

func TestBuiltin(t *testing.T) {
	if err := Builtin.Check(); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(&Builtin)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	w := Work{NS: 2, ND: 4, Cores: 2, Hosts: 1, Transport: "shm", Arrays: 1, Moved: 64 << 20, Fresh: 64 << 20}
	for i, c := range Builtin.Best(w, methods, true, true) {
		if d := m.Best(w, methods, true, true)[i]; d != c {
			t.Errorf("choice %d is %v, and %v of the same model from its text", i, c, d)
		}
	}
}

// line is a model of one method, which the tests count by hand.
func line(l Coefficients) *Model {
	return &Model{Touch: 1, Lines: map[string]map[string]Coefficients{"shm": {"pull": l}}}
}

func TestTimes(t *testing.T) {
	m := line(Coefficients{Start: 100, Array: 10, Byte: 2, Omega: 1.25, Crowded: 2, Share: 0.5})
	w := Work{NS: 2, ND: 4, Cores: 2, Hosts: 1, Transport: "shm", Arrays: 3, Moved: 1e6, Fresh: 2e6}
	list := m.Best(w, []string{"pull"}, true, false)
	// Four targets on two processors: 100 + 3*10 + (2*1e6 + 1*2e6)*2/1000
	if len(list) != 1 || list[0].Stall != 8130 || list[0].Lost != 8130 {
		t.Errorf("at the commit: %+v", list)
	}
	list = m.Best(w, []string{"pull"}, false, true)
	// Half the start at the commit; in the background twice the time for a share of a half,
	// of which half is lost for iterations twice as long; processors give four ranks no
	// more than two.
	if len(list) != 1 || list[0].Stall != 50 || math.Abs(list[0].Lost-(50+2*8130*0.5)) > 1e-6 {
		t.Errorf("in the background: %+v", list)
	}
	w.Cores = 4
	list = m.Best(w, []string{"pull"}, false, true)
	// 4130 us in the background, where iterations take 1.25 times as long, and then would
	// be twice as fast.
	if math.Abs(list[0].Lost-(50+4130*(1-1/2.5))) > 1e-6 {
		t.Errorf("with a processor each: %+v", list)
	}
	w.Late = 1e6
	list = m.Best(w, []string{"pull"}, false, true)
	// All of it is late: 100 + 30 in the background, (2e6 + 2e6)/1000 at the commit.
	if math.Abs(list[0].Stall-4050) > 1e-6 {
		t.Errorf("late: %+v", list)
	}
	if list := m.Best(w, []string{"col", "inplace"}, true, true); len(list) != 0 {
		t.Errorf("methods of which nothing is known: %v", list)
	}
	w.Hosts = 2
	if list := m.Best(w, []string{"pull"}, true, true); len(list) != 0 {
		t.Errorf("between hosts, of which nothing is known: %v", list)
	}
}

// TestOrder: more bytes, more arrays, more memory never take less time, and of methods
// that take as long the first one named is chosen.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w := Work{
			NS: 1 + r.IntN(16), ND: 1 + r.IntN(16), Cores: 1 + r.IntN(8), Hosts: 1 + r.IntN(2), Transport: "shm",
			Arrays: 1 + r.IntN(9), Moved: r.Int64N(1 << 32), Fresh: r.Int64N(1 << 32),
		}
		more := w
		more.Arrays, more.Moved, more.Fresh = w.Arrays+1, w.Moved+1<<20, w.Fresh+1<<20
		for _, name := range methods {
			a := Builtin.Best(w, []string{name}, true, false)[0]
			b := Builtin.Best(more, []string{name}, true, false)[0]
			if a.Stall >= b.Stall {
				t.Fatalf("%+v takes %v, and more of it %v", w, a, b)
			}
		}
		list := Builtin.Best(w, methods, true, true)
		for i := 1; i < len(list); i++ {
			if list[i].Lost < list[i-1].Lost {
				t.Fatalf("%+v: %v before %v", w, list[i-1], list[i])
			}
		}
	}
	m := &Model{Touch: 1, Lines: map[string]map[string]Coefficients{"shm": {"a": {Byte: 1}, "b": {Byte: 1}}}}
	if got := m.Best(Work{NS: 1, ND: 2, Transport: "shm", Moved: 1}, []string{"b", "a"}, true, false)[0].Method; got != "b" {
		t.Errorf("of two that take as long it is %q", got)
	}
}

// TestFit finds the model again by which samples were made, with noise.
func TestFit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	truth := Model{Touch: 0.5, Lines: map[string]map[string]Coefficients{"shm": {
		"col":  {Start: 300, Byte: 0.2},
		"pull": {Start: 150, Byte: 0.1, Omega: 1.1, Crowded: 1.4, Share: 0.2},
	}}}
	var samples []Sample
	for _, pair := range [][2]int{{1, 2}, {2, 1}, {2, 4}, {4, 2}} {
		for _, moved := range []int64{1 << 20, 16 << 20, 256 << 20} {
			w := Work{NS: pair[0], ND: pair[1], Cores: 2, Hosts: 1, Transport: "shm", Arrays: 1, Moved: moved, Fresh: 2 * moved}
			for name, l := range truth.Lines["shm"] {
				noise := func(v float64) float64 { return v * (0.95 + r.Float64()/10) }
				moving := l.Start + l.Byte*float64(moved)*w.oversubscription(w.ND)/1e3
				samples = append(samples, Sample{
					Work: w, Method: name, Moving: noise(moving),
					Touching: noise(truth.Touch * float64(w.Fresh) * w.oversubscription(w.ND) / 1e3),
				})
				if l.Omega == 0 {
					continue
				}
				s := Sample{Work: w, Method: name, Background: true, Moving: noise(moving), Omega: l.Omega}
				if w.oversubscription(max(w.NS, w.ND)) > 1 {
					s.Omega, s.Moving = l.Crowded, noise(moving/l.Share)
				}
				samples = append(samples, s)
			}
		}
	}
	m := Fit(&Model{Lines: map[string]map[string]Coefficients{"tcp": {"col": {Byte: 7}}}}, samples)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.15*want {
			t.Errorf("%s is %v, was made with %v", what, got, want)
		}
	}
	near("touch", m.Touch, truth.Touch)
	for name, l := range truth.Lines["shm"] {
		got := m.Lines["shm"][name]
		near(name+" start", got.Start, l.Start)
		near(name+" byte", got.Byte, l.Byte)
		near(name+" omega", got.Omega, l.Omega)
		near(name+" crowded", got.Crowded, l.Crowded)
		near(name+" share", got.Share, l.Share)
	}
	if m.Lines["tcp"]["col"].Byte != 7 {
		t.Error("what was not measured has changed")
	}
}

// TestStraight: no line goes below zero.
func TestStraight(t *testing.T) {
	for _, c := range []struct{ x, y []float64 }{
		{[]float64{1, 2, 3}, []float64{5, 3, 2}},
		{[]float64{10, 20, 40}, []float64{1, 15, 50}},
		{[]float64{5}, []float64{9}},
		{[]float64{0, 0}, []float64{9, 9}},
		{[]float64{3, 3}, []float64{0, -4}},
	} {
		if a, b := fitLine(c.x, c.y); a < 0 || b < 0 || math.IsNaN(a+b) {
			t.Errorf("%v, %v: %v + %v*x", c.x, c.y, a, b)
		}
	}
}

func TestParse(t *testing.T) {
	for text, why := range map[string]string{
		"":                                      "EOF",
		"{}":                                    "0 transports",
		`{"Touch":-1,"Lines":{"shm":{}}}`:       "touch",
		`{"Touch":1e300,"Lines":{"shm":{}}}`:    "touch",
		`{"Lines":{"shm":{"col":{"Byte":-1}}}}`: "shm, col",
		`{"Lines":{"shm":{"col":{"Omega":0.5,"Crowded":1,"Share":1}}}}`: "times as long",
		`{"Lines":{"shm":{"col":{"Omega":1,"Crowded":1,"Share":0}}}}`:   "share",
		`{"Lines":{"shm":{"col":{}}},"More":1}`:                         "More",
		`{"Lines":{"shm":{"col":{}}}} {}`:                               "more than one",
		strings.Repeat(" ", maxText+1):                                  "bytes",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: %v; want %q", text, err, why)
		}
	}
}

func FuzzParse(f *testing.F) {
	b, err := json.Marshal(&Builtin)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		w := Work{NS: 1, ND: 3, Cores: 2, Hosts: 1, Transport: "shm", Arrays: 2, Moved: 5, Fresh: 7, Late: 3}
		for _, c := range m.Best(w, methods, true, true) {
			if !(c.Lost >= 0) || math.IsInf(c.Lost, 0) {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// TestLent: pull reads variable data before the commit, of which half may be written
// meanwhile; nobody else does.
func TestLent(t *testing.T) {
	l := Coefficients{Byte: 2, Omega: 1, Crowded: 1, Share: 1}
	m := &Model{Lines: map[string]map[string]Coefficients{"shm": {"pull": l, "col": l}}}
	w := Work{NS: 1, ND: 2, Cores: 2, Hosts: 1, Transport: "shm", Arrays: 1, Moved: 1e6, Fresh: 1e6, Late: 1e6, Lent: 1e6}
	var got []string
	for _, c := range m.Best(w, []string{"pull", "col"}, true, true) {
		got = append(got, c.String())
	}
	want := []string{
		"pull in the background: 1.0 ms standing, 1.5 ms lost",
		"pull at the commit: 2.0 ms standing, 2.0 ms lost",
		"col at the commit: 2.0 ms standing, 2.0 ms lost",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
