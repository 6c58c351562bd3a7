// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"gompi/collectives"
	"gompi/collectives/selection"
)

// SetTable makes later collective calls on c, also through copies of it, select
// their algorithms by t; nil means by the table that the process began with.
// It is for tools that measure algorithms. Local, but all ranks must set equal
// tables between the same two collective calls, and nobody else may use c
// meanwhile.
func (c *Comm) SetTable(t *selection.Table) {
	if t == nil {
		t = c.core.proc.table
	}
	c.core.table = t
}

// SelectionArgs is what selection knows of a blocking call of op on c before
// it knows any lengths, with elements of so many bytes. It is for tools that
// ask which algorithms a call admits. Local.
func (c *Comm) SelectionArgs(op collectives.Op, elemBytes int64) collectives.Args {
	x := call{c: c}
	x.begin(c, op)
	c.share(&x.Args, elemBytes)
	return x.Args
}
