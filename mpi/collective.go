// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// Each collective operation has one builder, a method of call that turns the
// arguments into those of the engine and checks them. Its three forms are run,
// start and prepare; the functions over []T are those over Buf.

// collNames are the operations as errors and roll calls name them.
var collNames = [...]fault.Call{
	collectives.OpBarrier: "Barrier", collectives.OpBcast: "Bcast", collectives.OpReduce: "Reduce",
	collectives.OpAllreduce: "Allreduce", collectives.OpGather: "Gather", collectives.OpScatter: "Scatter",
	collectives.OpAllgather: "Allgather", collectives.OpAllgatherv: "Allgatherv", collectives.OpAlltoall: "Alltoall",
	collectives.OpGatherv: "Gatherv", collectives.OpScatterv: "Scatterv", collectives.OpAlltoallv: "Alltoallv",
	collectives.OpReduceScatterBlock: "ReduceScatterBlock", collectives.OpReduceScatter: "ReduceScatter",
	collectives.OpScan: "Scan", collectives.OpExscan: "Exscan",
	collectives.OpNeighborAllgather: "NeighborAllgather", collectives.OpNeighborAllgatherv: "NeighborAllgatherv",
	collectives.OpNeighborAlltoall: "NeighborAlltoall", collectives.OpNeighborAlltoallv: "NeighborAlltoallv",
}

// call is one collective call: what the engine runs, or why it cannot.
type call struct {
	engine.CollArgs
	c   *Comm
	err error
}

// begin starts to build a call. Like all checks it reports whether to go on.
func (a *call) begin(c *Comm, kind collectives.Op) bool {
	a.c, a.Op = c, collNames[kind]
	if c == nil {
		return a.bad(ErrComm, "%w", errNoComm)
	}
	a.User, a.Unit = c.user, 1
	a.Args.Op, a.Args.Rank, a.Args.Size, a.Args.Remote = kind, c.core.Rank, c.core.Size, c.core.Ctx.Remote.Len()
	a.Args.Nodes = c.core.Nodes
	if a.Args.Remote > 0 && kind >= collectives.OpScan {
		return a.bad(ErrComm, "it is an intercommunicator")
	}
	return true
}

// bad ends the building of a call.
func (a *call) bad(class Class, format string, args ...any) bool {
	a.err = a.c.fail(&argFault{class: class, op: a.Op, err: fmt.Errorf(format, args...)})
	return false
}

// as makes the call a part of another, which errors and roll calls then name.
func (a *call) as(op fault.Call) *call {
	a.Op = op
	return a
}

// run makes the call.
func (a *call) run() error {
	if a.err != nil {
		return a.refuse(a.err)
	}
	if f := a.c.core.Run(&a.CollArgs); f != nil {
		return a.c.errorOf(a.Op, ProcNull, -1, f)
	}
	return nil
}

// start makes the call as a request.
func (a *call) start() Request {
	if a.err != nil {
		return a.c.failedRequest(a.Op, a.refuse(a.err))
	}
	h, f := a.c.core.Start(&a.CollArgs)
	return a.c.request(a.Op, ProcNull, -1, h, f)
}

// prepare makes the call for many starts.
func (a *call) prepare() *Persistent { return a.c.collInit(a.CollArgs, a.err) }

// refuse tells the others that this rank cannot make the call, so that theirs
// ends, and returns why. It does not wait.
func (a *call) refuse(why error) error {
	if a.c != nil {
		a.c.core.Refuse(&a.CollArgs, why)
	}
	return why
}

// Barrier returns when every rank has called it. Collective.
// MPI 4.1 section 6.3.
func (c *Comm) Barrier() error {
	if made, err := c.briefBarrier(); made {
		return err
	}
	return new(call).barrier(c).run()
}

// Ibarrier starts a Barrier. Collective. MPI 4.1 section 6.12.1.
func (c *Comm) Ibarrier() Request { return new(call).barrier(c).start() }

// BarrierInit prepares a Barrier. All ranks call the Inits of a communicator's
// persistent collectives in the same order among its collective calls; Starts
// may come in any order. Collective. MPI 4.1 section 6.13.1.
func (c *Comm) BarrierInit() *Persistent { return new(call).barrier(c).prepare() }

func (a *call) barrier(c *Comm) *call {
	a.begin(c, collectives.OpBarrier)
	return a
}

// one makes a call of one element in memory that is reused, and gives what
// the call leaves in out, which is zero before.
func one[T any](c *Comm, x T, f func(in, out Buf) error) (T, error) {
	t := typeOf[T]()
	if c == nil || t.Size > scalarBytes || t.Err != nil {
		in, out := []T{x}, make([]T, 1)
		err := f(BufOf(in), BufOf(out))
		return out[0], err
	}
	s := c.core.proc.scalar()
	defer c.core.proc.putScalar(s)
	var zero T
	*scalarIn[T](s), *scalarOut[T](s) = x, zero
	in, out := scalarBufs(s, t)
	err := f(Buf{in}, Buf{out})
	return *scalarOut[T](s), err
}
