// SPDX-License-Identifier: Apache-2.0

package mam

import "gompi/mpi"

// UserFunc is a user phase: see Init. Its error ends the change for all: it is rolled back at
// once, calls in User.Comm fail (ErrRevoked and ErrRolledBack), and all ranks may go on with
// what they had. The error comes back from Checkpoint of this process alone, or from Init of a
// newcomer, which ends.
type UserFunc = func(u *User) error

// User is what the user function is told.
type User struct {
	NS, ND int  // how many sources and targets there are
	Role   Role // Continue, NewRank or Leaver
	// Comm has all sources, in their order, and the newcomers behind them; of those that
	// stay only, if nobody leaves, which is the same. What is begun in it is finished in it, in the
	// same call of the function. A change that is rolled back revokes it: calls in it then fail
	// with ErrRevoked and ErrRolledBack.
	Comm *mpi.Comm
	// Sources and Targets are the ranks in Comm of the sources, and of the ranks that there
	// are to be, each by its rank there; -1 is a source that has died. They are the
	// caller's.
	Sources, Targets []int

	resumed  bool
	progress func()
}

// Progress says that this process works on its part of the phase: see
// sessions.Change.Progress. Each call of the function says it by itself; who works for longer
// than gompirun --commit-timeout in one calls it more often than that is long. Any goroutine
// may call it. Local.
func (u *User) Progress() {
	if u.progress != nil {
		u.progress()
	}
}

// Resume ends the user phase with this call of the function, when all sources have said
// it in the same one. Local.
func (u *User) Resume() { u.resumed = true }
