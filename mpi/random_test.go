// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// setting is one way in which a random program is run: what changes how
// messages travel must not change what arrives.
type setting struct {
	transport string
	knobs     []string // NAME=VALUE
	faulty    bool
}

// String is the transport, with "awkward" if it is, and the knobs.
func (s setting) String() string {
	n := s.transport
	if s.faulty {
		n += "-awkward"
	}
	return strings.Join(append([]string{n}, s.knobs...), " ")
}

func (s setting) options() []mpitest.Option {
	opts := []mpitest.Option{mpitest.Transport(s.transport), mpitest.Within(time.Minute)}
	for _, kv := range s.knobs {
		name, value, _ := strings.Cut(kv, "=")
		opts = append(opts, mpitest.Setting(name, value))
	}
	if s.faulty {
		opts = append(opts, awkward)
	}
	return opts
}

// forced forces an algorithm for each collective, one time in two.
func forced(dice uint64) []string {
	if dice%2 == 0 {
		return nil
	}
	rnd := rand.New(rand.NewPCG(dice, 1))
	names := map[collectives.Op][]string{}
	for _, g := range append(selection.All(), collectives.Shared()...) {
		names[g.Op] = append(names[g.Op], g.Name)
	}
	var force []string
	for _, op := range slices.Sorted(maps.Keys(names)) {
		force = append(force, fmt.Sprintf("%v=%s", op, names[op][rnd.IntN(len(names[op]))]))
	}
	return []string{"GOMPI_COLL=" + strings.Join(force, ",")}
}

// settingsOf chooses how a program is run: once over each transport, with
// knobs that follow from its seed.
func settingsOf(seed uint64) []setting {
	x := testlab.Sum(strconv.AppendUint(nil, seed, 10))
	pick := func(options ...string) []string {
		s := options[x%uint64(len(options))]
		x /= uint64(len(options))
		return strings.Fields(s)
	}
	var out []setting
	for _, tr := range transports {
		s := setting{transport: tr}
		s.knobs = append(s.knobs, pick("", "GOMPI_EAGER=-1", "GOMPI_EAGER=64", "GOMPI_EAGER=4096")...)
		s.knobs = append(s.knobs, pick("", "", "GOMPI_CREDIT=4096", "GOMPI_CREDIT=65536")...)
		s.knobs = append(s.knobs, pick("", "", "GOMPI_CHECK=1")...)
		s.knobs = append(s.knobs, pick("", "", "GOMPI_HOSTS_PRETEND=2", "GOMPI_HOSTS_PRETEND=3")...)
		s.knobs = append(s.knobs, forced(x)...)
		switch tr {
		case "shm":
			s.knobs = append(s.knobs, pick("", "GOMPI_CMA=off", "GOMPI_RING=256", "GOMPI_RING=1024 GOMPI_CMA=off")...)
			s.faulty = x%4 == 1
			x /= 4
			s.knobs = append(s.knobs, pick("", "GOMPI_DUPLEX=off")...)
		case "inproc":
			s.faulty = x%2 == 1
		}
		out = append(out, s)
	}
	return out
}

// tryProgram runs a program once and returns what is wrong, "" if nothing.
func tryProgram(t *testing.T, p *testlab.Program, s setting) string {
	failed, log := testlab.Try(t, func(tb testing.TB) {
		mpitest.Run(tb, p.Ranks, func(t *mpitest.T, w *mpi.Comm) {
			got, err := play(p, w)
			if err == nil {
				err = testlab.Check(p, w.Rank(), got)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, s.options()...)
	})
	if !failed {
		return ""
	}
	return "with " + s.String() + ":\n" + log
}

const (
	// reduceBudget bounds the runs for finding a smaller program.
	reduceBudget = 300
	// reduceTries is how often a smaller program is run before it counts as
	// good.
	reduceTries = 3
	// reduceTime bounds the search: one that hangs costs its deadline.
	reduceTime = 2 * time.Minute
)

// report says how a program failed, how to repeat that, and which part of it
// suffices.
func report(t *testing.T, p *testlab.Program, s setting, what string) {
	t.Errorf("program %d fails %s\nrepeat with GOMPI_SEED=%d go test ./mpi -run TestRandomPrograms", p.Seed, what, p.Seed)
	end := time.Now().Add(reduceTime)
	why := what
	small := testlab.Shrink(p, reduceBudget, func(q *testlab.Program) bool {
		for range reduceTries {
			if time.Now().After(end) {
				return false
			}
			if w := tryProgram(t, q, s); w != "" {
				why = w
				return true
			}
		}
		return false
	})
	if len(small.Events) < len(p.Events) {
		t.Errorf("this part of it fails as well:\n%v%s", small, why)
	}
}

// seedEnv says which programs to run: n, or the k programs from n on by n+k.
const seedEnv = "GOMPI_SEED"

func parseSeeds(t *testing.T, s string) (first, count uint64) {
	if _, err := fmt.Sscanf(s+"+1", "%d+%d", &first, &count); err != nil {
		t.Fatalf("%s=%s: %v", seedEnv, s, err)
	}
	return first, count
}

// randomWorkers is how many programs run at one time: ranks mostly wait for
// one another.
const randomWorkers = 4

// TestRandomPrograms runs random programs over every transport, with all ways
// in which a message can travel, and compares what every rank got with what a
// sequential oracle predicts. GOMPI_SEED=n runs program n alone, n+k
// the k programs from n on; GOMPI_TEST=long runs 10,000.
func TestRandomPrograms(t *testing.T) {
	first, count, limit := uint64(1), uint64(400), 6*time.Second
	if testlab.Long() {
		count, limit = 10000, time.Hour
	}
	if s := os.Getenv(seedEnv); s != "" {
		first, count = parseSeeds(t, s)
	}
	const least = 10 // however slow the machine is
	end := time.Now().Add(limit)
	var next, ran, broken atomic.Uint64
	next.Store(first)
	var reportOne sync.Once
	times := map[string]*testlab.Spread{}
	for _, tr := range transports {
		times[tr] = new(testlab.Spread)
	}
	var wg sync.WaitGroup
	for range randomWorkers {
		wg.Go(func() {
			for broken.Load() == 0 && (time.Now().Before(end) || ran.Load() < least) {
				seed := next.Add(1) - 1
				if seed >= first+count {
					return
				}
				p := testlab.Generate(seed)
				for _, s := range settingsOf(seed) {
					began := time.Now()
					what := tryProgram(t, p, s)
					times[s.transport].Add(time.Since(began))
					if what != "" {
						broken.Add(1)
						reportOne.Do(func() { report(t, p, s, what) })
						return
					}
				}
				if n := ran.Add(1); n%1000 == 0 {
					t.Logf("%d programs", n)
				}
			}
		})
	}
	wg.Wait()
	for _, tr := range transports {
		t.Logf("%s: %v", tr, times[tr])
	}
}
