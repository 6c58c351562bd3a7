// SPDX-License-Identifier: Apache-2.0

package core

// Ending is an error by which a process learns that it must end, though nothing has
// failed. Errors of package sessions wrap it; mpi.Main looks for it.
type Ending uint8

const (
	EndLeft      Ending = iota + 1 // it has left its set by a change
	EndDiscarded                   // the change that it was started for was rolled back
)

func (e Ending) Error() string {
	if e == EndDiscarded {
		return "the change that this process was started for was rolled back"
	}
	return "this process leaves by a change"
}
