// SPDX-License-Identifier: Apache-2.0

package core

import (
	"hash/fnv"
	"os"

	"gompi/internal/wire"
)

// Hosts numbers the hosts of all ranks of an intracommunicator as far as that
// takes no message: nil, on all of them, if they were not told. The head tells
// with each set where its members are, and so of those in it;
// GOMPI_HOSTS_PRETEND=n pretends that each n processes that were started one
// after the other are on one host.
func (c *Comm) Hosts() []uint32 {
	perHost := c.Proc.perHost
	if perHost <= 0 {
		return c.hosts.All()
	}
	hosts := make([]uint32, c.Size)
	for r, id := range c.Ctx.Members.All() {
		hosts[r] = (id.Serial - 1) / uint32(perHost)
	}
	return hosts
}

// hostsOf is what all who have agreed know of where members are, who are some of
// them: nothing where two groups have met, each of which knows its own.
func (a *Agreed) hostsOf(members wire.Members) wire.Hosts {
	switch by := a.by; {
	case by == nil:
		return a.hosts
	case by.Both != nil:
		return nil
	default:
		return by.hosts.Of(by.Ctx.Members, members)
	}
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
