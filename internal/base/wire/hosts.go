// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// NoHost is the host of a process that ended so long ago that its host is no longer
// known.
const NoHost = 1<<32 - 1

// HostRun says that Count successive members of a set are on one host. Host is the
// number of the host in the job.
type HostRun struct {
	Host  uint32
	Count int
}

// Hosts lists the host of each member of a set, in the order of the members, in as few
// runs as possible. Empty means that the hosts are not known.
type Hosts []HostRun

// Add appends count members, at least 1, on one host.
func (h Hosts) Add(host uint32, count int) Hosts {
	if k := len(h) - 1; k >= 0 && h[k].Host == host {
		h[k].Count += count
		return h
	}
	return append(h, HostRun{host, count})
}

// Len returns the number of members in the list.
func (h Hosts) Len() int {
	n := 0
	for _, r := range h {
		n += r.Count
	}
	return n
}

// Subset returns the hosts of some of the members, in the order of some. h lists the
// hosts of members. The result is empty if a host is not known.
func (h Hosts) Subset(members, some Members) Hosts {
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
	all := h.expand()
	for _, id := range some.All() {
		i := members.Index(id)
		if i < 0 || i >= len(all) {
			return nil
		}
		of = of.Add(all[i], 1)
	}
	return of
}

// All returns the host of each member, or nil if the host of any member is not known.
func (h Hosts) All() []uint32 {
	if len(h) == 0 || slices.ContainsFunc(h, func(r HostRun) bool { return r.Host == NoHost }) {
		return nil
	}
	return h.expand()
}

// expand returns the host of each member.
func (h Hosts) expand() []uint32 {
	all := make([]uint32, 0, h.Len())
	for _, r := range h {
		for range r.Count {
			all = append(all, r.Host)
		}
	}
	return all
}

// At returns the host of a member, or NoHost if it is not known.
func (h Hosts) At(member int) uint32 {
	for _, r := range h {
		if member -= r.Count; member < 0 {
			return r.Host
		}
	}
	return NoHost
}

// Concat returns the hosts of the members of h followed by those of more. The result
// is empty if either list is.
func (h Hosts) Concat(more Hosts) Hosts {
	if len(h) == 0 || len(more) == 0 {
		return nil
	}
	h = slices.Clone(h)
	for _, r := range more {
		h = h.Add(r.Host, r.Count)
	}
	return h
}

// hostRunBytes is the size of an encoded run. The count of the runs takes half of that.
const hostRunBytes = 8

// HostsBytes bounds the size of what AppendHosts appends for so many members.
func HostsBytes(members int) int { return hostRunBytes/2 + members*hostRunBytes }

// AppendHosts appends the encoding of h to b.
func AppendHosts(b []byte, h Hosts) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h)))
	for _, r := range h {
		b = binary.LittleEndian.AppendUint32(b, r.Host)
		b = binary.LittleEndian.AppendUint32(b, uint32(r.Count))
	}
	return b
}

// ReadHosts decodes the hosts of so many members, or an empty list, in at most maxRuns
// runs. It returns the rest of b.
func ReadHosts(b []byte, members, maxRuns int) (Hosts, []byte, error) {
	if len(b) < hostRunBytes/2 {
		return nil, nil, fmt.Errorf("list of hosts ends %d bytes early", hostRunBytes/2-len(b))
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	b = b[hostRunBytes/2:]
	switch {
	case n == 0:
		return nil, b, nil
	case n > uint64(maxRuns):
		return nil, nil, fmt.Errorf("%d runs of hosts, at most %d allowed", n, maxRuns)
	case n*hostRunBytes > uint64(len(b)):
		return nil, nil, fmt.Errorf("%d runs of hosts in %d bytes", n, len(b))
	}
	h := make(Hosts, n)
	left := members
	for i := range h {
		r := HostRun{Host: binary.LittleEndian.Uint32(b), Count: int(binary.LittleEndian.Uint32(b[hostRunBytes/2:]))}
		b = b[hostRunBytes:]
		if r.Count < 1 || r.Count > left || i > 0 && r.Host == h[i-1].Host {
			return nil, nil, fmt.Errorf("run %d of %d members on host %d, %d are left", i, r.Count, r.Host, left)
		}
		h[i] = r
		left -= r.Count
	}
	if left > 0 {
		return nil, nil, fmt.Errorf("the hosts of %d members are missing", left)
	}
	return h, b, nil
}
