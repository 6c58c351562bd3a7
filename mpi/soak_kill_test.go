// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// The parts in a death: the victim, its partner, and two who have nothing to
// do with either.
const (
	victim = iota
	partner
	bystander
	bystander2
	cast
)

// A scene is what the ranks do when the victim dies. Each function does one
// step, and is called until it fails.
type scene struct {
	name string
	// alone is what the victim does; mate its partner.
	alone, mate func(w *mpi.Comm) error
	// all: the bystanders do what the partner does.
	all bool
}

// exchange is Sendrecv of n elements with a rank.
func exchange(n, with int) func(w *mpi.Comm) error {
	return func(w *mpi.Comm) error {
		_, err := mpi.Sendrecv(w, make([]int64, n), with, 1, make([]int64, n), with, 1)
		return err
	}
}

// exchangeStrided exchanges every third of many elements with a rank.
func exchangeStrided(with int) func(w *mpi.Comm) error {
	const n = 200_000
	return func(w *mpi.Comm) error {
		dt, err := mpi.TypeVector(n, 1, 3, mpi.TypeOf[int64]())
		if err != nil {
			return err
		}
		in := w.Bufs().Irecv(mpi.BufAs(dt, make([]int64, 3*n), 1), with, 1)
		err = w.Bufs().Send(mpi.BufAs(dt, make([]int64, 3*n), 1), with, 1)
		if _, inErr := in.Wait(); err == nil {
			err = inErr
		}
		return err
	}
}

// started starts more calls than there are slots for, and waits for them.
func started(w *mpi.Comm) error {
	const calls = 12
	b := make([]float64, calls)
	var rs []mpi.Request
	for i := range calls {
		rs = append(rs, mpi.Iallreduce(w, b[i:i+1], b[i:i+1], mpi.Sum), w.Ibarrier())
	}
	return mpi.Waitall(rs)
}

func toItself(n int) func(w *mpi.Comm) error { return exchange(n, victim) }

func scenes() []scene {
	sum := func(n int) func(w *mpi.Comm) error {
		return func(w *mpi.Comm) error {
			b := make([]float64, n)
			return mpi.Allreduce(w, b, b, mpi.Sum)
		}
	}
	return []scene{
		{name: "small", alone: exchange(1, partner), mate: exchange(1, victim)},
		{name: "medium", alone: exchange(2000, partner), mate: exchange(2000, victim)},
		{name: "large", alone: exchange(500_000, partner), mate: exchange(500_000, victim)},
		{name: "strided", alone: exchangeStrided(partner), mate: exchangeStrided(victim)},
		{name: "self-recv", alone: toItself(200_000), mate: func(w *mpi.Comm) error {
			_, err := mpi.Recv(w, make([]int64, 1), victim, 1)
			return err
		}},
		{name: "self-any", alone: toItself(1), mate: func(w *mpi.Comm) error {
			_, err := mpi.Recv(w, make([]int64, 1), mpi.AnySource, 1)
			return err
		}},
		{name: "self-ssend", alone: toItself(1), mate: func(w *mpi.Comm) error { return mpi.Ssend(w, make([]int64, 1), victim, 9) }},
		{name: "self-send-large", alone: toItself(200_000), mate: func(w *mpi.Comm) error { return mpi.Send(w, make([]int64, 200_000), victim, 9) }},
		{name: "self-probe", alone: toItself(1), mate: func(w *mpi.Comm) error {
			_, err := w.Probe(victim, 9)
			return err
		}},
		{name: "barrier", all: true, alone: (*mpi.Comm).Barrier, mate: (*mpi.Comm).Barrier},
		{name: "allreduce", all: true, alone: sum(1), mate: sum(1)},
		{name: "started", all: true, alone: started, mate: started},
		{name: "allreduce-large", all: true, alone: sum(100_000), mate: sum(100_000)},
	}
}

// until calls step until it fails; done counts the calls that have begun.
func until(w *mpi.Comm, step func(w *mpi.Comm) error, begun *atomic.Int64) error {
	for {
		begun.Add(1)
		if err := step(w); err != nil {
			return err
		}
	}
}

// talkOn is the bystanders' exchange. It goes on for some rounds after over is
// closed, and must not fail at all.
func talkOn(w *mpi.Comm, over <-chan struct{}) error {
	const after = 20
	mate := bystander + bystander2 - w.Rank()
	b := []int64{0}
	for left := after; left > 0; {
		if w.Rank() == bystander {
			b[0] = 0
			select {
			case <-over:
				b[0] = 1
			default:
			}
		}
		in := []int64{0}
		if _, err := mpi.Sendrecv(w, b, mate, 3, in, mate, 3); err != nil {
			return fmt.Errorf("a bystander fails: %w", err)
		}
		if b[0]+in[0] > 0 {
			left--
		}
	}
	return nil
}

// playDeath plays a scene in which the victim is killed after some steps, and
// adds to late how long after the death those who needed it learnt of it.
func playDeath(t *testing.T, s scene, steps int64, late *testlab.Spread, opts ...mpitest.Option) {
	j := testjob.New(t, opts...)
	procs := boot(t, j, cast)
	var begun atomic.Int64
	var wg, needy sync.WaitGroup
	over := make(chan struct{})
	errs := make([]error, cast)
	when := make([]time.Time, cast)
	for i, p := range procs {
		w := p.World()
		step := s.mate
		switch {
		case i == victim:
			wg.Go(func() { errs[i] = until(w, s.alone, &begun) })
			continue
		case i >= bystander && !s.all:
			wg.Go(func() { errs[i] = talkOn(w, over) })
			continue
		}
		wg.Add(1)
		needy.Go(func() {
			defer wg.Done()
			errs[i] = until(w, step, new(atomic.Int64))
			when[i] = time.Now()
		})
	}
	go func() {
		needy.Wait()
		close(over)
	}()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for begun.Load() < steps {
		<-tick.C
	}
	j.Kill(procs[victim])
	killed := time.Now()
	select {
	case <-done:
	case <-time.After(mpitest.Deadline):
		t.Fatalf("%s: some rank has not learnt of the death:\n%s", s.name, j.RollCall())
	}
	for i, err := range errs {
		switch {
		case i == victim:
			// Finalized, or cut off from its partner before that.
			if err == nil {
				t.Errorf("%s: the dead go on", s.name)
			}
		case i >= bystander && !s.all:
			if err != nil {
				t.Errorf("%s: rank %d: %v", s.name, i, err)
			}
		default:
			if !errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("%s: rank %d: %v, want %v", s.name, i, err, mpi.ErrProcFailed)
			}
			late.Add(max(0, when[i].Sub(killed)))
		}
	}
	// The living go on with one another; what needs the dead fails at once.
	for _, p := range procs[partner:] {
		wg.Go(func() {
			w := p.World()
			if err := mpi.Ssend(w, []int64{1}, victim, 5); !errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("%s: a send to the dead: %v", s.name, err)
			}
			next, prev := 1+w.Rank()%(cast-1), 1+(w.Rank()+cast-3)%(cast-1)
			if _, err := mpi.Sendrecv(w, make([]int64, 20_000), next, 6, make([]int64, 20_000), prev, 6); err != nil {
				t.Errorf("%s: the living among themselves: %v", s.name, err)
			}
			// The transport may tell of an end before the control plane says
			// that it was a death.
			if f := failedWithin(w, deathLimit); len(f) != 1 || f[0] != victim {
				t.Errorf("%s: failed ranks are %v", s.name, f)
			}
			// Before that it could still end well: the dead may have been in it.
			if err := w.Barrier(); !errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("%s: a barrier with the dead: %v", s.name, err)
			}
		})
	}
	wg.Wait()
	for _, p := range procs[partner:] {
		if err := j.Leave(p); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// failedWithin returns the ranks known to have failed, when there are some.
func failedWithin(w *mpi.Comm, d time.Duration) []int {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * d); len(w.Failed()) == 0 && time.Now().Before(end); {
		<-tick.C
	}
	return w.Failed()
}

// TestSoakKill kills a rank in the middle of whatever it does: all that need it
// learn it soon, everybody else goes on, and nothing is left behind. The short
// form has each scene over each transport, and every sixth one with each knob.
func TestSoakKill(t *testing.T) {
	rounds := testlab.Rounds(1, 20)
	for h, tr := range transports {
		for i, knobs := range [][]string{nil, {"GOMPI_EAGER=64"}, {"GOMPI_CMA=off"}, {"GOMPI_HOSTS_PRETEND=2"}} {
			if len(knobs) > 0 && knobs[0] == "GOMPI_CMA=off" && tr != "shm" {
				continue
			}
			s := setting{transport: tr, knobs: knobs}
			t.Run(s.name(), func(t *testing.T) {
				before := testlab.Take()
				rnd := rand.New(rand.NewPCG(2, 3))
				var late testlab.Spread
				t.Run("deaths", func(t *testing.T) {
					for range rounds {
						for k, sc := range scenes() {
							if i > 0 && !testlab.Takes(h+i+k, 6) {
								continue
							}
							playDeath(t, sc, 1+rnd.Int64N(60), &late, s.options()...)
						}
					}
				})
				t.Logf("time from a death to the error: %v", &late)
				checkLate(t, &late)
				testlab.Nothing(t, before, 32<<20)
			})
		}
	}
}

// deathLimit is within what time those who need a dead process must know.
const deathLimit = 100 * time.Millisecond

// checkLate holds the limit for nine of ten: the rest is for other tests that
// use the processors at the same time.
func checkLate(t *testing.T, late *testlab.Spread) {
	t.Helper()
	if d := late.At(0.9); d > deathLimit {
		t.Errorf("a death is known after %v at the 90th percentile, want %v: %v", d, deathLimit, late)
	}
}
