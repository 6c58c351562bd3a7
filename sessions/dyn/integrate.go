// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// Errors of Integrate. The change holds nevertheless.
var (
	// ErrProviders: more than one process has given a name.
	ErrProviders = errors.New("several processes have provided a name")
	// ErrNoProvider: a process looks for a name, and none has given one.
	ErrNoProvider = errors.New("no process has provided a name")
)

// Keys in the store of the delta.
const (
	keyName   = "gompi.dyn.name"   // what was provided
	keyOwn    = "gompi.dyn.own"    // the own name of that set, if it is another
	keySecond = "gompi.dyn.second" // somebody else has tried to
	keyFailed = "gompi.dyn.failed" // why the provider could not
)

// integration is a call of Integrate that is not over.
type integration struct {
	c     *sessions.Change
	f     *followed // that the change was seen by; nil: this process is a newcomer
	delta string
	store *sessions.Store
	given bool              // the name, as far as that could be
	wrong error             // what the caller's name is
	ahead *sessions.Watcher // of the named set, by who has named it
}

// Integrate says that the calling process goes on with a change, which any of its sets
// (Change.Sets) names, and waits until all have said so who are in the delta or in the
// associated set, and live. One that cannot be received yet, as newcomers are still to
// start, is waited for like them. Collective over these, out of band: no communicator is
// needed, and all give a set of the same change.
//
// One of those that were in the associated set may provide a name (provider is true
// and *name a set that it knows); whoever else gives a name, too, finds there what the
// provider has given. nil is no look-up. The named set is gompi://main from then on if
// the associated set was, and the change is a plain one (sessions.Add, sessions.Sub);
// with one that has a Result, as those of gompictl resize, that is. Each process goes on
// following the new set, if it is a member.
//
// terminate: the caller is in the delta, and that leaves. What it has sent is
// delivered; its main function should return, as the library does not end processes.
//
// info has "wait": "false" is not to wait until all have said so. The name, if it is
// looked for, is waited for; how the change was decided the next call of the session
// takes up, or Close, which return ErrRolledBack for it.
//
// ErrRolledBack: the change does not happen, and all is as it was. ErrProviders or
// ErrNoProvider, in an error of class ErrArg: the change holds, and there is no name:
// all who gave a name get it, whether to provide or to look. When ctx ends before the
// decision, what was said stands, and Integrate may be called again.
//
// MPI_Session_dyn_integrate_res_change of Huber et al., EuroMPI/USA 2022.
func (d *Session) Integrate(ctx context.Context, delta string, provider bool, name *string, info *mpi.Info) (terminate bool, err error) {
	const op = "Integrate"
	if provider && name == nil {
		return false, failed(mpi.ErrArg, op, errors.New("a provider without a name"))
	}
	i, err := d.enter(ctx, op, delta)
	if err != nil {
		return false, err
	}
	if provider && !i.given {
		if i.wrong = d.provide(ctx, i, *name); i.wrong != nil && ctx.Err() != nil {
			return false, i.wrong
		}
		i.given = true
	}
	if info.Get("wait") == "false" {
		return d.without(ctx, i, provider, name)
	}
	err = d.finish(ctx, i, provider, name)
	return i.c.Role == sessions.Leaving && !errors.Is(err, sessions.ErrRolledBack), err
}

// IIntegrate starts an Integrate: terminate and *name are there when the request is
// complete.
func (d *Session) IIntegrate(ctx context.Context, delta string, provider bool, name *string, info *mpi.Info) (terminate *bool, r mpi.Request) {
	terminate = new(bool)
	return terminate, d.start("Integrate", func() (err error) {
		*terminate, err = d.Integrate(ctx, delta, provider, name, info)
		return err
	})
}

// errNotYet: the change cannot be received yet.
var errNotYet = errors.New("the change cannot be received yet")

// enter is begin when the change can be received: who has its name from elsewhere, as of
// Request, waits for those who come as for those who stay.
func (d *Session) enter(ctx context.Context, op, delta string) (*integration, error) {
	const least, most = 50 * time.Microsecond, 5 * time.Millisecond
	for pause := least; ; pause = min(2*pause, most) {
		d.mu.Lock()
		i, err := d.begin(op, delta)
		d.mu.Unlock()
		if !errors.Is(err, errNotYet) {
			return i, err
		}
		if pause == least { // until all who come are there
			if _, err := d.s.Reached(ctx, delta, sessions.Ready); err != nil && ctx.Err() != nil {
				return nil, err
			}
		}
		// Pages show it a moment later, and when all follow the set.
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, failed(mpi.ErrCancelled, op, context.Cause(ctx))
		}
	}
}

// begin finds the change and accepts it; mu is held.
func (d *Session) begin(op, delta string) (*integration, error) {
	if err := d.open(op); err != nil {
		return nil, err
	}
	own, err := d.s.Name(delta)
	if errors.Is(err, mpi.ErrSetGone) {
		return nil, failed(mpi.ErrRolledBack, op, fmt.Errorf("%s is gone with its change: %w", delta, err))
	}
	if err != nil {
		return nil, err
	}
	has := func(c *sessions.Change) bool {
		return c != nil && (slices.Contains(c.Joining, own) || c.Leaving == own)
	}
	for c, i := range d.begun {
		if has(c) {
			return i, nil
		}
	}
	i := &integration{delta: delta}
	if has(d.joined) {
		i.c = d.joined
	}
	if err := d.look(i, has); err != nil {
		return nil, err
	}
	if i.c == nil {
		defer d.s.Release(delta)
		s, err := d.s.Outcome(delta)
		if err == nil && s == sessions.Adopting { // since it was looked for
			err = d.look(i, has)
		}
		switch {
		case err != nil:
			return nil, err
		case i.c != nil:
		case s == sessions.RolledBack || s == sessions.Cancelled:
			return nil, failed(mpi.ErrRolledBack, op, fmt.Errorf("%s is of a change that is %v", delta, s))
		case s < sessions.Adopting && len(d.list) > 0:
			return nil, errNotYet
		default:
			return nil, failed(mpi.ErrArg, op, fmt.Errorf("%s is of no change of a set that this process follows", delta))
		}
	}
	if i.store, err = d.s.Store(delta); err != nil {
		return nil, err
	}
	d.begun[i.c] = i
	return i, nil
}

// look finds the change among those of the sets that are followed, and accepts it; mu is
// held.
func (d *Session) look(i *integration, has func(*sessions.Change) bool) error {
	for _, f := range d.list {
		c, err := f.w.Pending()
		if err != nil {
			return err
		}
		if has(c) {
			if err := f.w.Accept(c); err != nil {
				return err
			}
			i.c, i.f = c, f
		}
	}
	return nil
}

// provide gives the name. Whatever is wrong with it is said in the store, so that the
// others need not wait for another one.
func (d *Session) provide(ctx context.Context, i *integration, name string) error {
	own, err := i.c.Provide(ctx, name)
	switch {
	case err == nil:
		if i.c.Result == "" { // so that the set is followed from the commit on
			if w, err := sessions.Watch(d.life, own, sessions.Options{}); err == nil {
				i.ahead = w
			}
		}
		if own != name { // gompi://main is another set later, mpi://WORLD elsewhere
			if err := i.store.Put(keyOwn, []byte(own)); err != nil {
				return err
			}
		}
		return i.store.Put(keyName, []byte(name))
	case ctx.Err() != nil:
		return err
	}
	// Whoever was first has put a name, or will before it votes.
	key := keyFailed
	if errors.Is(err, mpi.ErrRefused) {
		key = keySecond
	}
	return errors.Join(err, i.store.Put(key, []byte(err.Error())))
}

// without is an Integrate that does not wait for the decision.
func (d *Session) without(ctx context.Context, i *integration, provider bool, name *string) (bool, error) {
	if err := d.begins("Integrate"); err != nil {
		return false, err
	}
	over, end := context.WithCancel(ctx)
	go func() {
		err := d.finish(d.life, i, false, nil)
		end()
		d.ends(err)
	}()
	if provider {
		return i.c.Role == sessions.Leaving, i.wrong
	}
	if name == nil {
		return i.c.Role == sessions.Leaving, nil
	}
	v, err := i.store.Get(over, true, keyName)
	if err != nil && over.Err() != nil && ctx.Err() == nil { // it is decided
		var given string
		if given, _, err = i.look(ctx); err == nil {
			*name = given
		}
	} else if err == nil {
		*name = string(v[0])
	}
	return i.c.Role == sessions.Leaving, err
}

// finish votes, waits for the decision and goes on with what it has made.
func (d *Session) finish(ctx context.Context, i *integration, provider bool, name *string) error {
	comm, err := i.c.Commit(ctx)
	leaves := errors.Is(err, sessions.ErrLeaving)
	if err != nil && !leaves {
		if errors.Is(err, sessions.ErrRolledBack) {
			d.forget(i)
		}
		return err
	}
	if comm != nil { // the program makes its own
		err = comm.Free()
	}
	if leaves {
		err = nil
	}
	if name != nil {
		given, _, lost := i.look(ctx)
		err = cmp.Or(err, lost)
		if err == nil && !provider {
			*name = given
		}
	}
	if !leaves {
		lost := d.goOn(ctx, i)
		err = cmp.Or(err, lost)
	}
	d.forget(i)
	return err
}

// look finds the name after the decision, as all have said theirs, and the own name of the
// set.
func (i *integration) look(ctx context.Context) (name, own string, err error) {
	const op = "Integrate"
	v, err := i.store.Get(ctx, false, keyName, keySecond, keyFailed, keyOwn)
	switch {
	case err != nil:
		return "", "", err
	case v[1] != nil:
		return "", "", failed(mpi.ErrArg, op, fmt.Errorf("%s: %w", i.delta, ErrProviders))
	case v[0] == nil && v[2] != nil:
		return "", "", failed(mpi.ErrArg, op, fmt.Errorf("%s: %w: %s", i.delta, ErrNoProvider, v[2]))
	case v[0] == nil:
		return "", "", failed(mpi.ErrArg, op, fmt.Errorf("%s: %w", i.delta, ErrNoProvider))
	case v[3] == nil:
		v[3] = v[0]
	}
	return string(v[0]), string(v[3]), nil
}

// goOn follows the new set.
func (d *Session) goOn(ctx context.Context, i *integration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if i.c.Result != "" {
		if i.f != nil {
			return nil // the watch has gone on by itself
		}
		return d.followFirst(mainSet, i.c.Result)
	}
	_, own, err := i.look(ctx)
	if errors.Is(err, ErrNoProvider) || errors.Is(err, ErrProviders) {
		return nil // who wanted one is told
	}
	if err != nil {
		return err
	}
	group, err := d.s.Group(own)
	if err != nil {
		return err
	}
	_ = d.s.Release(own) // the change holds it
	isMain := false
	if main, err := d.s.Main(); err == nil {
		isMain = main == own
	}
	if group.Rank() == mpi.Undefined {
		if i.f != nil && i.f.name == mainSet && isMain {
			i.f.name, err = i.f.w.Set()
		}
		return err
	}
	if i.f != nil {
		if set, err := i.f.w.Set(); err == nil && set == own {
			return nil
		}
		if err := d.drop(i.f); err != nil {
			return err
		}
	}
	name := own
	if isMain {
		name = mainSet
	}
	if w := i.ahead; w != nil {
		i.ahead = nil
		d.list = append(d.list, &followed{name, w})
		return nil
	}
	return d.follow(name)
}

// followFirst follows the first of these sets of which the process is a member; mu is
// held.
func (d *Session) followFirst(sets ...string) (err error) {
	for _, set := range sets {
		if err = d.follow(set); err == nil {
			return nil
		}
	}
	return err
}

// forget ends an integration.
func (d *Session) forget(i *integration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.begun, i.c)
	if i.ahead != nil {
		_ = i.ahead.Close() // nobody goes on with it
	}
	if d.joined == i.c {
		d.joined = nil
	}
	if !d.closed {
		_ = d.s.Release(i.delta)
	}
}
