// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/core"
)

const opSplitType fault.Call = "SplitType"

// SplitKind is what the ranks of one communicator of SplitType share.
type SplitKind int

// The kinds of SplitType. MPI 4.1 section 7.4.2.
const (
	// SplitShared: they can share memory, as they run on one host and use it.
	// A rank that is kept to other transports is alone.
	SplitShared SplitKind = iota + 1
	// SplitHWUnguided: the largest part of the hardware that is less than that
	// of c: one host of several. Less is not known: on one host the result is
	// nil.
	SplitHWUnguided
	// SplitHWGuided: the hardware that the key "mpi_hw_resource_type" of info
	// names. Known is "mpi_shared_memory"; for others the result is nil.
	SplitHWGuided
)

const hwResource, hwShared = "mpi_hw_resource_type", "mpi_shared_memory"

// SplitType makes a communicator for each group of ranks that share something,
// in the order of their keys, equal ones in the order of their ranks. kind is
// equal on all ranks but for those that give Undefined, whose result is nil;
// differing kinds are ErrArg on all. info may be nil. c is an intracommunicator.
// Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) SplitType(kind SplitKind, key int, info *Info) (*Comm, error) {
	if err := c.intra(opSplitType); err != nil {
		return nil, err
	}
	if kind == SplitHWGuided && info.Get(hwResource) == hwShared {
		kind = SplitShared
	}
	hosts, err := c.hosts(opSplitType)
	if err != nil {
		return nil, err
	}
	shares := 0
	if c.core.Engine.Shares() {
		shares = 1
	}
	all, a, f := c.core.Choices(opSplitType, c.user, int(kind)<<1|shares, key, kind == SplitShared)
	if f != nil {
		return nil, c.errorOf(opSplitType, ProcNull, -1, f)
	}
	common, from := SplitKind(Undefined), 0
	for r := range all {
		alone := all[r].Color&1 == 0
		all[r].Color >>= 1
		switch k := SplitKind(all[r].Color); {
		case k == Undefined:
		case k < SplitShared || k > SplitHWGuided:
			a.TakeBack()
			return nil, c.fail(&argFault{class: ErrArg, op: opSplitType, err: fmt.Errorf("rank %d gives kind %d", r, k)})
		case common == Undefined:
			common, from = k, r
		case k != common:
			a.TakeBack()
			return nil, c.fail(&argFault{class: ErrArg, op: opSplitType, err: fmt.Errorf("rank %d gives kind %d, rank %d kind %d", from, common, r, k)})
		}
		if alone && kind == SplitShared {
			hosts[r] = uint32(len(hosts) + r)
		}
	}
	several := slices.ContainsFunc(hosts, func(h uint32) bool { return h != hosts[0] })
	if kind != SplitShared && !(kind == SplitHWUnguided && several) {
		a.Decline()
		return nil, nil
	}
	for r := range all {
		if hosts[r] != hosts[c.core.Rank] {
			all[r].Color = Undefined
		}
	}
	return c.child(a, a.Chosen(all, int(kind)), c.Name()+"/host")
}

// hosts numbers the hosts of all ranks of an intracommunicator. Collective.
func (c *Comm) hosts(op fault.Call) ([]uint32, error) {
	if hosts := c.core.Hosts(); hosts != nil {
		return hosts, nil
	}
	mine := core.HostName()
	all := make([]byte, len(mine)*c.core.Size)
	if err := new(call).allgather(c, BufOf(mine), BufOf(all)).as(op).run(); err != nil {
		return nil, err
	}
	number := map[string]uint32{}
	hosts := make([]uint32, c.core.Size)
	for r := range hosts {
		name := string(all[len(mine)*r:][:len(mine)])
		n, ok := number[name]
		if !ok {
			n = uint32(len(number))
			number[name] = n
		}
		hosts[r] = n
	}
	return hosts, nil
}
