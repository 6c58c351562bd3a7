// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"

	"gompi/internal/engine"
)

const opSplitType engine.Op = "SplitType"

// SplitKind is what the ranks of one communicator of SplitType share.
type SplitKind int

// The kinds of SplitType. MPI 4.1 section 7.4.2.
const (
	// SplitShared: they can share memory, as they run on one host.
	SplitShared SplitKind = iota + 1
	// SplitHWUnguided: a part of the hardware within c's. None is known, so
	// the result is nil.
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
	const n = 16
	hosts := make([]byte, n*c.core.size)
	mine := hosts[n*c.core.rank:][:n]
	copy(mine, hostName())
	if err := Allgather(c, mine, hosts); err != nil {
		return nil, err
	}
	all, id, err := c.colors(opSplitType, int(kind), key)
	if err != nil {
		return nil, err
	}
	common, from := SplitKind(Undefined), 0
	for r, x := range all {
		switch k := SplitKind(x.color); {
		case k == Undefined:
		case k < SplitShared || k > SplitHWGuided:
			return nil, c.argError(ErrArg, opSplitType, ProcNull, -1, -1, -1, "", fmt.Errorf("rank %d gives kind %d", r, k))
		case common == Undefined:
			common, from = k, r
		case k != common:
			return nil, c.argError(ErrArg, opSplitType, ProcNull, -1, -1, -1, "", fmt.Errorf("rank %d gives kind %d, rank %d kind %d", from, common, r, k))
		}
	}
	if kind != SplitShared {
		c.core.e.SkipContext(id)
		return nil, nil
	}
	for r := range all {
		if !bytes.Equal(mine, hosts[n*r:][:n]) {
			all[r].color = Undefined
		}
	}
	return c.child(id, c.chosen(all, int(SplitShared)), c.Name()+"/host")
}

// hostName tells hosts apart: the running kernel, and the network namespace in
// which its processes find each other.
func hostName() []byte {
	h := fnv.New128a()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		boot = []byte(name)
	}
	h.Write(boot)
	net, _ := os.Readlink("/proc/self/ns/net")
	h.Write([]byte(net))
	return h.Sum(nil)
}
