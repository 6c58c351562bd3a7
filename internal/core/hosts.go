// SPDX-License-Identifier: Apache-2.0

package core

import (
	"hash/fnv"
	"os"

	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// Hosts returns the number of the host of each rank of an intracommunicator, without a
// message: nil, on all ranks alike, if it is not known. The head tells the hosts of the
// members with each set. GOMPI_HOSTS_PRETEND=n pretends that every n processes that were
// started one after the other are on one host.
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

// hostsOf returns the hosts of members, as far as all processes of the agreement know them.
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

// tells returns the hosts of members for a message to them: from the world if all of them
// began in it, else from the head. It is used in jobs with several hosts.
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

// HostName identifies a host: the running kernel, and the network namespace in which its
// processes find each other.
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
