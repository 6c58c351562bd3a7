// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/bench/report"
	"gompi/bench/stages"
	"gompi/internal/test/testjob"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// small is an application of three groups, with data of both kinds.
func small(change func(c *Config)) *Config {
	group := func(iters, procs int) Group {
		return Group{iters, procs, 1, mam.Merge, mam.SpawnAll, mam.Compact, mam.Pull, mam.WaitDrains}
	}
	c := &Config{
		SDR: 5003, ADR: 7001, Datasize: 2,
		Phases: []Phase{
			{4, []stages.Stage{{Kind: stages.Pi, Seconds: 1e-4, Granularity: 100}, {Kind: stages.Allreduce, Bytes: 8}}},
			{30, []stages.Stage{{Kind: stages.Allgather, Bytes: 100}, {Kind: stages.Ring, Seconds: 1e-4, Granularity: 8}, {Kind: stages.Pi, Seconds: 1e-3, Granularity: 100}}},
		},
		Groups: []Group{group(6, 2), group(5, 3), group(1, 1)},
	}
	change(c)
	return c
}

// runs runs a configuration as a job of goroutines.
func runs(t *testing.T, c *Config, opts ...mpitest.Option) report.Result {
	t.Helper()
	var mu sync.Mutex
	var rs []report.Result
	mpitest.Run(t, c.Groups[0].Procs, func(t *mpitest.T, world *mpi.Comm) {
		o := Options{Load: func() (*Config, string, error) { return c, "labelled", nil }, Name: "small", Repetition: 2}
		err := Run(t.Context(), world, o, func(r report.Result) error {
			mu.Lock()
			defer mu.Unlock()
			rs = append(rs, r)
			return nil
		})
		if err != nil && !errors.Is(err, mpi.ErrLeaving) {
			t.Fatal(err)
		}
	}, opts...)
	if len(rs) != 1 {
		t.Fatalf("%d results", len(rs))
	}
	// It is what can be read again.
	var text strings.Builder
	if err := report.Write(&text, rs[0]); err != nil {
		t.Fatal(err)
	}
	again, err := report.Read("x", strings.NewReader(text.String()))
	if err != nil || fmt.Sprint(again[0].Sam) != fmt.Sprint(rs[0].Sam) {
		t.Errorf("read again %+v, %v", again, err)
	}
	return rs[0]
}

// methods are those of the two changes.
func methods(c *Config, first, second mam.Method, strategy mam.Strategy) {
	c.Groups[1].Method, c.Groups[1].Strategy = first, strategy
	c.Groups[2].Method, c.Groups[2].Strategy = second, strategy
}

// TestRun changes between all groups, and looks at what is told: every iteration of all
// phases once, in its group, and what has moved.
func TestRun(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"merge": func(c *Config) {},
		"rigid": func(c *Config) { c.Rigid, c.Capture = true, Median },
		"baseline": func(c *Config) {
			c.Capture, c.Groups[1].Process, c.Groups[2].Process = Mean, mam.Baseline, mam.Baseline
		},
		"foreground": func(c *Config) { c.SDR, c.ADR = c.ADR, 0; c.Groups[1].Method, c.Groups[2].Method = mam.COL, mam.P2P },
		"nothing":    func(c *Config) { c.SDR, c.ADR = 0, 0 },
		"nb":         func(c *Config) { methods(c, mam.COL, mam.P2P, mam.NonBlocking) },
		"thread":     func(c *Config) { methods(c, mam.RMALockall, mam.COL, mam.Thread) },
		"drains":     func(c *Config) { methods(c, mam.P2P, mam.RMALock, mam.WaitDrains) },
		"hosts":      func(c *Config) { c.ADR = 0 },
		"hosts2":     func(c *Config) { methods(c, mam.COL, mam.RMALock, mam.WaitDrains) },
		"auto":       func(c *Config) { methods(c, mam.Auto, mam.Auto, mam.Auto) },
		"inplace":    func(c *Config) { methods(c, mam.InPlace, mam.Pull, mam.WaitDrains) },
		"placed":     func(c *Config) { methods(c, mam.COL, mam.InPlace, mam.Blocking) },
		"windows":    func(c *Config) { c.ADR = 0; c.Groups[1].Method, c.Groups[2].Method = mam.RMALock, mam.RMALockall },
	} {
		t.Run(name, func(t *testing.T) {
			c := small(change)
			var opts []mpitest.Option
			if strings.HasPrefix(name, "hosts") {
				opts = []mpitest.Option{testjob.Hosts(2, 2), mpitest.Transport("shm,tcp")}
			}
			r := runs(t, c, opts...)
			s := r.Sam
			if r.Bench != "sam" || r.Ranks != 2 || r.Bytes != c.SDR+c.ADR || r.Usec <= 0 || s.Config != "small" || s.Variant != "labelled" || s.Repetition != 2 || s.Key != c.Key() || s.TotalMsec <= 0 {
				t.Errorf("%+v, %+v", r, s)
			}
			if len(s.Groups) != 3 || len(s.Resizes) != 2 {
				t.Fatalf("%d groups, %d resizes", len(s.Groups), len(s.Resizes))
			}
			phases := []int{0, 0}
			for i, g := range s.Groups {
				n, meanwhile := 0, 0
				for _, p := range g.Phases {
					phases[p.Phase] += len(p.IterMsec)
					n += len(p.IterMsec)
					meanwhile += p.Overlapped
					if len(p.StageMsec) != len(c.Phases[p.Phase].Stages) {
						t.Errorf("group %d: %d stages", i, len(p.StageMsec))
					}
					for k, whole := range p.IterMsec {
						parts := 0.0
						for _, list := range p.StageMsec {
							parts += list[k]
						}
						if whole <= 0 || c.Capture == Median && s.Groups[i].Procs%2 == 1 && parts > 1.01*whole {
							t.Errorf("group %d: an iteration of %v ms, its stages %v", i, whole, parts)
						}
					}
				}
				ahead := 0
				if i > 0 {
					for _, p := range s.Groups[i-1].Phases {
						ahead += p.Overlapped
					}
				}
				// What the group before has done ahead this one has not to do.
				if i < 2 && n != max(c.Groups[i].Iters-ahead, 0)+meanwhile || i < 2 && meanwhile > c.Groups[i+1].Iters || g.Procs != c.Groups[i].Procs {
					t.Errorf("group %d of %d: %d iterations, %d during the change, %d ahead", i, g.Procs, n, meanwhile, ahead)
				}
			}
			if !slices.Equal(phases, []int{4, 30}) {
				t.Errorf("iterations of phases: %v", phases)
			}
			for i, x := range s.Resizes {
				if x.From != c.Groups[i].Procs || x.To != c.Groups[i+1].Procs || x.Method != c.Groups[i+1].Method.String() == (name != "auto") || x.Method == "auto" || x.TotalMsec <= 0 || (x.MovedBytes > 0) != (r.Bytes > 0 && c.Groups[i+1].Method != mam.InPlace) {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

// TestRunOutOfIterations: changes come also when all phases are over.
func TestRunOutOfIterations(t *testing.T) {
	c := small(func(c *Config) { c.Phases = []Phase{{3, c.Phases[0].Stages}} })
	s := runs(t, c).Sam
	n := 0
	for _, g := range s.Groups {
		for _, p := range g.Phases {
			n += len(p.IterMsec)
		}
	}
	if n != 3 || len(s.Resizes) != 2 {
		t.Errorf("%d iterations, %d changes", n, len(s.Resizes))
	}
}

// TestRunRefuses: what cannot be run ends all ranks.
func TestRunRefuses(t *testing.T) {
	bad := errors.New("no such file")
	for want, change := range map[string]func(c *Config){
		bad.Error():               nil,
		"the job has 2 ranks":     func(c *Config) { c.Groups[0].Procs = 3 },
		"elements of 3 bytes":     func(c *Config) { c.Datasize = 3 },
		"does not go with parall": func(c *Config) { c.Groups[1].Spawn = mam.SpawnSingle | mam.SpawnParallel },
	} {
		load := func() (*Config, string, error) {
			if change == nil {
				return nil, "", bad
			}
			return small(change), "", nil
		}
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			err := Run(t.Context(), world, Options{Load: load}, nil)
			if err == nil || world.Rank() == 0 && !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: %v, want %s", world.Rank(), err, want)
			}
		})
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
		of   int
	}{{[]float64{7}, 7, 0}, {[]float64{9, 1, 5}, 5, 2}, {[]float64{0.4, 0.1, 0.3, 0.2}, 0.25, 2}} {
		if v, of := middle(c.in); math.Abs(v-c.want) > 1e-12 || of != c.of {
			t.Errorf("%v: %v of %d", c.in, v, of)
		}
	}
}

// What one rank tells the next ones is looked at before it is used.
func TestTake(t *testing.T) {
	good, err := json.Marshal(&progress{Config: small(func(*Config) {}), Costs: make([][]float64, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if err := new(app).take(good); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "{}", strings.Replace(string(good), `"Group":0`, `"Group":3`, 1), strings.Replace(string(good), `"Phase":0`, `"Phase":-1`, 1), strings.Replace(string(good), `"Costs":[null,null]`, `"Costs":[null]`, 1), strings.Replace(string(good), `"Procs":2`, `"Procs":-2`, 1)} {
		if text == string(good) {
			t.Fatal("nothing was changed")
		}
		if err := new(app).take([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
