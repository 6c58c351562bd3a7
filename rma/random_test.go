// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// randomWays are the ways in which a program is run.
var randomWays = []struct {
	transport string
	knobs     []string
	apart     bool // not all ranks are on one host
	awkward   bool
	later     bool // by devices
}{
	{transport: "inproc"},
	{transport: "shm"},
	{transport: "shm", knobs: []string{"GOMPI_CMA=off"}},
	{transport: "tcp", apart: true},
	{transport: "shm", knobs: []string{"GOMPI_HOSTS_PRETEND=2"}, apart: true},
	{transport: "shm", awkward: true},
	{transport: "inproc", apart: true, later: true},
}

// on is a program as it can be run there.
func (p *program) on(apart bool) *program {
	if !apart || p.flavor != "shared" {
		return p
	}
	q := *p
	q.flavor = "allocate"
	return &q
}

// fails runs a program once and returns what is wrong, "" if nothing.
func (p *program) fails(t *testing.T, way int) string {
	v := &randomWays[way]
	opts := []mpitest.Option{mpitest.Transport(v.transport), mpitest.Within(time.Minute)}
	for _, kv := range v.knobs {
		name, value, _ := strings.Cut(kv, "=")
		opts = append(opts, mpitest.Setting(name, value))
	}
	if v.awkward {
		opts = append(opts, under(awkward))
	}
	if v.later {
		opts = append(opts, later())
	}
	p = p.on(v.apart)
	want, err := foretell(p)
	if err != nil {
		return err.Error()
	}
	failed, log := testlab.Try(t, func(tb testing.TB) {
		mpitest.Run(tb, p.ranks, func(t *mpitest.T, w *mpi.Comm) {
			if err := play(p, want, w); err != nil {
				t.Fatal(err)
			}
		}, opts...)
	})
	if !failed {
		return ""
	}
	return fmt.Sprintf("over %s %v:\n%s", v.transport, v.knobs, log)
}

// shrink leaves out phases and calls as long as a program fails.
func (p *program) shrink(t *testing.T, way int, why string) (*program, string) {
	end := time.Now().Add(time.Minute)
	try := func(q *program) bool {
		for range 3 {
			if time.Now().After(end) {
				return false
			}
			if w := q.fails(t, way); w != "" {
				p, why = q, w
				return true
			}
		}
		return false
	}
	for i := 0; i < len(p.phases); {
		q := *p
		q.phases = append(append([]phase{}, p.phases[:i]...), p.phases[i+1:]...)
		if len(q.phases) == 0 || !try(&q) {
			i++
		}
	}
	for i := range p.phases {
		for size := (len(p.phases[i].calls) + 1) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(p.phases[i].calls); {
				q := *p
				q.phases = append([]phase{}, p.phases...)
				c := p.phases[i].calls
				q.phases[i].calls = append(append([]access{}, c[:at]...), c[at+size:]...)
				if !try(&q) {
					at += size
				}
			}
		}
	}
	return p, why
}

const seedEnv = "GOMPI_SEED"

// seedsOf are the programs that the environment wants, or count from first on.
func seedsOf(t *testing.T, first, count uint64) (uint64, uint64) {
	if s := os.Getenv(seedEnv); s != "" {
		if _, err := fmt.Sscanf(s+"+1", "%d+%d", &first, &count); err != nil {
			t.Fatalf("%s=%s: %v", seedEnv, s, err)
		}
	}
	return first, count
}

// TestRandomOneSided runs random programs of one-sided accesses in all ways, and
// compares what is read and what memory is then with what one process would
// have made of it. GOMPI_SEED=n runs program n alone, n+k the k programs from n
// on; GOMPI_TEST=long runs 20,000.
func TestRandomOneSided(t *testing.T) {
	count, limit := uint64(2000), 3*time.Second
	if testlab.Long() {
		count, limit = 20_000, time.Hour
	}
	first, count := seedsOf(t, 1, count)
	const least, workers = 10, 4
	end := time.Now().Add(limit)
	var next, ran atomic.Uint64
	var broken atomic.Bool
	next.Store(first)
	var one sync.Once
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for !broken.Load() && (time.Now().Before(end) || ran.Load() < least) {
				seed := next.Add(1) - 1
				if seed >= first+count {
					return
				}
				p := generate(seed, 0)
				for way := range randomWays {
					what := p.fails(t, way)
					if what == "" {
						continue
					}
					broken.Store(true)
					one.Do(func() {
						t.Errorf("program %d fails %s\nrepeat with %s=%d go test ./rma -run TestRandomOneSided", seed, what, seedEnv, seed)
						small, why := p.shrink(t, way, what)
						t.Errorf("this part of it fails as well:\n%v%s", small, why)
					})
					return
				}
				ran.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d programs", ran.Load())
}

// programsRank plays programs one after the other in a real process: arg is
// n+k, with a "/" before it if the ranks are not all on one host.
func programsRank(w *mpi.Comm, arg string) error {
	arg, apart := strings.CutPrefix(arg, "/")
	var first, count uint64
	if _, err := fmt.Sscanf(arg, "%d+%d", &first, &count); err != nil {
		return err
	}
	for seed := first; seed < first+count; seed++ {
		p := generate(seed, w.Size()).on(apart)
		want, err := foretell(p)
		if err == nil {
			err = play(p, want, w)
		}
		if err != nil {
			return fmt.Errorf("program %d of %d ranks: %w", seed, w.Size(), err)
		}
	}
	return nil
}

// TestRandomOneSidedProcesses is TestRandomOneSided in real processes, several
// programs in each job.
func TestRandomOneSidedProcesses(t *testing.T) {
	ofProcesses(t)
	jobs, each := testlab.Rounds(2, 60), uint64(testlab.Rounds(10, 100))
	first, each := seedsOf(t, 1<<40, each)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ranks := [...]int{4, 3, 8, 2, 5, 1}
	for k := range jobs {
		for _, v := range randomWays[1:] {
			if v.later {
				continue // of one program only
			}
			n := ranks[k%len(ranks)]
			arg := fmt.Sprintf("%d+%d", first+uint64(k)*each, each)
			if v.apart {
				arg = "/" + arg
			}
			r := mpitest.Exec(t, n, []string{self, "rank", "programs", arg},
				mpitest.Flags("--transport", v.transport), mpitest.Env(v.knobs...), mpitest.Timeout(2*time.Minute))
			if r.Status != 0 {
				t.Fatalf("%d ranks over %s %v: status %d\n%s%s\nrepeat with %s=%s go test ./rma -run TestRandomOneSidedProcesses",
					n, v.transport, v.knobs, r.Status, r.Stdout, r.Stderr, seedEnv, strings.TrimPrefix(arg, "/"))
			}
		}
	}
}
