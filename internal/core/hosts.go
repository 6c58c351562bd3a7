// SPDX-License-Identifier: Apache-2.0

package core

import (
	"hash/fnv"
	"os"

	"gompi/internal/wire"
)

// HostsOf numbers the hosts of processes as far as that takes no message: nil
// if this process was told of no other host than its own. The launcher tells of
// none; GOMPI_HOSTS_PRETEND=n pretends that each n processes that were started
// one after the other are on one host.
func (p *Process) HostsOf(members wire.Members) []uint32 {
	if p.perHost <= 0 {
		return nil
	}
	hosts := make([]uint32, members.Len())
	for r, id := range members.All() {
		hosts[r] = (id.Serial - 1) / uint32(p.perHost)
	}
	return hosts
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
