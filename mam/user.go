// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"
	"time"

	"gompi/mpi"
)

// UserFunc is a user phase: see Init. Its error ends the change for all: it is rolled back at
// once, calls in User.Comm fail (ErrRevoked and ErrRolledBack), and all ranks may go on with
// what they had. The error comes back from Checkpoint of this process alone, or from Init of a
// newcomer, which ends.
type UserFunc = func(u *User) error

// User is the argument of the user function.
type User struct {
	NS, ND int  // the numbers of sources and targets
	Role   Role // Continue, NewRank or Leaver
	// Comm has all sources, in their order, and the newcomers behind them. If nobody leaves,
	// these are the ranks after the change. What is begun in it is finished in it, in the
	// same call of the function. A roll-back revokes it: calls in it then fail with
	// ErrRevoked and ErrRolledBack.
	Comm *mpi.Comm
	// Sources and Targets are ranks in Comm: of the sources by their ranks before the change,
	// and of the ranks after it. A source that has died has -1. The caller may change them.
	Sources, Targets []int

	resumed  bool
	progress func()
}

// Progress says that this process works on its part of the phase: see
// sessions.Change.Progress. Each call of the function reports once. A function that works
// for longer than gompirun --commit-timeout in one call must call Progress more often than
// that. Any goroutine may call it. Local.
func (u *User) Progress() {
	if u.progress != nil {
		u.progress()
	}
}

// Resume ends the user phase with this call of the function, if all sources call it in the
// same one. Local.
func (u *User) Resume() { u.resumed = true }

// userPhase calls the user function once, on all, and reports whether it was the last call.
func (rc *reconfiguration) userPhase() (over bool, err error) {
	if !rc.hasUser {
		return true, nil
	}
	start := time.Now()
	u := &User{
		NS:       rc.times.NS,
		ND:       rc.times.ND,
		Role:     rc.role(),
		Comm:     rc.merged,
		Sources:  slices.Clone(rc.from),
		Targets:  slices.Clone(rc.to),
		progress: rc.change.Progress,
	}
	u.Progress()
	if err := rc.m.user(u); err != nil {
		rc.userFailed = true
		return false, err
	}
	u.Progress()
	resumed := 1
	if rc.old >= 0 && !u.resumed {
		resumed = 0
	}
	resumed, err = mpi.AllreduceOne(rc.merged, resumed, mpi.Min)
	rc.times.User += time.Since(start)
	return resumed == 1, err
}
