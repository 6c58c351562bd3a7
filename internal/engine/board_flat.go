// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/collectives"

// flatArgs is a call whose strided buffers are replaced by packed copies.
type flatArgs struct {
	args CollArgs
	mem  []byte
}

// boardFlat is boardColl that takes strided buffers, too: whether a rank's are
// is its own affair, and operations on a board are small.
func (e *Engine) boardFlat(c *Context, a *CollArgs, tag int32) *Fault {
	if c.board == nil || !a.In.Strided() && !a.Out.Strided() {
		return e.boardColl(c, a, tag)
	}
	k := &c.board.flat
	if need := a.In.n + a.Out.n; int64(len(k.mem)) < need {
		k.mem = make([]byte, need)
	}
	k.args = *a
	k.args.In, k.args.Out = ByteBuf(k.mem[:a.In.n]), ByteBuf(k.mem[a.In.n:][:a.Out.n])
	e.pack.copy(k.args.In, a.In)
	e.pack.copy(k.args.Out, a.Out) // its root's message; and some calls leave parts of it alone
	f := e.boardColl(c, &k.args, tag)
	if source := a.Args.Op == collectives.OpBcast && a.Args.Root == a.Args.Rank; f == nil && !source {
		e.pack.copy(a.Out, k.args.Out)
	}
	k.args = CollArgs{}
	return f
}
