// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"gompi/internal/resize/col"
	"gompi/launcher/rm"
)

func linear(cost float64) *col.COL {
	return &col.COL{Version: 1, Model: &col.Model{Kind: col.Linear, Slope: 1}, Cost: col.Number(cost)}
}

// script is a manager that starts job 0 with 2 processes, and gives it 4 after 10 s.
type script struct{ n int }

func (s *script) Step(now time.Duration, _ ...rm.Event) []rm.Decision {
	switch {
	case s.n == 0:
		s.n++
		return []rm.Decision{{Job: 0, Size: 2}}
	case s.n == 1 && now >= 10*time.Second:
		s.n++
		return []rm.Decision{{Job: 0, Size: 4, From: 2}}
	}
	return nil
}

func (s *script) Next() (time.Duration, bool) { return 10 * time.Second, s.n == 1 }

// Times against a calculation by hand: 20 of 100 are done by 2 in 10 s, nothing in 5 s,
// and the other 80 by 4 in 20 s.
func TestTimes(t *testing.T) {
	r, err := Run(Config{Manager: &script{}, Slots: 4}, []Job{{Work: 100, COL: linear(5)}})
	if err != nil {
		t.Fatal(err)
	}
	load := []Load{{0, 2}, {10 * time.Second, 4}, {35 * time.Second, 0}}
	if r.End != 35*time.Second || !reflect.DeepEqual(r.Load, load) || r.Changes != 1 || r.Stopped != 20 || r.Taken != 120 || math.Abs(r.Work-100) > 1e-6 {
		t.Errorf("%+v", r)
	}
	s := r.Summary(4)
	if math.Abs(s.Utilisation-120.0/140) > 1e-9 || math.Abs(s.Efficiency-100.0/120) > 1e-9 || s.Turnaround != 35*time.Second || s.Wait != 0 {
		t.Errorf("%+v", s)
	}
	want := []float64{0.5, 0.75, 1, 1, 1, 1, 1, 0}
	got := r.Curve(4, 7, 35*time.Second)
	for i, y := range got {
		if x := []float64{0.5, 0.5, 1, 1, 1, 1, 1}[i]; math.Abs(y-x) > 1e-9 {
			t.Errorf("the curve is %v", got)
		}
	}
	for i, y := range r.Curve(4, 8, 160*time.Second/4) { // parts of 5 s, from 40
		if x := []float64{0.5, 0.5, 1, 1, 1, 1, 1, 0}[i]; math.Abs(y-x) > 1e-9 {
			t.Errorf("part %d is %v, not %v of %v", i, y, x, want)
		}
	}
}

// A mix under each policy: all work is done, no job begins before it comes or ends
// before its work can be done, and the slots are never more than there are.
func TestDay(t *testing.T) {
	jobs := Day(400, 64, 3*time.Hour, 1)
	for _, p := range rm.Policies() {
		r, err := Run(Config{Manager: rm.NewShared(rm.Config{Policy: p}), Slots: 64}, jobs)
		if err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		work, last := 0.0, time.Duration(0)
		for i, d := range r.Jobs {
			work += jobs[i].Work
			least := span(jobs[i].Work / jobs[i].COL.Speedup(64))
			if d.Came != span(jobs[i].At) || d.Began < d.Came || d.Ended < d.Began+least-time.Microsecond {
				t.Errorf("%s: job %d: %+v", p.Name(), i, d)
			}
			if p.Name() == "fifo" && d.Began < last {
				t.Errorf("job %d begins at %v, before one that came before it at %v", i, d.Began, last)
			}
			last = max(last, d.Began)
		}
		if math.Abs(r.Work-work) > 1e-6*work {
			t.Errorf("%s: %v of %v is done", p.Name(), r.Work, work)
		}
		for _, l := range r.Load {
			if l.Taken < 0 || l.Taken > 64 {
				t.Errorf("%s: %d slots are taken at %v", p.Name(), l.Taken, l.At)
			}
		}
		if s := r.Summary(64); s.Utilisation > 1 || r.Load[len(r.Load)-1].Taken != 0 || (r.Changes > 0) != (p.Name() == "dmr" || p.Name() == "ascent") {
			t.Errorf("%s: %+v", p.Name(), s)
		}
	}
}

// TestSoakDay holds the goal: 10,000 jobs in 10 s.
func TestSoakDay(t *testing.T) {
	if os.Getenv("GOMPI_TEST") != "long" {
		t.Skip("a measurement; GOMPI_TEST=long runs it")
	}
	jobs := Day(10000, 256, 24*time.Hour, 1)
	for _, p := range rm.Policies() {
		began := time.Now()
		r, err := Run(Config{Manager: rm.NewShared(rm.Config{Policy: p}), Slots: 256}, jobs)
		if err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		took := time.Since(began)
		t.Logf("%-8s %6.2f s, %d steps: %+v", p.Name(), took.Seconds(), r.Steps, r.Summary(256))
		if took > 10*time.Second {
			t.Errorf("%s took %v", p.Name(), took)
		}
	}
}

func TestStuck(t *testing.T) {
	run := func(p rm.Policy, j Job) error {
		_, err := Run(Config{Manager: rm.NewShared(rm.Config{Policy: p}), Slots: 4}, []Job{j})
		return err
	}
	if err := run(rm.FIFO{}, Job{Work: 1, NP: 5}); !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "5 processes, there are 4 slots") {
		t.Errorf("5 of 4 slots: %v", err)
	}
	table := &col.COL{Version: 1, Model: &col.Model{Kind: col.Table, Points: []col.Point{{P: 2, Seconds: 1}}}}
	if err := run(rm.FIFO{}, Job{Work: 1, NP: 3, COL: table}); !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "no progress with 3") {
		t.Errorf("a size of which nothing is known: %v", err)
	}
	if _, err := Run(Config{Manager: &script{}, Slots: 1}, []Job{{Work: 1}}); err == nil || errors.Is(err, ErrStuck) {
		t.Errorf("a manager that breaks the rules: %v", err)
	}
}

func TestGaps(t *testing.T) {
	gaps, err := Gaps(rm.Policies(), 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range gaps {
		if t.Logf("%-8s %+v", rm.Policies()[i].Name(), g); g.Cases < 150 || g.Mean > 1+1e-9 || g.Worst < -1e-9 || g.Best > g.Cases {
			t.Errorf("%s: %+v", rm.Policies()[i].Name(), g)
		}
	}
	if ascent := gaps[5]; ascent.Mean < 0.95 || ascent.Best < ascent.Cases/2 {
		t.Errorf("ascent comes to %+v", ascent)
	}
}

func TestRead(t *testing.T) {
	jobs := Day(50, 16, time.Hour, 3)
	var b bytes.Buffer
	if err := Write(&b, jobs); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	again, err := Read("x", &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, again); err != nil || b.String() != text {
		t.Errorf("%v: it is read as something else", err)
	}
	two, err := Read("x", strings.NewReader("{\"at\":7,\"work\":1}\n\n{\"at\":6.5,\"work\":2,\"np\":3}\n"))
	if err != nil || len(two) != 2 || two[0].NP != 3 {
		t.Errorf("%+v, %v", two, err)
	}
	for in, want := range map[string]string{
		`{"at":1}`:                                       "x:1: work of 0",
		"{\"at\":1,\"work\":1}\n{":                       "x:2: unexpected EOF",
		`{"at":1,"work":1} 2`:                            "x:1: data after",
		`{"at":-1,"work":1}`:                             "x:1: at -1",
		`{"at":1,"work":1,"np":-1}`:                      "x:1: -1 processes",
		`{"at":1,"work":1,"limit":-1}`:                   "x:1: limit",
		`{"at":1,"work":1,"start":1}`:                    "x:1: json: unknown field",
		`{"at":1,"work":1,"col":{"version":9}}`:          "x:1: col: unknown version",
		`{"at":1,"work":1,"col":{"version":1,"min":-1}}`: "x:1: col: invalid",
		strings.Repeat("x", maxLine+1):                   "x:1: ",
	} {
		if got, err := Read("x", strings.NewReader(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, %v, want %q", in, got, err, want)
		}
	}
}
