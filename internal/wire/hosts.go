// SPDX-License-Identifier: Apache-2.0

package wire

// NoHost is the host of a process that has ended so long ago that nobody knows
// where it was.
const NoHost = 1<<32 - 1

// HostRun says that Count successive members of a set are on a host, by its
// number in the job.
type HostRun struct {
	Host  uint32
	Count int
}

// Hosts says on which host each member of a set is, in their order, in as few
// runs as there can be. Empty: it is not said.
type Hosts []HostRun

// Add appends count members, at least 1.
func (h Hosts) Add(host uint32, count int) Hosts {
	if k := len(h) - 1; k >= 0 && h[k].Host == host {
		h[k].Count += count
		return h
	}
	return append(h, HostRun{host, count})
}

// Len is how many members it tells of.
func (h Hosts) Len() int {
	n := 0
	for _, r := range h {
		n += r.Count
	}
	return n
}

// At is the host of a member; NoHost if it is not said.
func (h Hosts) At(member int) uint32 {
	for _, r := range h {
		if member -= r.Count; member < 0 {
			return r.Host
		}
	}
	return NoHost
}
