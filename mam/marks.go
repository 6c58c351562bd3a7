// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"

	"gompi/mpi"
)

// Written tells the module that the program has written to elements [from, to) of this rank's
// part of Marked data. The program calls it after the writes and before its next Checkpoint.
// Writes that are not told may be lost in a change of size: nothing else detects them. Marked is
// for memory that other processes store to, like that of windows, and for systems whose kernel
// does not track writes. Where little is written during a change it saves page faults of first
// writes. Local. Any goroutine may call it, but not during a registration or a Checkpoint.
func (m *Module) Written(name string, from, to int) error {
	const op = "Written"
	m.mu.Lock()
	x := m.named(name)
	if x == nil || !x.Marked {
		m.mu.Unlock()
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("no data %q is registered as marked", name))
	}
	marks, n := x.marks, int64(len(x.memory()))/x.Bytes
	m.mu.Unlock()
	if from < 0 || to < from || int64(to) > n {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: elements %d to %d of %d", name, from, to, n))
	}
	if marks != nil {
		marks.Mark(int64(from)*x.Bytes, int64(to)*x.Bytes)
	}
	return nil
}
