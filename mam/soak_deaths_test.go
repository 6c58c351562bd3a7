// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/scenes"
	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// deathEnv is the number of the plan that the processes of a job follow.
const deathEnv = "MAM_TEST_DEATH"

// deathPlan is a job of four ranks that changes its size, in which one process dies.
type deathPlan struct {
	config mam.Config
	to     int
	victim int // its rank; from 4 on the newcomer that would have it
	when   moment
	after  time.Duration // from that moment
}

// planOf is a plan by its number, the same in all processes of a job.
func planOf(number uint64) (p deathPlan) {
	rnd := rand.New(rand.NewPCG(number, 14))
	p.config.Method = []mam.Method{mam.COL, mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull, mam.InPlace}[rnd.IntN(6)]
	strategies := []mam.Strategy{mam.Blocking, mam.Thread, mam.WaitDrains}
	if p.config.Method == mam.COL || p.config.Method == mam.P2P {
		strategies = append(strategies, mam.NonBlocking)
	}
	p.config.Strategy = strategies[rnd.IntN(len(strategies))]
	p.to = []int{2, 3, 5, 6}[rnd.IntN(4)]
	p.victim = rnd.IntN(4)
	if p.to > 4 && rnd.IntN(2) == 0 {
		p.victim = 4 + rnd.IntN(p.to-4)
	}
	p.when = moment(rnd.IntN(int(moments)))
	if p.when == asked {
		p.victim = max(p.victim, 1) // only rank 0 asks again
	}
	p.after = time.Duration(rnd.IntN(3000)) * time.Microsecond
	return p
}

func (p *deathPlan) String() string {
	when := []string{"is coming", "is in the user phase", "is committed", "is asked for"}[p.when]
	return fmt.Sprintf("%v %v from 4 to %d: rank %d dies %v after the change %s", p.config.Method, p.config.Strategy, p.to, p.victim, p.after, when)
}

// run is the program of the plan's job.
func (p *deathPlan) run(ctx context.Context, world *mpi.Comm) error {
	if p.victim < 4 {
		return bereaved(p.config, p.to, p.victim, p.when, p.after)(ctx, world)
	}
	return p.orphaned(ctx, world)
}

// patience is after how long rank 0 asks for another size, if nothing has come of the first.
const patience = 300 * time.Millisecond

// orphaned: a newcomer dies in the midst of the change by which it comes. If that is decided
// already nothing is missing; else all sources have what they had, and the next change,
// which is larger by one, has everything.
func (p *deathPlan) orphaned(ctx context.Context, world *mpi.Comm) error {
	c, err := sessions.Joined(ctx)
	if err != nil {
		return err
	}
	die := func() {
		time.Sleep(p.after) //archtest:sleep death comes at any time
		scenes.Die(ctx)
	}
	dies := c != nil && c.Newcomers() == p.to-4 && world.Rank() == p.victim-4
	if dies && p.when <= coming {
		go die()
	}
	m, role, err := mam.Init(ctx, world, p.config, func(u *mam.User) error {
		if dies {
			go die()
		}
		u.Resume()
		return nil
	})
	if err != nil {
		return err
	}
	defer m.Finalize()
	d := &mourners{m: m, victim: p.victim, array: p.config.Method == mam.InPlace}
	if err := d.register(); err != nil {
		return err
	}
	asked := time.Now()
	for role == mam.Source {
		target := p.to
		if time.Since(asked) > patience {
			target++
		}
		if err := m.SetTarget(target); err != nil {
			return err
		}
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		state, err := m.Checkpoint(mam.Check)
		if err = errors.Join(err, d.check()); err != nil {
			return err
		}
		if state == mam.Completed {
			break
		}
	}
	return errors.Join(d.check(), m.Finalize())
}

// deathScene is a job of processes by the plan that the environment names.
var deathScene = scenes.Scene{Name: "death", Run: func(ctx context.Context, world *mpi.Comm) error {
	number, err := strconv.ParseUint(os.Getenv(deathEnv), 10, 64)
	if err != nil {
		return err
	}
	p, c := planOf(number), (*sessions.Change)(nil)
	if c, err = sessions.Joined(ctx); err == nil {
		err = p.run(ctx, world)
	}
	if c == nil && (err == nil || errors.Is(err, mpi.ErrLeaving)) {
		fmt.Println("in order:", world.Rank())
	}
	return err
}}

// TestSoakDeaths: jobs of goroutines on one host, of goroutines on several, and of processes,
// in each of which a process is killed in the midst of a change: one that stays, or leaves,
// or comes; when the change is asked for, coming, in the user phase, while it is committed.
// All others come to their end with the data that they should have.
func TestSoakDeaths(t *testing.T) {
	jobs := testlab.Rounds(15, 300)
	first := uint64(time.Now().UnixNano() % 1e9)
	if s := os.Getenv(deathEnv); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, jobs = n, 3 // one in each way
	}
	t.Logf("the first plan is %d; %s=NUMBER repeats one", first, deathEnv)
	for i := range jobs {
		number := first + uint64(i)
		if os.Getenv(deathEnv) != "" {
			number = first
		}
		p := planOf(number)
		way := []string{"inproc", "hosts", "processes"}[i%3]
		t.Run(fmt.Sprintf("%d/%s", number, way), func(t *testing.T) {
			t.Log(&p)
			switch way {
			case "inproc":
				p.goroutines(t, mpitest.Transport("inproc"))
			case "hosts":
				p.goroutines(t, testjob.Hosts(3, 2), mpitest.Transport("shm,tcp"))
			default:
				p.processes(t, number)
			}
		})
	}
}

func (p *deathPlan) goroutines(t *testing.T, opts ...mpitest.Option) {
	s := scenes.Scene{Ranks: 4, Run: p.run}
	s.Goroutines(t, opts)
}

func (p *deathPlan) processes(t *testing.T, number uint64) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(deathEnv, fmt.Sprint(number))
	r := mpitest.Exec(t, 4, []string{self, "rank", deathScene.Name}, mpitest.Flags("--ft"))
	for rank := range 4 {
		if rank != p.victim && !strings.Contains(r.Stdout, fmt.Sprintf("in order: %d\n", rank)) {
			t.Errorf("rank %d has not come to its end: status %d\n%s%s", rank, r.Status, r.Stdout, r.Stderr)
		}
	}
}
