// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

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
	list, err := h.placeOn(n, nil, starts.Compact)
	if errors.Is(err, change.ErrBusy) {
		return nil, protocol.Refused("%d processes: so many slots are not free just now (--strict-slots)", n)
	}
	return list, err
}

// placeOn is Place on some hosts, nil: on all, in a way. Where slots are strict nobody goes
// beyond them: change.ErrBusy until there are enough, ErrTooMany if there never will be.
func (h *Head) placeOn(n int, on []uint32, how starts.Placement) ([]Place, error) {
	on = h.left(on)
	if err := h.neverOn(n, on); err != nil {
		return nil, err
	}
	room := 0
	free := make([]int, len(on))
	for k, i := range on {
		free[k] = h.slots(i) - h.hosts[i].taken()
		room += max(0, free[k])
	}
	if n > room && h.cfg.Strict {
		return nil, change.ErrBusy
	}
	placed, err := starts.Distribute(how, free, n)
	if err != nil {
		return nil, err
	}
	counts := make([]int, len(h.hosts))
	for k, i := range on {
		counts[i] = placed[k]
	}
	var list []Place
	for i, c := range counts {
		if c > 0 {
			list = append(list, h.PlaceOn(uint32(i), c))
		}
	}
	return list, nil
}

// left are those of some hosts that are not lost; nil: of all.
func (h *Head) left(on []uint32) []uint32 {
	if on == nil {
		for i := range h.hosts {
			on = append(on, uint32(i))
		}
	}
	return slices.DeleteFunc(slices.Clone(on), func(i uint32) bool { return h.hosts[i].lost })
}

// neverOn says why n processes can never be at a time on hosts that are left.
func (h *Head) neverOn(n int, on []uint32) error {
	all := 0
	for _, i := range on {
		all += h.slots(i)
	}
	switch {
	case len(on) == 0:
		return protocol.Refused("no host is left on which they could start")
	case n > all && h.cfg.Strict:
		return fmt.Errorf("%w: %d processes on hosts of %d slots (--strict-slots)", change.ErrTooMany, n, all)
	}
	return nil
}

// SpareHost is where the next process that waits for a change belongs: the host that
// has the fewest for its slots, of as many as it has; false: no host is left.
func (h *Head) SpareHost(has map[uint32]int) (host uint32, ok bool) {
	least := 0.0
	for i := range h.hosts {
		at := uint32(i)
		if n := float64(has[at]+1) / float64(max(1, h.slots(at))); !h.hosts[i].lost && (!ok || n < least) {
			host, least, ok = at, n, true
		}
	}
	return host, ok
}

// hostsNamed are the hosts that who asks calls so, once each; nil: he names none.
func (h *Head) hostsNamed(names []string) (on []uint32, err error) {
	for _, name := range names {
		i := slices.IndexFunc(h.cfg.HostNames, func(s string) bool { return strings.EqualFold(s, name) })
		switch {
		case i < 0 || i >= len(h.hosts):
			return nil, protocol.Refused("the job has no host %q: its hosts are %s", protocol.Clip(name, protocol.MaxName), protocol.Clip(strings.Join(h.cfg.HostNames, ", "), protocol.MaxName))
		case h.hosts[i].lost:
			return nil, protocol.Refused("host %q is lost", name)
		case !slices.Contains(on, uint32(i)):
			on = append(on, uint32(i))
		}
	}
	return on, nil
}

// hostsFor are the hosts of a part of a spawn: of places, those that a pattern matches.
func (h *Head) hostsFor(s *spawn, part *protocol.SpawnPart) (on []uint32, err error) {
	for _, name := range part.Hosts {
		var more []uint32
		switch {
		case s.do != protocol.SpawnReserve:
			return h.hostsNamed(part.Hosts)
		case name == "*":
			return nil, nil
		case strings.ContainsAny(name, `*?[\`):
			more, err = h.hostsLike(name)
		default:
			more, err = h.hostsNamed([]string{name})
		}
		if err != nil {
			return nil, err
		}
		on = append(on, more...)
	}
	slices.Sort(on)
	return slices.Compact(on), nil
}

// hostsLike are those that match a pattern and are there.
func (h *Head) hostsLike(pattern string) (on []uint32, err error) {
	for i, name := range h.cfg.HostNames {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
		if err != nil {
			return nil, protocol.Refused("%q is no pattern of hosts: %v", protocol.Clip(pattern, protocol.MaxName), err)
		}
		if ok && i < len(h.hosts) && !h.hosts[i].lost {
			on = append(on, uint32(i))
		}
	}
	if on == nil {
		return nil, protocol.Refused("the job has no host like %q: its hosts are %s", protocol.Clip(pattern, protocol.MaxName), protocol.Clip(strings.Join(h.cfg.HostNames, ", "), protocol.MaxName))
	}
	return on, nil
}

// freeOn is how many slots are free on some hosts; nil: on all.
func (h *Head) freeOn(on []uint32) (free int) {
	for i := range h.hosts {
		if at := uint32(i); !h.hosts[i].lost && (on == nil || slices.Contains(on, at)) {
			free += max(0, h.slots(at)-h.hosts[i].taken())
		}
	}
	return free
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
			h.out = append(h.out, Effect{Host: at.Host, Order: protocol.Command{Kind: protocol.CmdUnbind, ID: at.Reservation}})
		}
	}
}

// bind makes the processes from this serial on take their places.
func (h *Head) bind(at Place, first uint32) {
	h.out = append(h.out, Effect{Host: at.Host, Order: protocol.Command{Kind: protocol.CmdBind, Serial: first, ID: at.Reservation, Count: uint32(at.Count)}})
	h.hosts[at.Host].coming -= at.Count
	h.hosts[at.Host].local += at.Count
}

// slots is how many processes a host is there for. The only one takes all.
func (h *Head) slots(host uint32) int {
	if int(host) < len(h.cfg.HostSlots) && len(h.hosts) > 1 {
		return h.cfg.HostSlots[host]
	}
	return protocol.MaxMembers
}

// taken counts the processes of a host, and those that are to come.
func (x *host) taken() int { return x.local + x.coming }
