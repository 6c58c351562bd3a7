// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gompi/bench"
	"gompi/bench/report"
	"gompi/bench/stages"
	"gompi/mam"
	"gompi/mpi"
)

// Options are those of a run.
type Options struct {
	// Load gives the configuration, and what results call it beside others, on rank 0 of the
	// beginning; the others get it from there.
	Load func() (c *Config, label string, err error)
	// Name is that of the file, Repetition which run it is.
	Name       string
	Repetition int
	// Transport is the name that results carry; "": its own.
	Transport string
	// Dir is where stages have their files; "": the directory for temporary ones.
	Dir string
}

// progress is how far the application is, the same on all ranks that go on: who hands over
// to a group tells it.
type progress struct {
	Config       *Config
	Label        string
	Group        int
	Phase, Iter  int   // of the next iteration
	Ahead        int   // iterations of this group that the one before has done
	Began, Asked int64 // of the application and of the change, Unix time in nanoseconds
	Wasted       int64 // nanoseconds of calibrations
	InPlace      bool  // the data lies in memory of the hosts
	Costs        [][]float64
	Groups       []report.SamGroup
	Resizes      []report.SamResize
}

// app is a rank of the application.
type app struct {
	o       Options
	at      progress
	m       *mam.Module
	data    []data
	now     []*stages.Emulation // of the phases, on the ranks there are; nil: it is over
	records []record            // of this group
}

// Run is the application, of one configuration without alternatives: what each rank of a
// job calls first, those that come by changes, too. emit is called once, on rank 0 of the
// last group. A rank that leaves gets mam's ErrLeaving, and returns it from the function
// given to mpi.Main. Errors: a configuration that cannot be, a job that has not as many
// ranks as the first group, a change that does not happen, data that is not what it was,
// those of communication.
func Run(ctx context.Context, world *mpi.Comm, o Options, emit func(report.Result) error) (err error) {
	a := &app{o: o}
	role := mam.Source
	if a.m, role, err = mam.Init(ctx, world, mam.Config{}, a.handOver); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close(), a.m.Finalize()) }()
	if role == mam.Source {
		if err := a.begin(world); err != nil {
			return err
		}
	} else {
		if err := a.register(true); err != nil {
			return err
		}
		if err := a.arrived(); err != nil {
			return err
		}
	}
	for {
		done, err := a.group(ctx)
		if err != nil {
			return err
		}
		if done {
			return a.end(emit)
		}
	}
}

// begin is what the first ranks do.
func (a *app) begin(world *mpi.Comm) error {
	text, err := []byte(nil), error(nil)
	if world.Rank() == 0 {
		c, label, bad := a.o.Load()
		if bad == nil {
			bad = errors.Join(c.Check(), c.CheckGroups())
		}
		if bad == nil && c.Groups[0].Procs != world.Size() {
			bad = fmt.Errorf("sam: the job has %d ranks, and the first group %d", world.Size(), c.Groups[0].Procs)
		}
		if err = bad; err == nil {
			text, err = json.Marshal(&progress{Config: c, Label: label, Costs: make([][]float64, len(c.Phases))})
		}
	}
	// Nothing is what the others get of an error.
	text, berr := mpi.BcastNew(world, text, 0)
	if err == nil && berr == nil && len(text) == 0 {
		err = errors.New("sam: rank 0 has no configuration")
	}
	if err := errors.Join(err, berr); err != nil {
		return err
	}
	if err := a.take(text); err != nil {
		return err
	}
	if err := a.register(false); err != nil {
		return err
	}
	if err := a.open(); err != nil {
		return err
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	a.at.Began, a.at.Wasted = time.Now().UnixNano(), 0
	return nil
}

// take reads what another rank has told.
func (a *app) take(text []byte) error {
	a.at = progress{}
	if err := json.Unmarshal(text, &a.at); err != nil {
		return fmt.Errorf("sam: what the ranks before have told: %w", err)
	}
	c := a.at.Config
	if c == nil || c.Check() != nil || a.at.Group < 0 || a.at.Group >= len(c.Groups) || a.at.Phase < 0 || len(a.at.Costs) != len(c.Phases) {
		return fmt.Errorf("sam: the ranks before are at group %d, phase %d", a.at.Group, a.at.Phase)
	}
	return nil
}

// register makes all data known to the module.
func (a *app) register(came bool) error {
	a.data = dataOf(a.at.Config)
	for _, d := range a.data {
		if err := d.register(a.m, a.at.InPlace, came); err != nil {
			return err
		}
	}
	return nil
}

// suit has the data lie where the method needs it with which the next change is made. What
// that takes does not count. Collective.
func (a *app) suit() error {
	begin := time.Now()
	if inPlace := a.m.Config().Method == mam.InPlace; inPlace != a.at.InPlace {
		for _, d := range a.data {
			if err := d.free(a.m); err != nil {
				return err
			}
		}
		a.at.InPlace = inPlace
		if err := a.register(false); err != nil {
			return err
		}
		if err := a.m.Comm().Barrier(); err != nil {
			return err
		}
	}
	a.at.Wasted += int64(time.Since(begin))
	return nil
}

// open makes the emulations of the ranks that there are, of the phases that are left. What
// that takes does not count.
func (a *app) open() error {
	begin := time.Now()
	if err := a.close(); err != nil {
		return err
	}
	a.now = make([]*stages.Emulation, len(a.at.Config.Phases))
	for i := a.at.Phase; i < len(a.now); i++ {
		e, err := stages.New(a.m.Comm(), a.at.Config.Phases[i].Stages, stages.Options{
			Factor: a.at.Config.Groups[a.at.Group].Factor, Costs: a.at.Costs[i], Dir: a.o.Dir,
		})
		if err != nil {
			return fmt.Errorf("phases[%d]: %w", i, err)
		}
		a.now[i], a.at.Costs[i] = e, e.Costs()
	}
	a.at.Wasted += int64(time.Since(begin))
	return nil
}

func (a *app) close() error {
	var all []error
	for _, e := range a.now {
		if e != nil {
			all = append(all, e.Close())
		}
	}
	a.now = nil
	return errors.Join(all...)
}

// left reports whether there is an iteration to do.
func (a *app) left() bool { return a.at.Phase < len(a.at.Config.Phases) }

// iterate does the next iteration, and notes it. changing: that to the next group was
// asked for.
func (a *app) iterate(changing bool) error {
	c, e := a.at.Config, a.now[a.at.Phase]
	n := len(c.Phases[a.at.Phase].Stages)
	if k := len(a.records); k == 0 || a.records[k-1].phase != a.at.Phase {
		a.records = append(a.records, record{phase: a.at.Phase, stages: n})
	}
	r := &a.records[len(a.records)-1]
	if changing {
		r.overlapped++
		if s := a.m.State(); s == mam.Pending || s == mam.UserPending {
			r.async++
		}
	}
	took := make([]time.Duration, n)
	whole, err := e.Iterate(c.Rigid, took)
	if err != nil {
		return err
	}
	r.rows = append(r.rows, 1e3*whole.Seconds())
	for _, d := range took {
		r.rows = append(r.rows, 1e3*d.Seconds())
	}
	if a.at.Iter++; a.at.Iter == c.Phases[a.at.Phase].Iters {
		a.at.Phase, a.at.Iter = a.at.Phase+1, 0
	}
	return nil
}

// group does the iterations of a group, and changes to the next one; done: it was the
// last.
func (a *app) group(ctx context.Context) (done bool, err error) {
	g := &a.at.Config.Groups[a.at.Group]
	last := a.at.Group == len(a.at.Config.Groups)-1
	for n := a.at.Ahead; a.left() && (last || n < g.Iters); n++ {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err := a.iterate(false); err != nil {
			return false, err
		}
	}
	if last {
		return true, nil
	}
	return false, a.change(ctx)
}

// change asks for the next group, and iterates until it is there: as often as that one
// would, then it waits.
func (a *app) change(ctx context.Context) error {
	next := &a.at.Config.Groups[a.at.Group+1]
	a.at.Ahead = 0
	if err := a.m.SetConfig(a.at.Config.module(next)); err != nil {
		return err
	}
	if err := a.suit(); err != nil {
		return err
	}
	if err := a.m.SetTarget(next.Procs); err != nil {
		return err
	}
	a.at.Asked = time.Now().UnixNano()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		how := mam.Check
		if a.at.Ahead >= next.Iters || !a.left() {
			how = mam.Wait
		}
		state, err := a.m.Checkpoint(how)
		switch {
		case err != nil:
			return err
		case state == mam.Completed:
			return a.arrived()
		case how == mam.Wait:
			return fmt.Errorf("sam: the change from %d to %d ranks did not happen", a.m.Comm().Size(), next.Procs)
		}
		if err := a.iterate(true); err != nil {
			return err
		}
		a.at.Ahead++
	}
}

// handOver is the user phase: the group that ends tells what it has done, and all who go on
// get to know how far the application is.
func (a *app) handOver(u *mam.User) error {
	defer u.Resume()
	var text []byte
	if u.Role != mam.NewRank {
		g, err := capture(a.m.Comm(), a.at.Config.Capture, a.records)
		if err != nil {
			return err
		}
		if g != nil {
			told := a.at
			told.Group++
			told.Groups = append(told.Groups, *g)
			if text, err = json.Marshal(&told); err != nil {
				return err
			}
		}
	}
	text, err := mpi.BcastNew(u.Comm, text, 0)
	if err != nil {
		return err
	}
	return a.take(text)
}

// arrived is what a rank of a new group begins with.
func (a *app) arrived() error {
	now := time.Now().UnixNano()
	if err := a.measured(now); err != nil {
		return err
	}
	begin := time.Now()
	for _, d := range a.data {
		if err := d.check(a.m); err != nil {
			return err
		}
	}
	a.at.Wasted += int64(time.Since(begin))
	a.records = nil
	return a.open()
}

// end tells of the whole.
func (a *app) end(emit func(report.Result) error) error {
	comm := a.m.Comm()
	if err := comm.Barrier(); err != nil {
		return err
	}
	total := time.Now().UnixNano() - a.at.Began - a.at.Wasted
	g, err := capture(comm, a.at.Config.Capture, a.records)
	if err != nil || g == nil {
		return err
	}
	c := a.at.Config
	r := report.Result{Bench: "sam", Transport: a.o.Transport, Ranks: c.Groups[0].Procs, Bytes: c.SDR + c.ADR}
	if r.Transport == "" {
		r.Transport = bench.Carrier(comm)
	}
	r.SetTimes([]float64{float64(total) / 1e3})
	r.MBps = 0 // the bytes are those of each change
	r.Sam = &report.Sam{
		Config: a.o.Name, Variant: a.at.Label, Key: c.Key(), Repetition: a.o.Repetition, TotalMsec: float64(total) / 1e6,
		Groups: append(a.at.Groups, *g), Resizes: a.at.Resizes,
	}
	for _, p := range c.Phases {
		var kinds []string
		for _, s := range p.Stages {
			kinds = append(kinds, s.Kind.String())
		}
		r.Sam.Stages = append(r.Sam.Stages, kinds)
	}
	r.Sam.Shorten()
	return emit(r)
}
