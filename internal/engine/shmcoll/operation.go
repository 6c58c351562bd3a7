// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
)

// Call are the arguments of a collective call. In, Out and memory of Args are in use until
// the operation has ended.
type Call struct {
	Args    collectives.Args
	In, Out buffer.Buf
	// Unit is the size in packed bytes of what Args counts. In and Out consist of the same
	// basic elements; in a reduction Unit is one of them.
	Unit   int64
	Kernel kernel.Func // of reductions
}

// operation is one rank's part of an operation: it publishes, then takes what the
// ranks next, next-1, ... lo have published. Operations that read other ranks'
// memory keep their own account; there next and lo only say which ranks they
// wait for.
type operation struct {
	protocol protocol // nil: copy into the own cell and out of the others'
	op       collectives.Op
	seq      uint32
	word     uint64 // of every cell of this operation
	bytes    int64  // the length in word

	// What this rank does.
	offers         bool // it publishes
	offered        bool // it has published
	follows        bool // the operation directly follows one in which all wait for all
	duplex         bool // the words use the duplex line
	sleepy         bool // this rank is about to sleep
	looks          int  // fruitless looks; of two ranks
	reads          bool // it reads other ranks' memory: see singleCopy
	oversubscribed bool // ranks share processors
	told           bool // something was published for which others may sleep
	moved          bool // the last step copied data
	all            bool // all ranks publish and wait for all
	own            bool // this rank takes its part from its buffer, not from its cell
	next, lo       int

	// Data.
	operand   []byte // of a reduction: the only one so far, in a cell
	reduced   bool   // out holds the operands so far
	fault     *fault.Fault
	published []byte
	out       []byte
	to        buffer.Buf // strided destination in place of out, or of its contents
	at, n     int64      // the part of each payload that this rank takes; its length
	kernel    kernel.Func
	counts    []int64 // of Allgatherv
	displs    []int64
	unit      int64
}

// protocol continues operations that do more than copy through cells. singleCopy, vector,
// treeState, relay and pairExchange implement it; each has the state of the current
// operation.
type protocol interface {
	step(b *Area, o *operation) (done bool)
	awaits(b *Area, o *operation, rank int) bool
	end(b *Area, o *operation, failed bool)
}

// Begin begins the operation of a call. The one before must have ended. reads says that
// ranks copy from each other's memory, oversubscribed that they share processors.
func (b *Area) Begin(a *Call, seq uint32, reads, oversubscribed bool) {
	all := b.number(seq, reads, oversubscribed)
	b.prepare(a)
	b.started(all)
}

// BeginFast is Begin for a FastCall.
func (b *Area) BeginFast(k *FastCall, seq uint32, oversubscribed bool) {
	all := b.number(seq, false, oversubscribed)
	b.prepareFast(k)
	b.started(all)
}

// number begins an operation. It reports whether all ranks waited for all in the last one.
func (b *Area) number(seq uint32, reads, oversubscribed bool) (all bool) {
	o := &b.op
	all = o.all
	o.follows = all && o.seq == seq-1
	o.seq, o.reads, o.oversubscribed, o.duplex, o.sleepy = seq, reads, oversubscribed, false, false
	o.told, o.moved, o.protocol = false, false, nil
	b.finished = seq - 1 // calls come one after the other
	return all
}

// started ends the beginning of an operation. all says that all ranks waited for all in the
// last one.
func (b *Area) started(all bool) {
	o := &b.op
	if all {
		b.after.lo, b.after.hi = o.lo, o.next
		b.after.some = !o.all && o.next >= o.lo && (o.lo != b.rank || o.next != b.rank)
	}
	if b.tellDue(o.seq) {
		o.told = true
	}
}

// Step continues the operation as far as the other ranks allow, and reports whether it is
// done.
func (b *Area) Step() (done bool) { return b.step(&b.op) }

// Told reports whether something was published since the last call for which others may
// sleep. If so, the caller must call WakeSleepers.
func (b *Area) Told() bool {
	told := b.op.told
	b.op.told = false
	return told
}

// Moved reports whether data came in the last step.
func (b *Area) Moved() bool { return b.op.moved }

// Next returns the rank that the operation waits for, in its own order. It changes when
// that is another one.
func (b *Area) Next() int { return b.op.next }

// Fault returns why the operation cannot continue, or nil.
func (b *Area) Fault() *fault.Fault { return b.op.fault }

// Reads reports whether the operation copies from other ranks' memory.
func (b *Area) Reads() bool { return b.op.reads }

// Awaits reports whether the operation cannot end because a rank has not done its part.
func (b *Area) Awaits(rank int) bool { return b.awaits(&b.op, rank) }

// End ends the operation on this rank, done or not, and drops what belongs to the caller.
func (b *Area) End(failed bool) {
	o := &b.op
	if f := o.protocol; f != nil {
		f.end(b, o, failed)
	}
	o.forget()
	if failed {
		b.finished = o.seq
		b.Tell()
		b.WakeAll()
	}
}
