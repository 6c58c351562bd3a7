// SPDX-License-Identifier: Apache-2.0

package launch

// Exit statuses of gompirun that are not a rank's own.
const (
	ExitFailure    = 1   // no memory, lost output, abort with code 0
	ExitUsage      = 2   // wrong command line
	ExitTimeout    = 124 // --timeout, as timeout(1) has it
	ExitNotRunable = 126 // found, but not executable
	ExitNotFound   = 127 // no such program
	ExitSignal     = 128 // plus the number of the signal
)

// StartError is the error for a program that cannot be started; Status is gompirun's exit
// status.
type StartError struct {
	Status int
	Err    error
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }
