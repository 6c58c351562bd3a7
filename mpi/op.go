// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// Op is a reduction operation: a value, cheap to copy. MPI 4.1 section 6.9.
type Op struct {
	name        string
	code        kernel.Op
	commutative bool
	user        kernel.Func // instead of code
	elem        *dtype.Type // of user
}

// The predefined operations. Sum and Prod are defined for integers, floats and
// complex numbers; Min and Max for integers and floats; BitAnd, BitOr and
// BitXor for integers; LogAnd, LogOr and LogXor for bool and integers, of which
// zero is false, anything else is true, and true results are 1. MinLoc and
// MaxLoc are for ValueIndex. Types with another name count as what they are
// made of. Integers wrap around.
//
// Where floats are concerned, a NaN in the operands makes the result a NaN,
// also that of Min and Max, and -0 is less than 0. All NaNs that operations
// give have the same bits, so that a result does not depend on which rank or
// machine computed it. MPI 4.1 sections 6.9.2 to 6.9.4.
var (
	Sum    = Op{name: "Sum", code: kernel.Sum, commutative: true}
	Prod   = Op{name: "Prod", code: kernel.Prod, commutative: true}
	Min    = Op{name: "Min", code: kernel.Min, commutative: true}
	Max    = Op{name: "Max", code: kernel.Max, commutative: true}
	BitAnd = Op{name: "BitAnd", code: kernel.BitAnd, commutative: true}
	BitOr  = Op{name: "BitOr", code: kernel.BitOr, commutative: true}
	BitXor = Op{name: "BitXor", code: kernel.BitXor, commutative: true}
	LogAnd = Op{name: "LogAnd", code: kernel.LogAnd, commutative: true}
	LogOr  = Op{name: "LogOr", code: kernel.LogOr, commutative: true}
	LogXor = Op{name: "LogXor", code: kernel.LogXor, commutative: true}
	MinLoc = Op{name: "MinLoc", code: kernel.MinLoc, commutative: true}
	MaxLoc = Op{name: "MaxLoc", code: kernel.MaxLoc, commutative: true}
)

// Replace overwrites and NoOp leaves the target's element: operations of
// accumulate calls on remote memory only. MPI 4.1 section 12.3.4.
var (
	Replace = Op{name: "Replace", code: kernel.Replace}
	NoOp    = Op{name: "NoOp", code: kernel.NoOp}
)

// String is the operation's name.
func (o Op) String() string { return o.name }

// Ordered is o for operands whose order matters: a reduction applies it in the
// order of the ranks, a op b for a from lower ones. For functions that are not
// commutative. MPI 4.1 section 6.9.5.
func (o Op) Ordered() Op {
	o.commutative = false
	return o
}

// Commutative reports whether the order of operands does not matter.
// MPI 4.1 section 6.9.7.
func (o Op) Commutative() bool { return o.commutative }

// on returns the kernel for elements of t, nil if there is none.
func (o *Op) on(t *dtype.Type) kernel.Func {
	if o.user == nil {
		return kernel.Of(o.code, t.Kind)
	}
	if o.elem != t {
		return nil
	}
	return o.user
}

const opReduceLocal fault.Call = "ReduceLocal"

// ReduceLocal does inout[i] = in[i] op inout[i] for all i: what one step of a
// reduction does. The slices have one length and do not overlap. Local; in is
// only read. MPI 4.1 section 6.9.7.
func ReduceLocal[T any](in, inout []T, op Op) error {
	return reduceLocal(BufOf(in), BufOf(inout), &op)
}

func reduceLocal(in, inout Buf, op *Op) error {
	var none *Comm
	t := inout.b.Type
	if t.Err != nil {
		return none.fail(&argFault{class: ErrType, op: opReduceLocal, err: t.Err})
	}
	if in.b.Count() != inout.b.Count() {
		return none.fail(&argFault{class: ErrCount, op: opReduceLocal, got: in.b.Count(), want: inout.b.Count(), unit: "elements in"})
	}
	f := op.on(t)
	if f == nil {
		return none.fail(&argFault{class: ErrOp, op: opReduceLocal, err: fmt.Errorf("%s of %s", op.name, t.Name)})
	}
	if in.b.Overlaps(inout.b) {
		return none.fail(&argFault{class: ErrArg, op: opReduceLocal, err: fmt.Errorf("the buffers overlap")})
	}
	f(inout.b.Addr(), in.b.Addr(), inout.b.Addr(), inout.b.Count())
	return nil
}
