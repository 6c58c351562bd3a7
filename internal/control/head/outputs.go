// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// outputs are the sets that a part has made.
func outputs(o *change.Outputs) []uint32 { return byPosition(0, o) }

// byPosition are the sets that a part has made, in the order in which who asks names
// them. A Replace has a place for each, 0 where there is none.
func byPosition(k change.Kind, o *change.Outputs) []uint32 {
	if k == change.Replace {
		list := []uint32{o.Leaving, 0, o.Result}
		if len(o.Joining) > 0 {
			list[1] = o.Joining[0]
		}
		return list
	}
	if k == change.Grow && len(o.Joining) > 0 {
		return []uint32{o.Joining[0], o.Result}
	}
	var list []uint32
	for _, s := range append(o.Joining[:len(o.Joining):len(o.Joining)], o.Leaving, o.Result) {
		if s != 0 {
			list = append(list, s)
		}
	}
	return list
}

// places is how many outputs can be named of a part; 0: as many as there are sets of
// newcomers.
func places(k change.Kind) int {
	switch k {
	case change.Sub:
		return 1
	case change.Grow, change.Shrink:
		return 2
	case change.Replace:
		return 3
	}
	return 0
}

// reserveNames keeps the names that the outputs are to have.
func (h *Head) reserveNames(o *op, r []change.Request) error {
	var all []string
	for i := range o.parts {
		names := o.parts[i].Names
		if n := places(o.kinds[i]); n != 0 && len(names) > n {
			return protocol.Refused("%d names for the %d sets that %v makes", len(names), n, o.kinds[i])
		}
		if o.how.Grouped() && namesNewcomers(o.kinds[i], names) {
			return protocol.Refused("a name for newcomers that are a set on each host (started %v)", o.how)
		}
		all = append(all, names...)
		o.names = append(o.names, names)
		if err := h.roomForNames(o.kinds[i], r[i].In, names); err != nil {
			o.names = nil
			return err
		}
	}
	if len(all) > protocol.MaxNames {
		o.names = nil
		return protocol.TooMany("%d names of sets, at most %d allowed", len(all), protocol.MaxNames)
	}
	if err := h.reserveAll(all); err != nil {
		o.names = nil
		return err
	}
	return nil
}

// roomForNames refuses a name for a Replace whose input can have no other: if nothing is
// to be done the Result is the input.
func (h *Head) roomForNames(k change.Kind, in []uint32, names []string) error {
	if k != change.Replace || !slices.ContainsFunc(names, func(s string) bool { return s != "" }) {
		return nil
	}
	for _, s := range in {
		if s == 0 {
			s = h.main
		}
		if t := h.sets[s]; t != nil && t.full() != nil {
			return t.full()
		}
	}
	return nil
}

// namesNewcomers reports whether a request names the set of its newcomers.
func namesNewcomers(k change.Kind, names []string) bool {
	at := 0
	if k == change.Replace {
		at = 1
	}
	return (k == change.Add || k == change.Grow || k == change.Replace) && len(names) > at && names[at] != ""
}

// unreserveNames gives up names that no set will get.
func (h *Head) unreserveNames(o *op) {
	for _, names := range o.names {
		for _, name := range names {
			h.unreserveName(name)
		}
	}
	o.names = nil
}

// nameOutputs gives the outputs the names that were reserved for them.
func (h *Head) nameOutputs(o *op) {
	for i, names := range o.names {
		sets := byPosition(o.kinds[i], &o.body.Outputs[i])
		for j, name := range names {
			if name != "" && j < len(sets) && sets[j] != 0 && h.sets[sets[j]].full() == nil {
				h.nameSet(sets[j], name)
				o.body.Names = append(o.body.Names, h.setName(sets[j]))
				names[j] = ""
			}
		}
	}
	h.unreserveNames(o)
}

// publishOutputs lets the members of inputs and outputs hear of the outputs.
func (h *Head) publishOutputs(o *op) {
	for i := range o.body.Outputs {
		var kin wire.MembersBuilder
		seen := map[wire.ProcID]struct{}{}
		for _, s := range o.inputs[i] {
			for _, id := range h.sets[s].members.All() {
				if _, ok := seen[id]; !ok {
					seen[id] = struct{}{}
					kin.Add(wire.Range{First: id, Count: 1})
				}
			}
		}
		for _, s := range outputs(&o.body.Outputs[i]) {
			h.publishSet(s, kin.Members())
		}
	}
}

// unnameOutputs frees the names of what newcomers still have as their world, though
// the change does not happen. Nobody else asks for it any more.
func (h *Head) unnameOutputs(o *op) {
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			if t := h.sets[s]; t != nil {
				h.unname(t)
				t.undone = true
				h.askedGone(s)
			}
		}
	}
}
