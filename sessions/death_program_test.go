// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"gompi/internal/control/protocol"
	"gompi/mpi"
	"gompi/sessions"
)

// What the test tells the processes of a job that die at random, in their environment.
const (
	diesSeed    = "DIES_SEED"
	diesOptions = "DIES_OPTIONS" // letters: Prepare, Hold, agents die (a), processes die at any time (t)
)

// dying is a process that kills itself somewhere, or not.
type dying struct {
	rng  *rand.Rand
	opts string
}

func newDying() *dying {
	seed, _ := strconv.ParseUint(os.Getenv(diesSeed), 10, 64)
	token, _ := strconv.ParseUint(os.Getenv(protocol.EnvToken)[:16], 16, 64) // no two are alike
	return &dying{rand.New(rand.NewPCG(seed, token)), os.Getenv(diesOptions)}
}

func (d *dying) has(option byte) bool {
	for i := range d.opts {
		if d.opts[i] == option {
			return true
		}
	}
	return false
}

// here ends the process in so many of a thousand cases.
func (d *dying) here(perMille int) {
	if d.rng.IntN(1000) >= perMille {
		return
	}
	if d.has('a') && d.rng.IntN(8) == 0 {
		kill(os.Getppid())
	}
	kill(os.Getpid())
	select {}
}

// kill ends a process as nothing else does.
func kill(pid int) {
	p, err := os.FindProcess(pid)
	if err == nil {
		p.Kill()
	}
}

// diesProgram follows changes and asks for some, in every step of which it may kill
// itself; the others recover and go on. It prints how each change ended that it was
// handed: name of the result, outcome and iteration.
func diesProgram() {
	d := newDying()
	d.here(10)
	if d.has('t') && d.rng.IntN(4) == 0 {
		life := time.Duration(d.rng.IntN(1_000_000)) * time.Microsecond
		time.AfterFunc(life, func() { kill(os.Getpid()) })
	}
	mpi.Main(d.run)
}

// mourned reports whether an error is the death of somebody else.
func mourned(err error) bool {
	return errors.Is(err, mpi.ErrProcFailed) || errors.Is(err, mpi.ErrRevoked) || errors.Is(err, mpi.ErrLeft)
}

// survive makes a communicator of those that live, and returns the iteration of the
// farthest.
func survive(comm *mpi.Comm, i int) (*mpi.Comm, int, error) {
	for {
		dead, err := comm.SyncFailed()
		if err != nil {
			return nil, 0, fmt.Errorf("SyncFailed: %w", err)
		}
		living, err := comm.Group().Excl(dead)
		if err != nil {
			return nil, 0, err
		}
		c, err := mpi.CommFromGroup(living, "survivors")
		if err == nil {
			var most int
			if most, err = mpi.AllreduceOne(c, i, mpi.Max); err == nil {
				return c, most, nil
			}
		}
		if !mourned(err) {
			return nil, 0, fmt.Errorf("recovery: %w", err)
		}
	}
}

// request is one for another size of a set of so many.
func (d *dying) request(size int) sessions.Request {
	r := sessions.Request{In: []string{"gompi://main"}, Deadlines: sessions.Deadlines{Whole: 3 * time.Second}}
	switch k := d.rng.IntN(5); {
	case k == 0 || k == 1 && size < 2:
		r.Kind, r.Add = sessions.Grow, []int{1 + d.rng.IntN(3)}
	case k == 1:
		r.Kind, r.Sub = sessions.Shrink, 1+d.rng.IntN(size-1)
	case k == 2:
		r.Kind, r.Size = sessions.Replace, 1+d.rng.IntN(8)
	case k == 3:
		r.Kind, r.Add, r.Sub = sessions.Replace, []int{1 + d.rng.IntN(2)}, d.rng.IntN(2)
	default:
		r.Kind, r.In = sessions.Multi, nil
		part := sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}}
		r.Parts = []sessions.Request{part, {Kind: sessions.Add, Add: []int{1}}}
	}
	return r
}

// ask submits a change, and sometimes takes it back.
func (d *dying) ask(ctx context.Context, size int) error {
	o, err := sessions.Submit(ctx, d.request(size))
	if refused := (*sessions.RefusedError)(nil); errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("Submit: %w", err)
	}
	if d.rng.IntN(10) == 0 {
		go o.Cancel(ctx)
	}
	go func() {
		o.Wait(ctx)
		o.Free()
	}()
	return nil
}

// layer releases each change that is held, until the watch is closed.
func (d *dying) layer(ctx context.Context, w *sessions.Watcher) {
	for {
		c, err := w.Coming(ctx)
		if err != nil {
			return
		}
		w.Release(c)
	}
}

// commit is that of one of the change's processes.
func (d *dying) commit(ctx context.Context, c *sessions.Change) (*mpi.Comm, error) {
	i, err := c.Iteration(ctx)
	if err != nil {
		return nil, fmt.Errorf("Iteration: %w", err)
	}
	comm, err := c.Commit(ctx)
	switch {
	case err == nil || errors.Is(err, sessions.ErrLeaving):
		fmt.Println("change", c.Result, "committed", i)
	case errors.Is(err, sessions.ErrRolledBack):
		fmt.Println("change", c.Result, "rolledback", i)
	}
	return comm, err
}

const diesSteps = 200

func (d *dying) run(ctx context.Context, comm *mpi.Comm) error {
	i := 0
	c, err := sessions.Joined(ctx)
	if err != nil {
		return fmt.Errorf("Joined: %w", err)
	}
	if c != nil {
		d.here(20)
		if d.has('P') {
			if err := c.Ready(); err != nil {
				return fmt.Errorf("Ready: %w", err)
			}
			d.here(20)
		}
		if comm, err = d.commit(ctx, c); err != nil {
			return err
		}
		if c.Result == "" { // of an Add
			return nil
		}
		i, err = c.Iteration(ctx)
		i++
	}
	if err != nil {
		return err
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Prepare: d.has('P'), Hold: d.has('H')})
	if err != nil {
		return fmt.Errorf("Watch: %w", err)
	}
	if d.has('H') {
		go d.layer(ctx, w)
	}
	for ; i < diesSteps; i++ {
		c, err := w.Check(i)
		if err != nil {
			return fmt.Errorf("Check: %w", err)
		}
		if c != nil {
			d.here(10)
			next, err := d.commit(ctx, c)
			switch {
			case errors.Is(err, sessions.ErrRolledBack): // this iteration goes on
			case errors.Is(err, sessions.ErrLeaving):
				d.here(20)
				return err
			case err != nil:
				return fmt.Errorf("Commit: %w", err)
			default:
				d.here(10)
				comm = next
				continue
			}
		}
		if comm.Rank() == 0 && d.rng.IntN(5) == 0 {
			if err := d.ask(ctx, comm.Size()); err != nil {
				return err
			}
			d.here(20)
		}
		d.here(1)
		if d.rng.IntN(4) == 0 {
			<-time.After(time.Duration(d.rng.IntN(2000)) * time.Microsecond)
		}
		if err := comm.Barrier(); err != nil {
			if !mourned(err) {
				return fmt.Errorf("Barrier: %w", err)
			}
			if comm, i, err = survive(comm, i); err != nil {
				return err
			}
		}
	}
	if comm.Rank() == 0 {
		fmt.Println("size", comm.Size())
	}
	return w.Close()
}
