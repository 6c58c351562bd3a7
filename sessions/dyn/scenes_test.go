// SPDX-License-Identifier: Apache-2.0

package dyn_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/dyn"
)

const mainSet = "gompi://main"

var programs = []scenes.Scene{
	{Name: "loop", Ranks: 2, Run: func(ctx context.Context, world *mpi.Comm) error { return (&loop{}).run(ctx, world) }},
	{Name: "loop-nonblocking", Ranks: 2, Run: func(ctx context.Context, world *mpi.Comm) error { return (&loop{nonblocking: true}).run(ctx, world) }},
	{Name: "loop-without-waiting", Ranks: 2, Run: func(ctx context.Context, world *mpi.Comm) error {
		return (&loop{info: mpi.NewInfo("wait", "false")}).run(ctx, world)
	}},
	{Name: "main", Ranks: 2, Run: mainFollows},
	{Name: "kinds", Ranks: 4, Run: kinds},
	{Name: "names", Ranks: 3, Run: names},
	{Name: "taken-back", Ranks: 2, Run: takenBack},
	{Name: "declined", Ranks: 2, Run: declined, Declines: true},
	{Name: "early", Ranks: 3, Run: early},
	{Name: "given-up", Ranks: 2, Run: givenUp},
}

// loop is the program of the paper: the first process receives, makes the new set and
// tells the others; all integrate, and make a communicator of it.
type loop struct {
	nonblocking bool
	info        *mpi.Info // of Integrate

	d     *dyn.Session
	comm  *mpi.Comm
	i     int
	sizes []int
	asked []*dyn.Requested
}

// news is what the first process tells the others.
type news struct {
	Type  dyn.Type
	Delta string
}

// told is what the first process says to all.
func told(comm *mpi.Comm, text string) (string, error) {
	b, err := mpi.BcastNew(comm, []byte(text), 0)
	return string(b), err
}

func (n news) told(comm *mpi.Comm) (news, error) {
	text, err := told(comm, string(rune(n.Type))+n.Delta)
	if err != nil {
		return n, err
	}
	return news{dyn.Type(text[0]), text[1:]}, nil
}

// wants are the changes for which the first process asks, in the iterations of these
// numbers, and the sizes that come of them.
var wants = []struct {
	t       dyn.Type
	n, size int
}{{dyn.Add, 2, 4}, {dyn.Sub, 1, 3}, {dyn.Add, 1, 4}, {dyn.Sub, 2, 2}}

func (l *loop) run(ctx context.Context, _ *mpi.Comm) (err error) {
	if l.d, err = dyn.Open(ctx, mainSet); err != nil {
		return err
	}
	defer l.d.Close()
	mine, err := l.receive("mpi://self")
	if err != nil {
		return err
	}
	name := mainSet
	if mine.Type != dyn.None { // a process that was started for a change
		if mine.Type != dyn.Add || !mine.Included {
			return fmt.Errorf("a newcomer receives %+v", mine)
		}
		name = ""
		if _, err := l.integrate(ctx, mine.Delta, false, &name); err != nil {
			return err
		}
	}
	for changes := 0; ; changes++ {
		if err := l.renew(ctx, name); err != nil {
			return err
		}
		if mine.Type != dyn.None || changes > 0 {
			if l.i, err = mpi.BcastOne(l.comm, l.i, 0); err != nil {
				return err
			}
			if changes, err = mpi.BcastOne(l.comm, changes, 0); err != nil {
				return err
			}
			mine = dyn.Change{}
		}
		if changes > 0 && l.comm.Size() != wants[changes-1].size {
			return fmt.Errorf("after %d changes %d ranks", changes, l.comm.Size())
		}
		if changes == len(wants) {
			return l.over(ctx)
		}
		n, err := l.until(ctx, changes)
		if err != nil {
			return err
		}
		name = ""
		if l.comm.Rank() == 0 {
			if name, err = l.create(n); err != nil {
				return err
			}
		}
		given := name
		terminate, err := l.integrate(ctx, n.Delta, l.comm.Rank() == 0, &name)
		if err != nil {
			return err
		}
		if l.comm.Rank() == 0 && name != given {
			return fmt.Errorf("the provider of %s finds %s", given, name)
		}
		if leaves := n.Type == dyn.Sub && l.comm.Rank() >= l.comm.Size()-wants[changes].n; leaves != terminate {
			return fmt.Errorf("rank %d of %d is to terminate: %v", l.comm.Rank(), l.comm.Size(), terminate)
		}
		if err := l.comm.Disconnect(); err != nil {
			return err
		}
		if terminate {
			return nil
		}
	}
}

// renew makes the communicator of the set.
func (l *loop) renew(ctx context.Context, name string) error {
	g, err := l.d.Sessions().Group(name)
	if err != nil {
		return err
	}
	l.comm, err = mpi.CommFromGroup(g.WithContext(ctx), "loop")
	return err
}

// until iterates until there is a change, for which the first process asks.
func (l *loop) until(ctx context.Context, changes int) (n news, err error) {
	for asked := false; ; l.i++ {
		if l.comm.Rank() == 0 {
			if !asked {
				asked = true
				if err := l.ask(ctx, changes); err != nil {
					return n, err
				}
			}
			c, err := l.receive(mainSet)
			if err != nil {
				return n, err
			}
			if c.Included {
				return n, fmt.Errorf("the first process is in the delta of %+v", c)
			}
			n = news{c.Type, c.Delta}
		}
		if n, err = n.told(l.comm); err != nil || n.Type != dyn.None {
			return n, err
		}
	}
}

func (l *loop) ask(ctx context.Context, changes int) error {
	w := wants[changes]
	var r *dyn.Requested
	var err error
	if l.nonblocking {
		x, req := l.d.IRequest(ctx, w.t, mainSet, w.n, "")
		if _, err = req.Wait(); err == nil {
			r = *x
		}
	} else {
		r, err = l.d.Request(ctx, w.t, mainSet, w.n, fmt.Sprint("delta", changes))
		if err == nil && r.Delta != fmt.Sprint("app://delta", changes) {
			err = fmt.Errorf("the delta is %s", r.Delta)
		}
	}
	if err != nil {
		return err
	}
	// With several hosts it is accepted as soon as it can be received.
	if s := r.Status(); s != dyn.Announced && s != dyn.ConfirmationPending {
		return fmt.Errorf("a change that nobody has integrated is %v", s)
	}
	l.asked = append(l.asked, r)
	return nil
}

func (l *loop) receive(set string) (dyn.Change, error) {
	if !l.nonblocking {
		return l.d.Receive(set)
	}
	c, r := l.d.IReceive(set)
	_, err := r.Wait()
	return *c, err
}

func (l *loop) create(n news) (string, error) {
	op := dyn.Union
	if n.Type == dyn.Sub {
		op = dyn.Difference
	}
	if !l.nonblocking {
		return l.d.CreateOp(op, mainSet, n.Delta, mpi.NewInfo(dyn.PrefName, fmt.Sprint("set", len(l.asked))))
	}
	name, r := l.d.ICreateOp(op, mainSet, n.Delta, nil)
	_, err := r.Wait()
	return *name, err
}

func (l *loop) integrate(ctx context.Context, delta string, provider bool, name *string) (bool, error) {
	if !l.nonblocking {
		return l.d.Integrate(ctx, delta, provider, name, l.info)
	}
	terminate, r := l.d.IIntegrate(ctx, delta, provider, name, l.info)
	_, err := r.Wait()
	return *terminate, err
}

// over checks what came of the changes.
func (l *loop) over(ctx context.Context) error {
	if err := l.comm.Barrier(); err != nil {
		return err
	}
	for _, r := range l.asked {
		x, err := r.Operation().Wait(ctx)
		if s := r.Status(); err != nil || s != dyn.Finalized {
			return fmt.Errorf("%s is %v, %+v: %w", r.Delta, s, x, err)
		}
		r.Free()
	}
	return nil
}

// mainFollows: with a plain change the name that is provided becomes the main set, if
// the associated set was; and who is not the provider may look it up or not.
func mainFollows(ctx context.Context, world *mpi.Comm) error {
	d, err := dyn.Open(ctx, mainSet)
	if err != nil {
		return err
	}
	defer d.Close()
	s := d.Sessions()
	c, err := d.Receive("mpi://self")
	if err != nil {
		return err
	}
	name, err := "", error(nil)
	if c.Type == dyn.None {
		if err := world.Barrier(); err != nil {
			return err
		}
		if world.Rank() == 0 {
			r, err := d.Request(ctx, dyn.Add, mainSet, 1, "")
			if err != nil {
				return err
			}
			defer r.Free()
		}
		for world.Rank() == 0 && c.Type == dyn.None {
			if c, err = d.Receive(mainSet); err != nil {
				return err
			}
		}
		if c.Delta, err = told(world, c.Delta); err != nil {
			return err
		}
		if world.Rank() == 0 {
			if name, err = d.CreateOp(dyn.Union, c.Delta, mainSet, nil); err != nil { // newcomers first
				return err
			}
		}
	}
	if c.Type == dyn.None { // rank 1
		_, err = d.Integrate(ctx, c.Delta, false, nil, nil)
	} else {
		_, err = d.Integrate(ctx, c.Delta, name != "", &name, nil)
	}
	if err != nil {
		return err
	}
	main, err := s.Main()
	if err != nil {
		return err
	}
	if name != "" && name != main {
		return fmt.Errorf("the main set is %s, provided was %s", main, name)
	}
	comm, err := s.Comm(mainSet)
	if err != nil {
		return err
	}
	if want := []int{1, 2, 0}[world.Rank()]; comm.Size() != 3 || c.Included != (comm.Rank() == 0) || !c.Included && comm.Rank() != want {
		return fmt.Errorf("rank %d of %d, which was rank %d of %d", comm.Rank(), comm.Size(), world.Rank(), world.Size())
	}
	if c, err := d.Receive(mainSet); err != nil || c.Type != dyn.None {
		return fmt.Errorf("received %+v: %w", c, err)
	}
	return comm.Barrier()
}

// kinds: changes that have a Result are received and integrated like others, with or
// without a name.
func kinds(ctx context.Context, world *mpi.Comm) error {
	d, err := dyn.Open(ctx, mainSet)
	if err != nil {
		return err
	}
	defer d.Close()
	steps := []struct {
		ask  sessions.Request
		t    dyn.Type
		sets int
		size int
	}{
		{sessions.Request{Kind: sessions.Grow, Add: []int{1}}, dyn.Add, 1, 5},
		{sessions.Request{Kind: sessions.Replace, Add: []int{2}, Sub: 1}, dyn.Both, 2, 6},
		{sessions.Request{Kind: sessions.Shrink, Sub: 2}, dyn.Sub, 1, 4},
	}
	comm, at := world, 0
	c, err := d.Receive("mpi://self")
	if err != nil {
		return err
	}
	if c.Type != dyn.None {
		if _, err := d.Integrate(ctx, c.Delta, false, nil, nil); err != nil {
			return err
		}
		if c, err := d.Receive("mpi://self"); err != nil || c.Type != dyn.None && c.Type != dyn.Sub { // the last one may be there
			return fmt.Errorf("a newcomer that has integrated receives %+v: %w", c, err)
		}
		if comm, err = d.Sessions().Comm(mainSet); err != nil {
			return err
		}
		if at, err = mpi.BcastOne(comm, 0, 0); err != nil {
			return err
		}
	}
	for ; at < len(steps); at++ {
		step := steps[at]
		var n news
		if comm.Rank() == 0 {
			step.ask.In = []string{mainSet}
			op, err := sessions.Submit(ctx, step.ask)
			if err != nil {
				return err
			}
			defer op.Free()
			var c dyn.Change
			for c.Type == dyn.None {
				if c, err = d.Receive(mainSet); err != nil {
					return err
				}
			}
			if c.Type != step.t || len(c.Sets) != step.sets || c.Included {
				return fmt.Errorf("step %d: received %+v", at, c)
			}
			n = news{c.Type, c.Sets[at%len(c.Sets)]} // each of them names the change
		}
		if n, err = n.told(comm); err != nil {
			return err
		}
		mine, err := d.Receive("mpi://self")
		if err != nil {
			return err
		}
		terminate, err := d.Integrate(ctx, n.Delta, false, nil, nil)
		if err != nil {
			return err
		}
		if terminate != (mine.Type == dyn.Sub) || terminate != mine.Included {
			return fmt.Errorf("step %d: who is to terminate (%v) had received %+v", at, terminate, mine)
		}
		if terminate {
			return nil
		}
		if comm, err = d.Sessions().Comm(mainSet); err != nil {
			return err
		}
		if comm.Size() != step.size {
			return fmt.Errorf("step %d: %d ranks", at, comm.Size())
		}
		if _, err := mpi.BcastOne(comm, at+1, 0); err != nil {
			return err
		}
	}
	return comm.Barrier()
}

// names: two providers, none, and one of a set that is not there, are errors of all who
// have a name to give or to look for, of nobody else, and the change holds.
func names(ctx context.Context, world *mpi.Comm) error {
	d, err := dyn.Open(ctx, "mpi://WORLD")
	if err != nil {
		return err
	}
	defer d.Close()
	if c, err := d.Receive("mpi://self"); err != nil {
		return err
	} else if c.Type != dyn.None {
		if _, err := d.Integrate(ctx, c.Delta, false, nil, nil); err != nil {
			return err
		}
		// It is in none of the sets that are named, though it has one of the name mpi://WORLD.
		if _, err := d.Receive("mpi://WORLD"); !errors.Is(err, mpi.ErrNoWatch) {
			return fmt.Errorf("a newcomer received of its own world: %w", err)
		}
		return nil
	}
	if _, err := d.Receive("mpi://SELF"); !errors.Is(err, mpi.ErrNoWatch) {
		return fmt.Errorf("received of a set that is not followed: %w", err)
	}
	if _, err := d.Integrate(ctx, "mpi://WORLD", true, nil, nil); !errors.Is(err, mpi.ErrArg) {
		return fmt.Errorf("a provider without a name: %w", err)
	}
	if _, err := d.Integrate(ctx, "mpi://WORLD", false, nil, nil); !errors.Is(err, mpi.ErrArg) {
		return fmt.Errorf("integrated a set that is no delta: %w", err)
	}
	for _, step := range []struct {
		provider [3]bool
		name     [3]string
		want     [3]error
	}{
		{[3]bool{true, true, false}, [3]string{"mpi://WORLD", "gompi://main", "?"}, [3]error{dyn.ErrProviders, dyn.ErrProviders, dyn.ErrProviders}},
		{[3]bool{false, false, false}, [3]string{"?", "", ""}, [3]error{dyn.ErrNoProvider, nil, nil}},
		{[3]bool{false, true, false}, [3]string{"?", "app://nothing", ""}, [3]error{dyn.ErrNoProvider, dyn.ErrNoProvider, nil}},
		{[3]bool{false, false, true}, [3]string{"?", "", "gompi://main"}, [3]error{}},
		{[3]bool{false, true, false}, [3]string{"?", "mpi://WORLD", ""}, [3]error{}},
	} {
		var c dyn.Change
		if world.Rank() == 0 {
			r, err := d.Request(ctx, dyn.Add, "mpi://WORLD", 1, "")
			if err != nil {
				return err
			}
			defer r.Free()
			for c.Type == dyn.None {
				if c, err = d.Receive("mpi://WORLD"); err != nil {
					return err
				}
			}
		}
		if c.Delta, err = told(world, c.Delta); err != nil {
			return err
		}
		var name *string
		if text := step.name[world.Rank()]; text != "" {
			name = &text
		}
		_, err := d.Integrate(ctx, c.Delta, step.provider[world.Rank()], name, nil)
		if want := step.want[world.Rank()]; !errors.Is(err, want) || want != nil && !errors.Is(err, mpi.ErrArg) {
			return fmt.Errorf("rank %d, %+v: %w", world.Rank(), step, err)
		}
		if world.Rank() == 0 && step.want == [3]error{} && *name != step.name[1]+step.name[2] {
			return fmt.Errorf("%+v: looked up %q", step, *name)
		}
	}
	return world.Barrier()
}

// openMain opens a session over the main set. A process that a change has started integrates
// that change, closes the session, and has joined: its part of the scene is over.
func openMain(ctx context.Context) (d *dyn.Session, joined bool, err error) {
	if d, err = dyn.Open(ctx, mainSet); err != nil {
		return nil, false, err
	}
	c, err := d.Receive("mpi://self")
	if err == nil && c.Type == dyn.None {
		return d, false, nil
	}
	if err == nil {
		_, err = d.Integrate(ctx, c.Delta, false, nil, nil)
	}
	d.Close()
	return nil, true, err
}

// takenBack: a change that was received may be rolled back before a process integrates it.
// Integrate then reports that, and the next Receive gives another change.
func takenBack(ctx context.Context, world *mpi.Comm) error {
	d, joined, err := openMain(ctx)
	if err != nil || joined {
		return err
	}
	defer d.Close()
	receive := func() (string, *dyn.Requested, error) {
		var c dyn.Change
		r, err := d.Request(ctx, dyn.Add, mainSet, 1, "")
		for err == nil && c.Type == dyn.None {
			c, err = d.Receive(mainSet)
		}
		return c.Delta, r, err
	}
	for _, next := range []bool{false, true} { // there is another change by then
		var delta, other string
		if world.Rank() == 0 {
			var r, q *dyn.Requested
			if delta, r, err = receive(); err != nil {
				return err
			}
			defer r.Free()
			// With several hosts it was accepted when it was shown.
			switch err := r.Operation().Cancel(ctx); {
			case errors.Is(err, mpi.ErrTooLate):
				next, other = false, delta
			case err != nil:
				return err
			case r.Status() != dyn.Invalid:
				return fmt.Errorf("what was taken back is %v", r.Status())
			case next:
				if other, q, err = receive(); err != nil {
					return err
				}
				defer q.Free()
			}
		}
		if delta, err = told(world, delta); err != nil {
			return err
		}
		if other, err = told(world, other); err != nil {
			return err
		}
		if other != delta {
			if _, err := d.Integrate(ctx, delta, false, nil, nil); !errors.Is(err, mpi.ErrRolledBack) {
				return fmt.Errorf("integrated what was taken back: %w", err)
			}
		}
		if other != "" {
			if _, err := d.Integrate(ctx, other, false, nil, nil); err != nil {
				return err
			}
		}
	}
	return world.Barrier()
}
