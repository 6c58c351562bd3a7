// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
)

// Call are the arguments of a collective call. In, Out and what Args refers to are
// used until the operation has ended.
type Call struct {
	Args    collectives.Args
	In, Out buffer.Buf
	// Unit is the size in packed bytes of what Args counts. In and Out consist
	// of the same basic elements; a reduction's Unit is one of them.
	Unit   int64
	Kernel kernel.Func // of reductions
}

// operation is one rank's part of an operation on a board: it publishes, then
// takes what the ranks next, next-1, ... lo have published. Operations that read
// keep their own account; next and lo only say for whom they wait.
type operation struct {
	family         family // nil: it copies into its cell and out of others
	op             collectives.Op
	seq            uint32
	word           uint64 // of every cell of this operation
	bytes          int64  // its length
	offers         bool   // this rank publishes
	offered        bool
	follows        bool // directly after one in which all wait for all
	duplex         bool // words stand in the duplex line
	sleepy         bool // this rank is about to sleep
	looks          int  // in vain, where ranks are two
	reads          bool // it reads from regions of others: see singleCopy
	oversubscribed bool // ranks share processors
	told           bool // something was published for which others may sleep
	moved          bool // data came
	all            bool // everybody publishes and waits for everybody
	own            bool // this rank's part comes from its buffer, not from its cell
	next, lo       int
	operand        []byte // of a reduction, the only one so far; it stands in a cell
	reduced        bool   // out holds the operands so far
	fault          *fault.Fault
	published      []byte
	out            []byte
	to             buffer.Buf // strided: where the result goes instead of out, or from there
	at, n          int64      // the part of each payload that this rank takes; its length
	kernel         kernel.Func
	counts         []int64 // of Allgatherv
	displs         []int64
	unit           int64
}

// family is how operations of one kind go on, where they do not only copy through
// cells: singleCopy, vector and treeState, with the state of the one that is under
// way.
type family interface {
	step(b *Board, o *operation) (done bool)
	awaits(b *Board, o *operation, rank int) bool
	end(b *Board, o *operation, failed bool)
}

// Begin begins the operation of the call with that number. The one before has ended.
// reads: ranks copy from each other's memory; oversubscribed: they share processors.
func (b *Board) Begin(a *Call, seq uint32, reads, oversubscribed bool) {
	all := b.number(seq, reads, oversubscribed)
	b.prepare(a)
	b.started(all)
}

// BeginBrief is Begin of a brief call.
func (b *Board) BeginBrief(k *Brief, seq uint32, oversubscribed bool) {
	all := b.number(seq, false, oversubscribed)
	b.prepareBrief(k)
	b.started(all)
}

// number begins with an operation. It returns whether in the last one all waited for all.
func (b *Board) number(seq uint32, reads, oversubscribed bool) (all bool) {
	o := &b.op
	all = o.all
	o.follows = all && o.seq == seq-1
	o.seq, o.reads, o.oversubscribed, o.duplex, o.sleepy = seq, reads, oversubscribed, false, false
	o.told, o.moved, o.family = false, false, nil
	b.finished = seq - 1 // calls come one after the other
	return all
}

// started ends the beginning of an operation; all: in the last one all waited for all.
func (b *Board) started(all bool) {
	o := &b.op
	if all {
		b.after.lo, b.after.hi = o.lo, o.next
		b.after.some = !o.all && o.next >= o.lo && (o.lo != b.rank || o.next != b.rank)
	}
	if b.tellDue(o.seq) {
		o.told = true
	}
}

// Step goes on with the operation as far as the other ranks allow, and reports
// whether it is done.
func (b *Board) Step() (done bool) { return b.step(&b.op) }

// Told reports whether something was told since the last time for which others may
// sleep: then WakeSleepers is due.
func (b *Board) Told() bool {
	told := b.op.told
	b.op.told = false
	return told
}

// Moved reports whether data came in the last step.
func (b *Board) Moved() bool { return b.op.moved }

// Next is for which rank the operation waits, in its own order: it changes when
// that is another one.
func (b *Board) Next() int { return b.op.next }

// Fault is why the operation cannot go on, nil if it can.
func (b *Board) Fault() *fault.Fault { return b.op.fault }

// Reads reports whether the operation copies from other ranks' memory.
func (b *Board) Reads() bool { return b.op.reads }

// Awaits reports whether the operation cannot end without a rank that has not done
// its part.
func (b *Board) Awaits(rank int) bool { return b.awaits(&b.op, rank) }

// End ends the operation here, done or not, and forgets what belongs to the caller.
func (b *Board) End(failed bool) {
	o := &b.op
	if f := o.family; f != nil {
		f.end(b, o, failed)
	}
	o.forget()
	if failed {
		b.finished = o.seq
		b.Tell()
		b.WakeAll()
	}
}
