// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
)

// State is the progress of an operation.
type State uint8

const (
	Queued    State = iota + 1 // waiting for something that is in use
	Granted                    // processes, names and members are reserved
	Launching                  // newcomers start
	Ready                      // newcomers have joined; members see the change
	Adopting                   // the change was delivered to a member
	Committed                  // the change holds
	Done                       // all leavers are gone

	Refused
	Cancelled
	RolledBack
)

var stateNames = [...]string{"", "queued", "granted", "launching", "ready", "adopting", "committed", "done", "refused", "cancelled", "rolled back"}

func (s State) String() string {
	if s.Known() {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", s)
}

// Known reports whether s is a valid state.
func (s State) Known() bool { return Queued <= s && s <= RolledBack }

// Over reports whether s is a final state.
func (s State) Over() bool { return s >= Done }

// undecided reports whether an operation in s holds its inputs.
func (s State) undecided() bool { return Granted <= s && s <= Adopting }

// Reasons why an operation was refused, or did not happen.
var (
	ErrMalformed  = errors.New("malformed request")
	ErrNoSet      = errors.New("no such process set")
	ErrSetGone    = errors.New("the process set is gone")
	ErrNoWatch    = errors.New("nobody can follow the change: no member watches the set")
	ErrUnwatched  = errors.New("a member has closed its watch of the set")
	ErrLeaves     = errors.New("another change removes the process")
	ErrNotMember  = errors.New("the process is not in the set")
	ErrTooMany    = errors.New("more than can ever be given")
	ErrBusy       = errors.New("what the change needs is taken")
	ErrSuperseded = errors.New("a later request sets the size")
	ErrDeadline   = errors.New("the deadline is over")
	ErrDied       = errors.New("a process of the change died")
	ErrCancelled  = errors.New("cancelled")
	ErrDeclined   = errors.New("a process declines the change")
	ErrEnding     = errors.New("the job ends")
	ErrTooLate    = errors.New("the change was accepted: it must be consumed")
	errUnasked    = errors.New("the status word of the change says rolled back, but nobody requested that")
	ErrNoOp       = errors.New("no such operation")
)

// ReplacedError is the reason for the end of a waiting operation whose input was replaced.
type ReplacedError struct{ Set, Successor uint32 }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("process set %d was replaced by set %d", e.Set, e.Successor)
}

func tooMany(n, most int) error {
	return fmt.Errorf("%w: %d processes, where there can be %d", ErrTooMany, n, most)
}

func malformed(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, a...)...)
}
