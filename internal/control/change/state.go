// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
)

// State is how far an operation is.
type State uint8

const (
	Queued    State = iota + 1 // what it needs is taken
	Granted                    // processes, names and members are reserved
	Launching                  // newcomers start
	Ready                      // they have joined: members see the change
	Adopting                   // somebody was handed it
	Committed                  // it holds
	Done                       // who leaves is gone

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

// Known reports whether s is one of these.
func (s State) Known() bool { return Queued <= s && s <= RolledBack }

// Over reports whether nothing comes after s.
func (s State) Over() bool { return s >= Done }

// undecided reports whether an operation in s holds its inputs.
func (s State) undecided() bool { return Granted <= s && s <= Adopting }

// Why an operation was refused, or has not happened.
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
	ErrEnding     = errors.New("the job ends")
	ErrTooLate    = errors.New("the change was accepted: it must be consumed")
	errUnasked    = errors.New("the word of the change says so, and nobody had asked for that")
	ErrNoOp       = errors.New("no such operation")
)

// ReplacedError is why a waiting operation ends whose input is not the current set
// any more.
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
