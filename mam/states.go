// SPDX-License-Identifier: Apache-2.0

package mam

// State is how far a change is, as this process sees it.
type State uint8

// The states, by their published names.
const (
	Unreserved  State = iota // there is no module: before Init, and after Finalize
	NotStarted               // no change is coming
	Pending                  // a change is coming: newcomers start, constant data moves
	UserPending              // the user phase goes on
	Completed                // this Checkpoint has committed it
)

// String gives the published name.
func (s State) String() string {
	return [...]string{"UNRESERVED", "NOT_STARTED", "PENDING", "USER_PENDING", "COMPLETED", "?", "?", "?"}[s&7]
}

// Role says where a process stands in a change.
type Role uint8

// The roles. Init returns the first two.
const (
	Source   Role = iota // it was there before the change; a process of the beginning
	Target               // it was started for a change, which is over when Init returns
	Continue             // a source that is a target, too (PROC_CONTINUE)
	NewRank              // a target that was not a source (PROC_NEW_RANK)
	Leaver               // a source that is not a target (PROC_ZOMBIE; ours ends)
)

// String gives the role in lower case.
func (r Role) String() string {
	return [...]string{"source", "target", "continue", "new rank", "leaver", "?", "?", "?"}[r&7]
}

// Mode says whether data changes while the sources compute. Variable data that other processes
// store to moves at the commit unless it is Marked. In a Checkpoint no operation that writes to
// the data may be under way: no receive that was begun, no Put of another rank.
type Mode uint8

// The modes.
const (
	Variable Mode = iota // it changes: its value when the change is delivered moves
	Constant             // nobody writes to it: it may move while the sources compute
	Marked               // Variable data whose writes the program tells: Module.Written
)

// String gives the mode in lower case.
func (m Mode) String() string { return [...]string{"variable", "constant", "marked", "?"}[m&3] }

// Completion says whether Checkpoint waits.
type Completion uint8

// The completions.
const (
	Check Completion = iota // Checkpoint returns as soon as there is nothing to do here
	Wait                    // Checkpoint waits until a change that is coming is over
)
