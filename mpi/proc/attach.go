// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"math"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

const (
	opAttach       fault.Call = "Attach"
	opRemoteAttach fault.Call = "RemoteAttach"
	opReplace      fault.Call = "Replace"
	opDetach       fault.Call = "Detach"
)

// RemoteAttach makes an intercommunicator between the group of c, an intracommunicator, and
// processes that ranks of c have started. Collective over c.
//
// Each rank gives the requests of the processes that it wants to attach, or none. The
// processes stand in the order of the ranks, and in the order of each rank's requests. The
// intercommunicator is their mpi.Process.Parent, as with CommSpawn: Parent waits until they
// are attached, or freed. The call returns when all processes have joined. It waits for a
// process that never joins until the context of c on rank 0 ends. While a change of process
// sets that concerns one of the processes is undecided, it waits for the decision. The
// requests do not change.
//
// A request of Iaccept or Icontact connects with the group at the other end, which calls
// RemoteAttach with its request as well. Then one rank gives that request, and no rank gives
// another one.
//
// Errors: mpi.ErrSpawn if a process ends before, has been attached before, or is not
// started; mpi.ErrRequest for other requests, or if no rank gives one.
// Gropp and Lusk, Dynamic Process Management in an MPI Setting (1995), MPI_Remote_attach.
func RemoteAttach(c *mpi.Comm, ops ...*mpi.Persistent) (*mpi.Comm, error) {
	return remoteAttach(opRemoteAttach, c, ops)
}

func remoteAttach(op fault.Call, c *mpi.Comm, ops []*mpi.Persistent) (*mpi.Comm, error) {
	if err := c.Core().Intra(op); err != nil {
		return nil, err
	}
	mine, bad := offers(ops)
	all, err := mpi.AllgatherNew(c, mine)
	if err != nil {
		return nil, err
	}
	leader := -1
	var procs wire.MembersBuilder
	n := 0
	for rank, list := range all {
		what := int64(offersNothing)
		if len(list) > 0 {
			what = list[0]
			list = list[1:]
		}
		switch {
		case what == offersNothing:
			if rank != c.Rank() {
				bad = fmt.Errorf("rank %d gives a request that cannot be attached", rank)
			}
		case what == offersContact && (leader >= 0 || n > 0), what == offersProcs && len(list) > 0 && leader >= 0:
			bad = errors.New("a request of Iaccept or Icontact cannot be combined with others")
		case what == offersContact:
			leader = rank
		}
		for _, serial := range list {
			if serial < 1 || serial > math.MaxUint32 {
				bad = fmt.Errorf("rank %d gives process %d", rank, serial)
				break
			}
			procs.Add(wire.Range{First: wire.ProcID{Job: c.Core().Comm().Proc.Self.Job, Serial: uint32(serial)}, Count: 1})
			n++
		}
	}
	m := &protocol.Attach{Parents: c.Core().Comm().Ctx.Members, Procs: procs.Members()}
	if bad == nil {
		bad = sendable(m.Procs)
	}
	switch {
	case bad != nil:
		return nil, c.Core().Fail(fault.Request, op, mpi.ProcNull, -1, -1, "", bad)
	case leader >= 0:
		return attachContact(c, leader, ops)
	case n == 0:
		return nil, c.Core().Fail(fault.Request, op, mpi.ProcNull, -1, -1, "", errors.New("no rank gives a request"))
	}
	d, err := c.Core().Meet(op, 0, fault.Spawn, m)
	if err != nil {
		return nil, err
	}
	return d.(*mpi.Comm), nil
}

// What a rank offers, as the first of its words.
const (
	offersNothing = iota // its requests cannot be attached
	offersProcs          // processes, by their serials
	offersContact
)

// offers returns what this rank offers, in words.
func offers(ops []*mpi.Persistent) ([]int64, error) {
	list := []int64{offersProcs}
	for _, op := range ops {
		if x := contactOf(op); x != nil {
			if len(ops) > 1 {
				return []int64{offersNothing}, errors.New("a request of Iaccept or Icontact cannot be combined with others")
			}
			if !x.ready() {
				return []int64{offersNothing}, errors.New("the request has met no process")
			}
			return []int64{offersContact}, nil
		}
		x := placeOf(op)
		if x == nil {
			return []int64{offersNothing}, errors.New("the request is not of package proc")
		}
		unlock := x.lock()
		started := x.started && x.why == nil && !x.freed
		unlock()
		if !started {
			return []int64{offersNothing}, errors.New("a process is not started")
		}
		list = append(list, int64(x.id.Serial))
	}
	return list, nil
}

// Attach makes a communicator of the ranks of c and, behind them, of processes that ranks of
// c have started: see RemoteAttach. Collective over c and those processes, which call Replace.
// c stays as it is; Gropp and Lusk's MPI_Attach replaces it, here the program assigns the
// result. Errors: those of RemoteAttach.
func Attach(c *mpi.Comm, ops ...*mpi.Persistent) (*mpi.Comm, error) {
	d, err := remoteAttach(opAttach, c, ops)
	if err != nil {
		return nil, err
	}
	m, err := d.IntercommMerge(false)
	return m, errors.Join(err, d.Free())
}

// Replace returns the communicator of Attach in a process that others attach. Collective over
// all processes that are attached together, and the ranks that attach them. The attached
// processes come last in it. world stays as it is; Parent is freed. Error: mpi.ErrSpawn if no
// process attaches this one. MPI_INTERCOMM_REPLACE(WORLD, PARENT) of Gropp and Lusk.
func Replace(world *mpi.Comm) (*mpi.Comm, error) {
	parent, err := world.Process().Parent()
	if err != nil {
		return nil, err
	}
	if parent == nil {
		return nil, world.Core().Fail(fault.Spawn, opReplace, mpi.ProcNull, -1, -1, "", errors.New("no process has attached this one"))
	}
	m, err := parent.IntercommMerge(true)
	return m, errors.Join(err, parent.Free())
}

// Detach disconnects c and makes a communicator of the ranks that do not leave. Collective
// over c. A rank that leaves gets nil. If c is an intercommunicator the result is one as
// well, or nil where all ranks of a group leave. MPI_Detach of Gropp and Lusk, which does not
// define the old communicator afterwards.
func Detach(c *mpi.Comm, leave bool) (*mpi.Comm, error) {
	color := 0
	if leave {
		color = mpi.Undefined
	}
	d, err := c.Split(color, c.Rank())
	if err != nil {
		return nil, err
	}
	return d, c.Disconnect()
}
