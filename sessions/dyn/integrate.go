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

// Errors of Integrate about the name. The change is committed nevertheless.
var (
	// ErrProviders: more than one process has provided a name.
	ErrProviders = errors.New("several processes have provided a name")
	// ErrNoProvider: a process looks for a name, and no process has provided one.
	ErrNoProvider = errors.New("no process has provided a name")
)

// Keys in the store of the delta.
const (
	keyName   = "gompi.dyn.name"   // the name that was provided
	keyOwn    = "gompi.dyn.own"    // the own name of that set, if it is another
	keySecond = "gompi.dyn.second" // a second process has tried to provide a name
	keyFailed = "gompi.dyn.failed" // why the provider failed
)

// integration is a call of Integrate that is not over.
type integration struct {
	c     *sessions.Change
	f     *subscription // whose watcher returned the change; nil: this process is a newcomer
	delta string
	store *sessions.Store
	given bool              // this process has provided its name, or has failed to
	wrong error             // why it has failed
	named *sessions.Watcher // of the named set, in the process that has provided the name
}

// Integrate says that the calling process goes on with a change, and waits until all
// processes have said so. delta is any set of the change (Change.Sets).
//
// Collective over the living processes of the delta and of the associated set; all name a set
// of the same change. It needs no communicator. If the change cannot be received yet,
// because newcomers still start, Integrate waits for it.
//
// provider, name: one process that was in the associated set may provide a name: provider is
// true and *name is a set that it knows. Any other process with a name finds the provided name
// there; nil means that it does not look. If the associated set was gompi://main and the
// change is a plain one (sessions.Add, sessions.Sub), gompi://main is the named set from then
// on. With a change that has a Result, such as that of gompictl resize, it is the Result.
// Each process goes on following the new set, if it is a member.
//
// info: "wait" = "false" means that Integrate does not wait until all processes have said
// so; it waits only for the name, if it looks for one. The next call of the session, or
// Close, then returns an error of the decision.
//
// terminate: the caller leaves by the change, and its messages are delivered. Its main
// function should return; the library does not end processes.
//
// Errors:
//   - ErrRolledBack: the change does not happen, and nothing has changed.
//   - ErrProviders, ErrNoProvider, in an error of class mpi.ErrArg: the change is committed,
//     and there is no name. All processes that gave a name get the error.
//   - mpi.ErrCancelled: ctx has ended before the decision. The vote stands, and Integrate may
//     be called again.
//
// MPI_Session_dyn_integrate_res_change of Huber et al., EuroMPI/USA 2022.
func (d *Session) Integrate(ctx context.Context, delta string, provider bool, name *string, info *mpi.Info) (terminate bool, err error) {
	const op = "Integrate"
	if provider && name == nil {
		return false, newError(mpi.ErrArg, op, errors.New("a provider without a name"))
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
		return d.integrateBehind(ctx, i, provider, name)
	}
	err = d.finish(ctx, i, provider, name)
	return i.c.Role == sessions.Leaving && !errors.Is(err, sessions.ErrRolledBack), err
}

// IIntegrate starts an Integrate. Collective as that. terminate and *name may be read when
// the request is complete.
func (d *Session) IIntegrate(ctx context.Context, delta string, provider bool, name *string, info *mpi.Info) (terminate *bool, r mpi.Request) {
	terminate = new(bool)
	return terminate, d.start("Integrate", func() (err error) {
		*terminate, err = d.Integrate(ctx, delta, provider, name, info)
		return err
	})
}

// Decline takes this process out of a change, in place of its Integrate and with the same delta,
// because its part failed for this reason. The change ends for all processes at once: Integrate
// returns ErrRolledBack (sessions.Change.Decline). Integrate must follow here, too. In a process
// that the change started, the main function returns the error of Decline instead:
// ErrRolledBack, which wraps the reason. In the others Decline returns nil. It waits until the
// change can be received.
func (d *Session) Decline(ctx context.Context, delta string, reason error) error {
	i, err := d.enter(ctx, "Decline", delta)
	if err != nil {
		return err
	}
	return i.c.Decline(reason)
}

// errNotYet means that the change cannot be received yet.
var errNotYet = errors.New("the change cannot be received yet")

// enter waits until the change can be received, and calls begin. A process may have the
// name of the delta from elsewhere, such as Request, before all newcomers have joined.
func (d *Session) enter(ctx context.Context, op, delta string) (*integration, error) {
	const least, most = 50 * time.Microsecond, 5 * time.Millisecond
	for pause := least; ; pause = min(2*pause, most) {
		d.mu.Lock()
		i, err := d.begin(op, delta)
		d.mu.Unlock()
		if !errors.Is(err, errNotYet) {
			return i, err
		}
		if pause == least { // until all newcomers have joined
			if _, err := d.s.Reached(ctx, delta, sessions.Ready); err != nil && ctx.Err() != nil {
				return nil, err
			}
		}
		// The pages show the change a moment later, and only when all members follow the set.
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, newError(mpi.ErrCancelled, op, context.Cause(ctx))
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
		return nil, newError(mpi.ErrRolledBack, op, fmt.Errorf("%s is gone with its change: %w", delta, err))
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
		if err == nil && s == sessions.Adopting { // it was announced after the look
			err = d.look(i, has)
		}
		switch {
		case err != nil:
			return nil, err
		case i.c != nil:
		case s == sessions.RolledBack || s == sessions.Cancelled:
			return nil, newError(mpi.ErrRolledBack, op, fmt.Errorf("%s belongs to a change that is %v", delta, s))
		case s < sessions.Adopting && len(d.list) > 0:
			return nil, errNotYet
		default:
			return nil, newError(mpi.ErrArg, op, fmt.Errorf("%s belongs to no change of a set that this process follows", delta))
		}
	}
	if i.store, err = d.s.Store(delta); err != nil {
		return nil, err
	}
	d.begun[i.c] = i
	return i, nil
}

// look finds the change among the pending changes of the followed sets, and accepts it; mu
// is held.
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

// provide puts the name into the store of the delta, or why there is none: the others
// then need not wait for a name.
func (d *Session) provide(ctx context.Context, i *integration, name string) error {
	own, err := i.c.Provide(ctx, name)
	switch {
	case err == nil:
		if i.c.Result == "" { // so that this process follows the set from the commit on
			if w, err := sessions.Watch(d.life, own, sessions.Options{}); err == nil {
				i.named = w
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
	// The first provider has put a name, or will before it votes.
	key := keyFailed
	if errors.Is(err, mpi.ErrRefused) {
		key = keySecond
	}
	return errors.Join(err, i.store.Put(key, []byte(err.Error())))
}

// integrateBehind is an Integrate that does not wait for the decision.
func (d *Session) integrateBehind(ctx context.Context, i *integration, provider bool, name *string) (bool, error) {
	if err := d.beginBehind("Integrate"); err != nil {
		return false, err
	}
	over, end := context.WithCancel(ctx)
	go func() {
		err := d.finish(d.life, i, false, nil)
		end()
		d.endBehind(err)
	}()
	if provider {
		return i.c.Role == sessions.Leaving, i.wrong
	}
	if name == nil {
		return i.c.Role == sessions.Leaving, nil
	}
	v, err := i.store.Get(over, true, keyName)
	if err != nil && over.Err() != nil && ctx.Err() == nil { // the decision has fallen
		var given string
		if given, _, err = i.look(ctx); err == nil {
			*name = given
		}
	} else if err == nil {
		*name = string(v[0])
	}
	return i.c.Role == sessions.Leaving, err
}

// finish votes, waits for the decision and follows the new set.
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
		lost := d.followResult(ctx, i)
		err = cmp.Or(err, lost)
	}
	d.forget(i)
	return err
}

// look returns the provided name and the own name of its set. The caller calls it after the
// decision: then no provider comes any more.
func (i *integration) look(ctx context.Context) (name, own string, err error) {
	const op = "Integrate"
	v, err := i.store.Get(ctx, false, keyName, keySecond, keyFailed, keyOwn)
	switch {
	case err != nil:
		return "", "", err
	case v[1] != nil:
		return "", "", newError(mpi.ErrArg, op, fmt.Errorf("%s: %w", i.delta, ErrProviders))
	case v[0] == nil && v[2] != nil:
		return "", "", newError(mpi.ErrArg, op, fmt.Errorf("%s: %w: %s", i.delta, ErrNoProvider, v[2]))
	case v[0] == nil:
		return "", "", newError(mpi.ErrArg, op, fmt.Errorf("%s: %w", i.delta, ErrNoProvider))
	case v[3] == nil:
		v[3] = v[0]
	}
	return string(v[0]), string(v[3]), nil
}

// followResult follows the new set.
func (d *Session) followResult(ctx context.Context, i *integration) error {
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
		return nil // finish returns the error where a name was wanted
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
		if err := d.unfollow(i.f); err != nil {
			return err
		}
	}
	name := own
	if isMain {
		name = mainSet
	}
	if w := i.named; w != nil {
		i.named = nil
		d.list = append(d.list, &subscription{name, w})
		return nil
	}
	return d.follow(name)
}

// followFirst follows the first of these sets that has the process as a member; mu is held.
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
	if i.named != nil {
		_ = i.named.Close() // rolled back, or not needed
	}
	if d.joined == i.c {
		d.joined = nil
	}
	if !d.closed {
		_ = d.s.Release(i.delta)
	}
}
