// SPDX-License-Identifier: Apache-2.0

package mam

// State is how far a change is, as this process sees it.
type State uint8

// The states, by their published names.
const (
	Unreserved  State = iota // there is no module: before Init, and after Finalize
	NotStarted               // no change is coming
	Pending                  // one is: newcomers start, constant data moves
	UserPending              // the user phase goes on
	Completed                // this Checkpoint has committed it
)

// String gives the published name.
func (s State) String() string {
	return [...]string{"UNRESERVED", "NOT_STARTED", "PENDING", "USER_PENDING", "COMPLETED", "?", "?", "?"}[s&7]
}

// Role is where a process stands in a change.
type Role uint8

// The roles. Init returns the first two.
const (
	Source   Role = iota // it was there before; Init of the processes of the beginning
	Target               // it was started for a change, which is over when Init returns
	Continue             // a source that is a target, too (PROC_CONTINUE)
	NewRank              // a target that was no source (PROC_NEW_RANK)
	Leaver               // a source that is no target (PROC_ZOMBIE; ours ends)
)

// String gives the role in lower case.
func (r Role) String() string {
	return [...]string{"source", "target", "continue", "new rank", "leaver", "?", "?", "?"}[r&7]
}

// Mode is whether data changes while the sources compute. Of Variable data that others than
// this process store to only what is Marked may move meanwhile. No operation that writes to
// data is under way in a Checkpoint: a receive that was begun, a Put of another rank.
type Mode uint8

// The modes.
const (
	Variable Mode = iota // it does: what is in it when the change is agreed is what moves
	Constant             // nobody writes to it: it may move while the sources compute
	Marked               // Variable data of which the program says what it writes: Module.Written
)

// String gives the mode in lower case.
func (m Mode) String() string { return [...]string{"variable", "constant", "marked", "?"}[m&3] }

// Completion is whether Checkpoint waits.
type Completion uint8

// Check and Wait.
const (
	Check Completion = iota // Checkpoint returns as soon as there is nothing to do here
	Wait                    // a change that is coming is waited for, until it is over
)
