// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
)

// Where a list says which hosts there are, processes go where it says.

// HostSlots says how many processes each host is there for from now on, by number. Who is
// there beyond that leaves by the next change of the size of the main set.
func (h *Head) HostSlots(slots []int) {
	h.cfg.HostSlots, h.listed = slices.Clone(slots), true
}

// Crowd are the members of the main set that are on hosts which have more processes than
// slots, from each as many as it has too many, the last ones.
func (h *Head) Crowd() (list []wire.ProcID) {
	if !h.listed || len(h.hosts) == 1 {
		return nil
	}
	over := make([]int, len(h.hosts))
	for i := range over {
		over[i] = h.hosts[i].taken() - h.slots(uint32(i))
	}
	for _, id := range slices.Backward(h.partakers(h.main)) {
		p := h.proc(id)
		if over[p.host] > 0 && p.leaves == nil {
			over[p.host]--
			list = append(list, id)
		}
	}
	return list
}

// spread is a change of the main set by so many that also has the crowd leave, which
// others replace.
func (h *Head) spread(by int, crowd []wire.ProcID) change.Request {
	r := change.Request{Kind: change.Replace, In: []uint32{0}, Out: crowd}
	join := by + len(crowd)
	if join > 0 {
		r.Join = []int{join}
	}
	for _, id := range slices.Backward(h.partakers(h.main)) {
		if join < 0 && !slices.Contains(crowd, id) {
			r.Out = append(r.Out, id)
			join++
		}
	}
	return r
}
