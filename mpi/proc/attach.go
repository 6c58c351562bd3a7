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

// RemoteAttach makes an intercommunicator between the group of c and processes that ranks
// of c have started: those of the requests that the ranks give, in the order of the ranks
// and of what each gives; none is allowed. In these processes it is mpi.Process.Parent, as
// with CommSpawn: that waits until they are attached, or freed. It returns when all have
// joined; ErrSpawn if one ends before, has been attached before, or is not started. A
// process that never joins holds it up, and the context of c on rank 0 ends it. The
// requests are as they were.
//
// A request of Iaccept or Icontact connects with the group of the other end, which calls
// RemoteAttach with its request, too. One rank gives it, and nobody gives anything else.
//
// c is an intracommunicator. While a change of process sets is not decided that one of
// the processes has a part in it waits for the decision. Collective over c.
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
				bad = fmt.Errorf("rank %d gives what cannot be attached", rank)
			}
		case what == offersContact && (leader >= 0 || n > 0), what == offersProcs && len(list) > 0 && leader >= 0:
			bad = errors.New("a request of Iaccept or Icontact is given beside another")
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
		return nil, c.Core().Fail(fault.Request, op, mpi.ProcNull, -1, -1, "", errors.New("nobody gives a request"))
	}
	d, err := c.Core().Meet(op, 0, fault.Spawn, m)
	if err != nil {
		return nil, err
	}
	return d.(*mpi.Comm), nil
}

// What a rank gives, as the first of its words.
const (
	offersNothing = iota // what it gives is wrong
	offersProcs          // processes, by their serials
	offersContact
)

// offers is what this rank gives, in words.
func offers(ops []*mpi.Persistent) ([]int64, error) {
	list := []int64{offersProcs}
	for _, op := range ops {
		if x := contactOf(op); x != nil {
			if len(ops) > 1 {
				return []int64{offersNothing}, errors.New("a request of Iaccept or Icontact is given beside another")
			}
			if !x.ready() {
				return []int64{offersNothing}, errors.New("nobody was met by the request")
			}
			return []int64{offersContact}, nil
		}
		x := placeOf(op)
		if x == nil {
			return []int64{offersNothing}, errors.New("what is given is no request of this package")
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

// Attach makes a communicator of the ranks of c and, after them, of processes that ranks
// of c have started, as RemoteAttach: these call Replace meanwhile. c stays as it is;
// where Gropp and Lusk's MPI_Attach replaces it the program assigns the result.
// Collective over c and those processes.
func Attach(c *mpi.Comm, ops ...*mpi.Persistent) (*mpi.Comm, error) {
	d, err := remoteAttach(opAttach, c, ops)
	if err != nil {
		return nil, err
	}
	m, err := d.IntercommMerge(false)
	return m, errors.Join(err, d.Free())
}

// Replace is what the processes call that others Attach: the communicator of both, in
// which they come last, in place of their world, which stays as it is. Their Parent is
// freed. ErrSpawn if nobody attaches them. Collective over all that are attached together,
// and who attaches them. MPI_INTERCOMM_REPLACE(WORLD, PARENT) of Gropp and Lusk.
func Replace(world *mpi.Comm) (*mpi.Comm, error) {
	parent, err := world.Process().Parent()
	if err != nil {
		return nil, err
	}
	if parent == nil {
		return nil, world.Core().Fail(fault.Spawn, opReplace, mpi.ProcNull, -1, -1, "", errors.New("nobody has attached this process"))
	}
	m, err := parent.IntercommMerge(true)
	return m, errors.Join(err, parent.Free())
}

// Detach parts the ranks of c that leave from the others, and disconnects c. The others
// get a communicator of their own: of an intercommunicator again one, or nil where all of
// a group leave. A rank that leaves gets nil. Collective over c. MPI_Detach of Gropp and Lusk, who
// leave open what becomes of the old one.
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
