// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"

	"gompi/mpi"
)

// Written says of data that was registered as Marked that the program has written to elements
// [from, to) of this rank's part: after it has, and before its next Checkpoint. What is
// written and not said may be lost in a change of size: nobody else looks. It is the way for
// memory that others store to, as that of windows, and for systems whose kernel does not tell;
// where little is written in a change it saves the first writes' faults. Local, and for any
// goroutine, but not beside a registration, or a Checkpoint.
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
