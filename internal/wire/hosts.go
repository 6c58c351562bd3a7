// SPDX-License-Identifier: Apache-2.0

package wire

import "slices"

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

// Of is where some of the members, h being their hosts, are in an order of their
// own; empty if that is not said.
func (h Hosts) Of(members, some Members) Hosts {
	if len(h) == 0 || some.Len() == 0 {
		return nil
	}
	if len(h) == 1 {
		if some.Len() == members.Len() {
			return h
		}
		return Hosts{{h[0].Host, some.Len()}}
	}
	var of Hosts
	all := h.all()
	for _, id := range some.All() {
		i := members.Index(id)
		if i < 0 || i >= len(all) {
			return nil
		}
		of = of.Add(all[i], 1)
	}
	return of
}

// All is the host of each member; nil if one is not known, or it is not said.
func (h Hosts) All() []uint32 {
	if len(h) == 0 || slices.ContainsFunc(h, func(r HostRun) bool { return r.Host == NoHost }) {
		return nil
	}
	return h.all()
}

func (h Hosts) all() []uint32 {
	all := make([]uint32, 0, h.Len())
	for _, r := range h {
		for range r.Count {
			all = append(all, r.Host)
		}
	}
	return all
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
