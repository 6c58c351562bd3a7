// SPDX-License-Identifier: Apache-2.0

package core

import (
	"hash/fnv"
	"os"

	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// Hosts numbers the hosts of all ranks of an intracommunicator as far as that
// takes no message: nil, on all of them, if they were not told. The head tells
// with each set where its members are, and so of those in it;
// GOMPI_HOSTS_PRETEND=n pretends that each n processes that were started one
// after the other are on one host.
func (c *Comm) Hosts() []uint32 {
	perHost := c.Proc.perHost
	if perHost <= 0 || mixed(c.Ctx.Members) {
		return c.hosts.All()
	}
	hosts := make([]uint32, c.Size)
	for r, id := range c.Ctx.Members.All() {
		hosts[r] = (id.Serial - 1) / uint32(perHost)
	}
	return hosts
}

// hostsOf is what all who have agreed know of where members are, who are some of
// them.
func (a *Agreed) hostsOf(members wire.Members) wire.Hosts {
	switch {
	case mixed(members):
		return hostsOfJobs(members)
	case a.members.Len() > 0:
		return a.hosts.Subset(a.members, members)
	case a.by != nil:
		w := a.by.whole()
		return w.hosts.Subset(w.Ctx.Members, members)
	}
	return nil
}

// tells is where members are, as far as this process learns it, to tell the others:
// from the world in which all of them began, else from the head. It is of use where
// the job has several hosts.
func (p *Process) tells(members wire.Members) wire.Hosts {
	if p.mayLend(members) {
		world := p.lender.Load()
		return world.hosts.Subset(world.Ctx.Members, members)
	}
	s, err := p.Control.DefineSet(members)
	if err != nil {
		return nil // nobody knows it then
	}
	_ = p.Control.ReleaseSet(s.Number) // the connection is lost: the next call says so
	if len(s.Hosts) > engine.MaxHostRuns {
		return nil
	}
	return s.Hosts
}

// HostName tells hosts apart: the running kernel, and the network namespace in
// which its processes find each other.
func HostName() []byte {
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
