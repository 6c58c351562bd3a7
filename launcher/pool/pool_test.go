// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/version"
	"gompi/launcher/rm"
)

// number is that of a job.
func number(i int) string { return fmt.Sprintf("%016x", i) }

// join brings a job of so many processes.
func join(t *testing.T, p *Pool, i, start int, more string) *Job {
	t.Helper()
	l, err := decode([]byte(fmt.Sprintf(`{"version":1,"job":%q,"program":"x","start":%d%s}`, number(i), start, more)))
	if err != nil {
		t.Fatal(err)
	}
	j, err := p.Join(0, l, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(0)
	return j
}

func (j *Job) told(t *testing.T, want ...string) {
	t.Helper()
	if got := string(bytes.Join(j.Take(), nil)); got != strings.Join(want, "\n")+"\n" && (got != "" || len(want) > 0) {
		t.Errorf("job %d was told %s, want %q", j.id, got, want)
	}
}

func hear(t *testing.T, p *Pool, j *Job, text, want string) {
	t.Helper()
	l, err := decode([]byte(text))
	if err == nil {
		err = p.Hear(0, j, l)
	}
	if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", text, err, want)
	}
	p.Step(0)
}

// The whole talk of jobs that come, wait, ask for more, have less, and go.
func TestPool(t *testing.T) {
	p := New(rm.NewShared(rm.Config{Policy: rm.FIFO{}}), 4)
	a := join(t, p, 1, 2, "")
	a.told(t, `{"event":"hello","version":1,"total":4}`, `{"event":"decided","size":2,"of":1}`)
	b := join(t, p, 2, 3, `,"limit":5`)
	c := join(t, p, 3, 1, "")
	b.told(t, `{"event":"hello","version":1,"total":4}`)
	c.told(t, `{"event":"hello","version":1,"total":4,"before":1}`)
	hear(t, p, b, `{"event":"wished","size":4}`, "has not begun")
	hear(t, p, a, `{"event":"sized","size":2,"of":2}`, "answer to decision 2")
	hear(t, p, a, `{"event":"sized","size":2,"of":1}`, "")
	hear(t, p, a, `{"event":"sized","size":3}`, "3 processes, and it has 2 slots")
	hear(t, p, a, `{"event":"sized"}`, "a job of 0 processes")
	hear(t, p, a, `{"event":"dance"}`, "dance")
	hear(t, p, a, `{"event":"told","col":{"version":7}}`, "version")
	hear(t, p, a, `{"event":"told","col":{"version":1}}`, "")
	if got := p.Taken(); got != 2 {
		t.Errorf("%d slots are taken", got)
	}
	// What it has less is the next one's; what crosses a decision is not heard.
	hear(t, p, a, `{"event":"sized","size":1}`, "")
	b.told(t, `{"event":"decided","size":3,"of":1}`)
	c.told(t)
	hear(t, p, b, `{"event":"sized","size":2}`, "")
	hear(t, p, b, `{"event":"sized","size":3,"of":1}`, "")
	hear(t, p, a, `{"event":"wished","size":3,"min":2}`, "")
	p.Leave(b)
	p.Step(0)
	// In order: first who has waited longer.
	c.told(t, `{"event":"decided","size":1,"of":1}`)
	a.told(t, `{"event":"decided","size":3,"of":2,"wished":true}`)
	p.Slots(2)
	p.Step(0)
	a.told(t, `{"event":"slots","total":2}`)
	hear(t, p, a, `{"event":"sized","size":2,"of":2}`, "")
	if got := p.Taken(); got != 3 {
		t.Errorf("%d slots are taken", got)
	}
	d := join(t, p, 4, 0, "")
	d.told(t, `{"event":"hello","version":1,"total":2}`)
	for text, want := range map[string]string{
		`{"version":1,"job":"0000000000000009","start":3}`:                             "3 processes, and there are 2 slots",
		`{"version":1,"job":"0000000000000009","start":3,"col":{"version":1,"min":3}}`: "3 processes, and there are 2 slots",
		`{"version":1,"job":"0000000000000009","start":1,"col":{"version":2}}`:         "version",
		`{"version":1,"job":"9","start":1}`:                                            "number",
		`{"version":1,"job":"0000000000000001","start":1}`:                             "here already",
		`{"version":1,"job":"0000000000000009","start":-1}`:                            "to start with -1",
		`{"version":1,"job":"0000000000000009","start":1,"limit":-1}`:                  "limit",
		`{"version":1,"job":"0000000000000009","start":1,"size":1,"min":2}`:            "at least 2",
		`{"version":1,"job":"0000000000000009","start":1,"text":"` + long + `"}`:       "text of",
		`{"version":1,"job":"0000000000000009","start":1} {}`:                          "data after",
		`{"version":1,"job":"0000000000000009","begin":1}`:                             "unknown field",
		`{"version":1,"job":"0000000000000009","start":70000}`:                         "to start with 70000",
	} {
		l, err := decode([]byte(text))
		if err == nil {
			_, err = p.Join(0, l, 1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	// Who is content with fewer begins with what there is.
	l, _ := decode([]byte(`{"version":1,"job":"0000000000000009","start":9,"col":{"version":1,"min":1}}`))
	if e, err := p.Join(0, l, 1); err != nil || e.start != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

var long = strings.Repeat("x", maxText+1)

// player is a job of a random game: it does what it is told, or something else that it
// may do.
type player struct {
	*Job
	has int
}

// Whatever jobs that keep the rules say, in any order and however late, by any policy no
// more slots are given out than there are.
func TestRandomConserved(t *testing.T) {
	for _, policy := range rm.Policies() {
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			total := 1 + r.IntN(12)
			p := New(rm.NewShared(rm.Config{Policy: policy}), total)
			var jobs []*player
			now, begun, ended, resized := time.Duration(0), 0, 0, 0
			for step := range 400 {
				now += time.Duration(r.IntN(20_000)) * time.Millisecond
				switch n := r.IntN(10); {
				case n < 3 && len(jobs) < 8:
					col := ""
					if r.IntN(3) > 0 {
						col = fmt.Sprintf(`,"col":{"version":1,"min":1,"max":%d}`, 1+r.IntN(9))
					}
					l, err := decode([]byte(fmt.Sprintf(`{"version":1,"job":%q,"start":%d,"limit":%d%s}`, number(step), 1+r.IntN(total), r.IntN(100), col)))
					if err != nil {
						t.Fatal(err)
					}
					j, err := p.Join(now, l, 1)
					if err != nil {
						t.Fatal(err)
					}
					jobs = append(jobs, &player{j, 0})
				case len(jobs) > 0:
					i := r.IntN(len(jobs))
					j := jobs[i]
					text := ""
					switch {
					case n == 9 || step > 300:
						p.Leave(j.Job)
						jobs = append(jobs[:i], jobs[i+1:]...)
						ended++
					case j.target > 0 && n < 8: // some say so, some cannot, some only in part
						size := j.target
						if j.has > 0 && r.IntN(3) == 0 {
							size = min(j.has, j.target) + r.IntN(max(j.has, j.target)-min(j.has, j.target)+1)
						}
						if j.has == 0 {
							begun++
						} else if size != j.has {
							resized++
						}
						text = fmt.Sprintf(`{"event":"sized","size":%d,"of":%d}`, size, j.of)
					case j.Job.has == 0:
					case n < 5 && j.Job.has > 1:
						text = fmt.Sprintf(`{"event":"sized","size":%d}`, 1+r.IntN(j.Job.has))
					case n < 7:
						text = fmt.Sprintf(`{"event":"wished","size":%d,"min":%d}`, j.Job.has+r.IntN(4), r.IntN(j.Job.has+1))
					default:
						text = `{"event":"followed","follows":true}`
					}
					if text != "" {
						l, err := decode([]byte(text))
						if err == nil {
							err = p.Hear(now, j.Job, l)
						}
						if err != nil {
							t.Fatalf("%s, %d slots, seed %d: %s: %v", policy.Name(), total, seed, text, err)
						}
						j.has = j.Job.has
					}
				}
				p.Step(now)
				if p.Taken() > total {
					t.Fatalf("%s, seed %d: %d of %d slots", policy.Name(), seed, p.Taken(), total)
				}
			}
			if begun == 0 || ended == 0 || resized == 0 && total > 3 && (policy.Name() == "ascent" || policy.Name() == "dmr") {
				t.Errorf("%s, %d slots, seed %d: %d began, %d ended, %d were resized", policy.Name(), total, seed, begun, ended, resized)
			}
		}
	}
}

// FuzzHear: no line of a job, whatever it is, gives it slots that nobody has decided.
func FuzzHear(f *testing.F) {
	f.Add([]byte(`{"event":"sized","size":2,"of":1}`))
	f.Add([]byte("{\"event\":\"wished\",\"size\":3}\n{\"event\":\"sized\",\"size\":3,\"of\":2}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := New(rm.NewShared(rm.Config{Policy: rm.Ascent{}}), 4)
		j := join(t, p, 1, 2, `,"col":{"version":1,"min":1}`)
		for l := range bytes.Lines(text) {
			m, err := decode(l)
			if err != nil || p.Hear(0, j, m) != nil {
				p.Leave(j)
				p.Step(0)
				if p.Taken() != 0 {
					t.Errorf("%d slots are taken of a job that was left", p.Taken())
				}
				return
			}
			if p.Step(0); p.Taken() > 4 {
				t.Errorf("%s: %d of 4 slots", text, p.Taken())
			}
		}
	})
}

// Heads and gompirun of other versions say both, also if the newer one has fields of its own.
func TestAnotherVersion(t *testing.T) {
	for _, text := range []string{`{"version":2,"job":"1","plan":{}}`, `{"event":"refused","version":2,"text":"this head has gompi v2"}`} {
		err := mismatch([]byte(text), "it", "this gompirun")
		if err == nil || !strings.Contains(err.Error(), "it has lines of version 2, this gompirun has gompi "+version.Gompi()+" with version 1: rebuild the older one") {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(text, "text") && !strings.Contains(err.Error(), "(this head has gompi v2)") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{"version":1,"job":"1"}`, `{"event":"refused","text":"x"}`, `no JSON`, `{}`} {
		if err := mismatch([]byte(text), "it", "this gompirun"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
