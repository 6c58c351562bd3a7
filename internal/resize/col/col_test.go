// SPDX-License-Identifier: Apache-2.0

package col

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func expr(t testing.TB, text string) *Expr {
	t.Helper()
	e, err := ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The models against the published formulas.
func TestModels(t *testing.T) {
	const s, q = 2.0, 30.0
	amdahl := Model{Kind: Amdahl, Serial: s, Parallel: q}
	for p := 1; p <= 64; p++ {
		n := float64(p)
		speedup := (s + q) / (s + q/n)
		near(t, "amdahl", amdahl.Speedup(p), speedup)
		near(t, "its derivative", amdahl.Marginal(p), q*(q+s)/((q/n+s)*(q/n+s)*n*n))
		near(t, "inverse", (&Model{Kind: Inverse, Serial: s, Parallel: q}).Speedup(p), 1/speedup)
		near(t, "linear", (&Model{Kind: Linear, Slope: 0.5, Offset: 0.5}).Speedup(p), 0.5*n+0.5)
		near(t, "constant", (&Model{Kind: Constant, Offset: 3}).Speedup(p), 3)
		near(t, "expression", (&Model{Kind: Expression, Time: expr(t, "2 + 30/p")}).Speedup(p), speedup)
		table := Model{Kind: Table, Points: []Point{{1, s + q}, {7, s + q/7}, {64, s + q/64}}}
		near(t, "table", table.Speedup(p), speedup) // between two points the same law
		fitted := Model{Kind: Fitted, Points: []Point{{3, s + q/3}, {5, s + q/5}, {40, s + q/40}}}
		near(t, "fitted", fitted.Speedup(p), speedup)
		if sec, ok := amdahl.Seconds(p); !ok || math.Abs(sec-(s+q/n)) > 1e-12 {
			t.Errorf("%d processes: %v seconds, %v", p, sec, ok)
		}
		if sec, ok := (&Model{Kind: Linear, Slope: 1, Unit: 8}).Seconds(p); !ok || math.Abs(sec-8/n) > 1e-12 {
			t.Errorf("linear, %d processes: %v seconds, %v", p, sec, ok)
		}
	}
	table := Model{Kind: Table, Points: []Point{{4, 10}, {8, 6}}}
	near(t, "of a table from 4 on", table.Speedup(4), 4)
	near(t, "of a table from 4 on", table.Speedup(8), 40.0/6)
	for _, p := range []int{-1, 0, 3, 9} {
		if sec, ok := table.Seconds(p); ok || table.Speedup(p) != 0 {
			t.Errorf("a table of 4 to 8 knows %d: %v seconds", p, sec)
		}
	}
	for _, m := range []Model{amdahl, {Kind: Linear, Slope: -1}, {Kind: Constant, Offset: 1}, {Kind: Expression, Time: expr(t, "log2(0-p)")}, {}} {
		if _, ok := m.Seconds(0); ok || m.Speedup(0) != 0 || m.Kind == Linear && m.Speedup(2) != 0 || m.Kind == Expression && m.Speedup(2) != 0 {
			t.Errorf("%+v knows too much", m)
		}
	}
}

// Least squares of p T(p) = Serial p + Parallel, by hand: p = 1, 2, 4 and T = 11, 7, 4
// give y = 11, 14, 16, so Serial = 11/7 and Parallel = 10.
func TestFit(t *testing.T) {
	var f Fit
	if _, err := f.Model(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a fit of nothing: %v", err)
	}
	f.Add(1, 11)
	f.Add(1, 11.5)
	if _, err := f.Model(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a fit of one size: %v", err)
	}
	f = Fit{}
	for p, sec := range map[int]float64{1: 11, 2: 7, 4: 4} {
		f.Add(p, sec)
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		f.Add(3, bad)
	}
	f.Add(0, 1)
	m, err := f.Model()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "serial", m.Serial, 11.0/7)
	near(t, "parallel", m.Parallel, 10)

	var fast, slow Fit
	fast.Add(1, 100)
	fast.Add(2, 10) // more than twice as fast
	slow.Add(1, 1)
	slow.Add(2, 10)
	if m, err = fast.Model(); err != nil || m.Serial != 0 || m.Parallel != 60 {
		t.Errorf("a fit of what is more than linear: %+v, %v", m, err)
	}
	if m, err = slow.Model(); err != nil || m.Parallel != 0 || math.Abs(m.Serial-(1+40)/5.0) > 1e-12 {
		t.Errorf("a fit of what only loses: %+v, %v", m, err)
	}
}

func TestExpr(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, " 2+3*4 ": 14, "(2+3)*4": 20, "2^3^2": 512, "-2^2": -4, "7-2-1": 4, "12/3/2": 2,
		"min(p,q)": 4, "max(p, q)": 16, "log2(q)": 4, "sqrt(q)+ceil(1.2)+floor(1.8)+abs(-3)": 10,
		"0.15 + 2.5/min(p,q)": 0.775, "1e-3*p": 0.004, "--p": 4, "2*-3": -6, "p^-1": 0.25,
	} {
		near(t, text, expr(t, text).Eval(4, 16), want)
	}
	for _, text := range []string{
		"", "p q", "1+", "(1", "1)", "min(1)", "min(1,2,3)", "log2", "r", "1..2", "1e", "p(1)", "2 3", "system('x')", "__import__",
		"1e999", strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), strings.Repeat("1+(", 40) + "1" + strings.Repeat(")", 40),
		strings.Repeat("-", 100) + "1", strings.Repeat("2^", 100) + "1", strings.Repeat("1+", 300) + "1", "p\x00", "é",
	} {
		if e, err := ParseExpr(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.30q is taken: %v, %v", text, e, err)
		}
	}
	for _, x := range []float64{0, 0.15, -2.5, 1e-7, 1e30} {
		if e := Number(x); e.Eval(1, 1) != x || expr(t, e.String()).Eval(1, 1) != x {
			t.Errorf("%v is %v, and as text %q", x, e.Eval(1, 1), e)
		}
	}
	if v := new(Expr).Eval(1, 1); !math.IsNaN(v) {
		t.Errorf("nothing is %v", v)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		col  COL
		from int
		want []int
	}{
		{COL{}, 3, []int{1, 2, 4, 5, 6, 7, 8}},
		{COL{Min: 2, Max: 5}, 2, []int{3, 4, 5}},
		{COL{Min: 3, PowerOfTwo: true}, 6, []int{4, 8}},
		{COL{Sizes: []int{6, 2, 6, 9}}, 4, []int{2, 6}},
		{COL{Sizes: []int{6, 2, 6, 9}, Invalid: []int{2}}, 4, []int{6}},
		{COL{Delta: 3}, 4, []int{1, 7}},
		{COL{Delta: 3}, 0, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{COL{Factor: 2}, 2, []int{1, 4, 8}},
		{COL{Factor: 2, Invalid: []int{4}}, 3, []int{6}},
		{COL{Factor: 3}, 8, nil},
	} {
		c.col.Version = Version
		if err := c.col.Check(); err != nil {
			t.Error(err)
		}
		got := c.col.AppendSizes(nil, c.from, 8)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v from %d: %v, want %v", c.col, c.from, got, c.want)
		}
		for n := range 10 {
			if may := slices.Contains(c.want, n) || n == c.from; n <= 8 && c.col.May(c.from, n) != may {
				t.Errorf("%+v: from %d to %d is %v", c.col, c.from, n, !may)
			}
			largest := 0
			for m := 1; m <= n; m++ {
				if c.col.May(c.from, m) {
					largest = m
				}
			}
			if n <= 8 && c.col.Largest(c.from, n) != largest {
				t.Errorf("%+v: the largest from %d, up to %d, is %d, want %d", c.col, c.from, n, c.col.Largest(c.from, n), largest)
			}
		}
	}
	for m, want := range map[Mapping]int{"": 5, "dense": 5, "sparse": 40, "2:node": 24, "9:node": 8} {
		if got := m.Slots(5, 8); got != want {
			t.Errorf("5 processes, %q, take %d slots of hosts of 8, want %d", m, got, want)
		}
		if got := m.Slots(5, 0); got != 5 {
			t.Errorf("5 processes, %q, take %d slots without hosts", m, got)
		}
	}
}

// A change pays from the moment on at which what it saves is what it costs: 10 s of 4
// processes instead of 2 are 20 s of one, which 4 make up for in 5 s more.
func TestWorth(t *testing.T) {
	c := COL{Version: Version, Model: &Model{Kind: Linear, Slope: 1, Unit: 8}, Cost: expr(t, "10")}
	even := 20.0 // (20-10)*4 = 20*2
	if c.Worth(2, 4, even) || !c.Worth(2, 4, even+0.01) {
		t.Error("the cost is not what a change has to save")
	}
	c.Hysteresis = 0.5 // (40-10)*4 = 40*2*1.5
	if c.Worth(2, 4, 40) || !c.Worth(2, 4, 40.01) {
		t.Error("hysteresis is not what is asked for beyond")
	}
	c.Hysteresis, c.Remaining = 0, 5 // 5 iterations of 4 s: 20 s
	if c.Worth(2, 4, 1000) {
		t.Error("a job that is nearly over changes")
	}
	if c.Remaining = 6; !c.Worth(2, 4, 1000) {
		t.Error("a job that has some time to go does not change")
	}
	if c.Worth(4, 2, 1000) || c.Worth(2, 2, 1000) {
		t.Error("what makes a job slower, or leaves it, is worth it")
	}
	for p, want := range map[int]float64{0: 0, 3: 3, 8: 5} {
		near(t, "without a model", (&COL{Pref: 5}).Speedup(p), want)
	}
	near(t, "without anything", (&COL{}).Speedup(8), 8)
	slow := COL{Model: &Model{Kind: Inverse, Serial: 1, Parallel: 9}}
	if !slow.Worth(4, 2, 100) || slow.Worth(2, 4, 100) {
		t.Error("a job that more processes slow down")
	}
	for text, want := range map[string]float64{"0-3": 0, "1/0": MaxNumber, "0/0": MaxNumber, "abs(p-q)": 2} {
		c.Cost = expr(t, text)
		near(t, "cost "+text, c.Seconds(2, 4), want)
		near(t, "cost of nothing", c.Seconds(4, 4)+c.Seconds(0, 4), 0)
	}
}

func TestDecode(t *testing.T) {
	text := `{"version":1,"model":{"kind":"fitted","points":[{"p":1,"seconds":3},{"p":2,"seconds":2}]},"min":2,"max":64,"pref":8,` +
		`"sizes":[8,16],"invalid":[3],"power_of_two":true,"delta":2,"factor":2,"mapping":"4:node","priority":3,"cost":"0.15 + 1/min(p,q)",` +
		`"hysteresis":0.1,"settle":5,"remaining":100}`
	c, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Encode()
	if err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	if c, err = Decode([]byte(`{"version":1,"cost":2.5}`)); err != nil || c.Seconds(1, 2) != 2.5 {
		t.Errorf("a cost that is a number: %v, %v", c, err)
	}
	if _, err := Decode([]byte(`{"version":2,"new":1}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
	for _, bad := range []string{
		``, `1`, `{"version":1} {}`, `{"version":1,"new":1}`, `{"version":1,"min":-1}`, `{"version":1,"min":3,"max":2}`, `{"version":1,"factor":1}`,
		`{"version":1,"max":65537}`, `{"version":1,"priority":1001}`, `{"version":1,"hysteresis":-1}`, `{"version":1,"sizes":[0]}`, `{"version":1,"power_of_two":"False"}`,
		`{"version":1,"pref":3,"power_of_two":true}`, `{"version":1,"mapping":"x:node"}`, `{"version":1,"mapping":"+4:node"}`, `{"version":1,"cost":"exit()"}`, `{"version":1,"cost":true}`,
		`{"version":1,"remaining":3}`, `{"version":1,"remaining":3,"model":{"kind":"constant","offset":1}}`,
		`{"version":1,"model":{}}`, `{"version":1,"model":{"kind":"python"}}`, `{"version":1,"model":{"kind":"amdahl"}}`,
		`{"version":1,"model":{"kind":"amdahl","serial":1,"slope":1}}`, `{"version":1,"model":{"kind":"constant","offset":0}}`,
		`{"version":1,"model":{"kind":"table"}}`, `{"version":1,"model":{"kind":"table","points":[{"p":2,"seconds":1},{"p":2,"seconds":1}]}}`,
		`{"version":1,"model":{"kind":"table","points":[{"p":2,"seconds":1},{"p":1,"seconds":1}]}}`,
		`{"version":1,"model":{"kind":"table","points":[{"p":2,"seconds":0}]}}`, `{"version":1,"model":{"kind":"fitted","points":[{"p":2,"seconds":1}]}}`,
		`{"version":1,"model":{"kind":"expression"}}`, `{"version":1,"model":{"kind":"expression","time":"p+q"}}`,
		`{"version":1,"min":` + strings.Repeat(" ", MaxBytes) + `1}`,
	} {
		if c, err := Decode([]byte(bad)); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrVersion) {
			t.Errorf("%.60s is taken: %+v, %v", bad, c, err)
		}
	}
	if _, err := (&COL{Min: -1}).Encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("min -1 is encoded: %v", err)
	}
	if _, err := (&COL{Cost: &Expr{}}).Encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty expression is encoded: %v", err)
	}
}

// The schema has the fields of the types, and no others.
func TestSchema(t *testing.T) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Defs       struct {
			Model struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"model"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of  any
		has map[string]json.RawMessage
	}{{COL{}, s.Properties}, {Model{}, s.Defs.Model.Properties}} {
		fields := reflect.TypeOf(c.of)
		n := 0
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			if n++; c.has[name] == nil {
				t.Errorf("the schema has no %s of %T", name, c.of)
			}
		}
		if n != len(c.has) {
			t.Errorf("the schema has %d fields of %T, which has %d", len(c.has), c.of, n)
		}
	}
}

// FuzzDecode: what is taken has bounded sizes, values that are numbers, and can be
// written again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"version":1,"model":{"kind":"amdahl","serial":1,"parallel":9},"min":2,"max":8,"cost":"1/p+q^2"}`,
		`{"version":1,"model":{"kind":"table","points":[{"p":1,"seconds":3},{"p":4,"seconds":1}]},"sizes":[1,4],"mapping":"2:node"}`,
		`{"version":1,"model":{"kind":"fitted","points":[{"p":1,"seconds":3},{"p":4,"seconds":1}]},"remaining":10}`,
		`{"version":1,"model":{"kind":"expression","time":"max(1,log2(p))/-0"},"factor":3}`,
		`{"version":1,"model":{"kind":"linear","slope":-1,"offset":3}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Decode(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrVersion) {
				t.Errorf("%v", err)
			}
			return
		}
		once, err := c.Encode()
		if err != nil {
			if len(text) < MaxBytes/8 { // an expression may be longer as JSON
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		d, err := Decode(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := d.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s became %s, %v", once, twice, err)
		}
		for _, from := range []int{0, 1, 3, 8, MaxSize} {
			for _, to := range append(c.AppendSizes(nil, from, 16), 0, from) {
				v := c.Value(from, to, 100)
				if !(v >= 0) || math.IsInf(v, 0) || v != d.Value(from, to, 100) {
					t.Errorf("%s: from %d to %d is worth %v, and %v", once, from, to, v, d.Value(from, to, 100))
				}
				if c.Worth(from, to, 100) && !c.May(from, to) {
					t.Errorf("%s: from %d to %d is worth it, and may not be", once, from, to)
				}
			}
		}
	})
}
