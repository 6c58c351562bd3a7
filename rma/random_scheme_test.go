// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"slices"

	"gompi/mpi"
	"gompi/rma"
)

// The schemes of synchronisation in which the calls of a phase are made.
const (
	fences = iota
	posts
	postsTested
	postsUnchecked
	exclusive // a lock for each target
	exclusiveEach
	sharedLocks
	unchecked
	allLocked
	allLockedFlushed
	allUnchecked
	meeting    // what needs no epochs
	numSchemes = meeting
)

var schemeNames = [...]string{
	fences: "Fence", posts: "Post, Start", postsTested: "Post, Start, Test", postsUnchecked: "Post, Start(NoCheck)",
	exclusive: "Lock(exclusive)", exclusiveEach: "Lock(exclusive) for each call", sharedLocks: "Lock(shared)", unchecked: "Lock(NoCheck)",
	allLocked: "LockAll", allLockedFlushed: "LockAll, Flush", allUnchecked: "LockAll(NoCheck)", meeting: "Barrier",
}

func passiveScheme(s int) bool { return s >= exclusive && s <= allUnchecked }

// run makes the caller's calls of a phase, and returns when all calls of all
// ranks to its memory have happened.
func (g *ground) run(f *phase) ([]made, error) {
	out := make([]made, len(f.calls))
	list := g.mine(f)
	w, comm := g.win, g.comm
	calls := func(list []int) error { return g.calls(f, list, out) }
	var err error
	if f.scheme != fences && (f.scheme < posts || f.scheme > postsTested) {
		if err := comm.Barrier(); err != nil {
			return nil, err
		}
	}
	switch f.scheme {
	case fences:
		err = first(func() error { return w.Fence(0) }, func() error { return calls(list) }, func() error { return w.Fence(0) })
		return out, err
	case posts, postsTested, postsUnchecked:
		return out, g.post(f, list, calls)
	case exclusive, sharedLocks, unchecked:
		err = g.locked(f, list, calls)
	case exclusiveEach:
		for _, k := range list {
			t := f.calls[k].target
			if err = first(func() error { return w.Lock(rma.LockExclusive, t, 0) }, func() error { return calls([]int{k}) }, func() error { return w.Unlock(t) }); err != nil {
				break
			}
		}
	case allLocked, allLockedFlushed:
		err = first(func() error { return w.LockAll(0) }, func() error { return calls(list) }, w.UnlockAll)
	case allUnchecked:
		err = first(func() error { return w.LockAll(rma.NoCheck) }, func() error { return calls(list) }, w.FlushAll, comm.Barrier, w.UnlockAll)
	case meeting:
		err = calls(list)
	}
	return out, first(func() error { return err }, comm.Barrier)
}

// first calls functions until one fails.
func first(fs ...func() error) error {
	for _, f := range fs {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// locked makes calls under a lock of each target: one after the other, or all
// at a time.
func (g *ground) locked(f *phase, list []int, calls func([]int) error) error {
	w := g.win
	kind, assert := rma.LockShared, rma.Assert(0)
	switch f.scheme {
	case exclusive:
		kind = rma.LockExclusive
	case unchecked:
		assert = rma.NoCheck
	}
	all := targets(f, list)
	if f.scheme == exclusive {
		for _, t := range all {
			part := slices.DeleteFunc(slices.Clone(list), func(k int) bool { return f.calls[k].target != t })
			if err := first(func() error { return w.Lock(kind, t, assert) }, func() error { return calls(part) }, func() error { return w.Unlock(t) }); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range all {
		if err := w.Lock(kind, t, assert); err != nil {
			return err
		}
	}
	if err := calls(list); err != nil {
		return err
	}
	slices.Reverse(all)
	for _, t := range all {
		if err := w.Unlock(t); err != nil {
			return err
		}
	}
	return nil
}

// post makes calls between Start and Complete, in the smallest groups.
func (g *ground) post(f *phase, list []int, calls func([]int) error) error {
	w := g.win
	to, err := w.Group().Incl(targets(f, list))
	if err != nil {
		return err
	}
	from, err := w.Group().Incl(origins(f, g.comm.Rank()))
	if err != nil {
		return err
	}
	if err := w.Post(from, 0); err != nil {
		return err
	}
	assert := rma.Assert(0)
	if f.scheme == postsUnchecked {
		assert = rma.NoCheck
		if err := g.comm.Barrier(); err != nil {
			return err
		}
	}
	if err := first(func() error { return w.Start(to, assert) }, func() error { return calls(list) }, w.Complete); err != nil {
		return err
	}
	for f.scheme == postsTested {
		if done, err := w.Test(); done || err != nil {
			return err
		}
	}
	return w.Wait()
}

// calls makes calls, and completes those with requests.
func (g *ground) calls(f *phase, list []int, out []made) (err error) {
	var open []int
	for i, k := range list {
		a := &f.calls[k]
		if out[k], err = g.begin(a); err != nil {
			return err
		}
		if out[k].has {
			open = append(open, k)
		}
		if i%3 == 2 || len(open) > 4 {
			if err := wait(out, open); err != nil {
				return err
			}
			open = nil
		}
		if f.scheme == allLockedFlushed {
			flush := []func() error{func() error { return g.win.Flush(a.target) }, g.win.FlushAll, func() error { return g.win.FlushLocal(a.target) }, g.win.FlushLocalAll, func() error { return nil }}
			how := k % len(flush)
			if err := flush[how](); err != nil {
				return err
			}
			for _, j := range list[:i+1] {
				if how < 4 && (how%2 == 1 || f.calls[j].target == a.target) {
					out[j].release()
				}
			}
		}
	}
	return wait(out, open)
}

// wait completes requests, the last first. What they read is there then.
func wait(out []made, open []int) error {
	for _, k := range slices.Backward(open) {
		if _, err := out[k].req.Wait(); err != nil {
			return err
		}
		out[k].read = slices.Clone(out[k].read)
		out[k].req = mpi.Request{}
		out[k].release()
	}
	return nil
}
