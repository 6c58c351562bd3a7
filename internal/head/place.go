// SPDX-License-Identifier: Apache-2.0

package head

import "gompi/internal/control"

// Place is where some of the processes go that are started together: Count of them,
// in the order of their ranks.
type Place struct {
	Host  uint32
	Count int
	// Reservation is the number under which the agent of the host keeps their
	// places.
	Reservation uint32
	Spare       bool // somebody waits there
}

// Place says where n processes that are to be started go: to the hosts in order, as
// many as each has slots free, then each to the host that has the fewest beyond its
// slots. They count there until Join, Bind or Unplace.
func (h *Head) Place(n int) ([]Place, error) {
	counts := make([]int, len(h.hosts))
	left := n
	for i := range h.hosts {
		if h.hosts[i].lost {
			continue
		}
		counts[i] = min(left, max(0, h.slots(i)-h.hosts[i].taken()))
		left -= counts[i]
	}
	for ; left > 0; left-- {
		best := -1
		beyond := func(i int) int { return h.hosts[i].taken() + counts[i] - h.slots(i) }
		for i := range h.hosts {
			if !h.hosts[i].lost && (best < 0 || beyond(i) < beyond(best)) {
				best = i
			}
		}
		if best < 0 {
			return nil, control.Refused("no host of the job is left")
		}
		counts[best]++
	}
	var list []Place
	for i, c := range counts {
		if c > 0 {
			list = append(list, h.PlaceOn(uint32(i), c))
		}
	}
	return list, nil
}

// PlaceOn is Place on a host of the caller's choice.
func (h *Head) PlaceOn(host uint32, n int) Place {
	h.hosts[host].coming += n
	return Place{Host: host, Count: n}
}

// Unplace takes back what Place has said, and gives back what was reserved for it.
func (h *Head) Unplace(places []Place) {
	h.Unreserve(places)
	for _, at := range places {
		h.hosts[at.Host].coming -= at.Count
	}
}

// Unreserve gives back what agents have reserved.
func (h *Head) Unreserve(places []Place) {
	for _, at := range places {
		if at.Reservation != 0 {
			h.out = append(h.out, Effect{Host: at.Host, Order: control.Order{Kind: control.OrderUnbind, ID: at.Reservation}})
		}
	}
}

// bind makes the processes from this serial on take their places.
func (h *Head) bind(at Place, first uint32) {
	h.out = append(h.out, Effect{Host: at.Host, Order: control.Order{Kind: control.OrderBind, Serial: first, ID: at.Reservation, Count: uint32(at.Count)}})
	h.hosts[at.Host].coming -= at.Count
	h.hosts[at.Host].local += at.Count
}

// slots is how many processes a host is there for. The only one takes all.
func (h *Head) slots(host int) int {
	if host < len(h.cfg.HostSlots) && len(h.hosts) > 1 {
		return h.cfg.HostSlots[host]
	}
	return control.MaxMembers
}

// taken counts the processes of a host, and those that are to come.
func (x *host) taken() int { return x.local + x.coming }
