// SPDX-License-Identifier: Apache-2.0

package head

import (
	"maps"
	"slices"

	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// algebra makes sets of others, which p holds.
func (h *Head) algebra(p *proc, m *protocol.Algebra) (*protocol.SetsBody, error) {
	var in []wire.Members
	op := uint32(0)
	for _, n := range m.In {
		if n == 0 { // the empty set
			in = append(in, wire.Members{})
			continue
		}
		t, err := h.standing(n)
		if err != nil {
			return nil, err
		}
		if op != 0 && t.op != 0 && t.op != op {
			return nil, errTwoChanges()
		}
		op = max(op, t.op)
		in = append(in, t.members)
	}
	out, err := combine(m.Do, in, m.Sizes)
	if err != nil {
		return nil, err
	}
	if len(m.Names) > len(out) {
		return nil, protocol.Refused("%d names for %d sets", len(m.Names), len(out))
	}
	if err := h.reserveAll(m.Names); err != nil {
		return nil, err
	}
	b := &protocol.SetsBody{}
	for i, members := range out {
		name := ""
		if i < len(m.Names) {
			name = m.Names[i]
		}
		s, err := h.outcome(members, op, name)
		if err != nil {
			for _, s := range b.Sets {
				h.release(p, s.Number, protocol.SetUse{})
			}
			for _, name := range m.Names[min(i, len(m.Names)):] {
				h.unreserveName(name)
			}
			return nil, err
		}
		if s.Number != 0 {
			h.give(p, s.Number)
			if h.sets[s.Number].origin == nil {
				h.comesOf(s.Number, &origin{made: m.Do.String(), of: m.In})
			}
		}
		b.Sets = append(b.Sets, s)
	}
	return b, nil
}

// reserveAll reserves names, or none of them; "" is no name.
func (h *Head) reserveAll(names []string) error {
	for i, name := range names {
		if name == "" {
			continue
		}
		if err := h.reserveName(name); err != nil {
			for _, before := range names[:i] {
				h.unreserveName(before)
			}
			return err
		}
	}
	return nil
}

// outcome is the set of these members, which were made of outputs of op; 0: of none.
// One that is the Result of that gets the name besides. The empty set has none.
func (h *Head) outcome(m wire.Members, op uint32, name string) (protocol.SetName, error) {
	if m.Len() == 0 {
		h.unreserveName(name)
		return protocol.SetName{Name: protocol.EmptyURI}, nil
	}
	number := uint32(0)
	if o := h.ops[op]; op != 0 && o != nil {
		for i := range o.body.Outputs {
			if n := o.body.Outputs[i].Result; n != 0 && h.sets[n].members.Equal(m) {
				number = n
			}
		}
	}
	isNew := number == 0
	if !isNew && name != "" {
		if err := h.sets[number].full(); err != nil {
			return protocol.SetName{}, err
		}
	}
	if isNew {
		s, err := h.define(m)
		if err != nil {
			return protocol.SetName{}, err
		}
		if number = s.Number; op != 0 {
			h.ofChange(number, op)
			h.book.Derived(number, op)
		}
	}
	if name != "" {
		h.nameSet(number, name)
	}
	if isNew {
		h.publishSet(number, wire.Members{})
	}
	s := h.setName(number)
	if t := h.sets[number]; name != "" {
		s.Name = t.names[len(t.names)-1]
		if !isNew {
			h.publish(number, s.Name)
		}
	}
	return s, nil
}

// combine does the algebra.
func combine(do protocol.SetOp, in []wire.Members, sizes []uint32) ([]wire.Members, error) {
	if len(in) == 0 || do == protocol.Split && len(in) != 1 {
		return nil, protocol.Refused("%d process sets to make others of", len(in))
	}
	if (len(sizes) > 0) != (do == protocol.Split) {
		return nil, protocol.Refused("%d sizes of parts", len(sizes))
	}
	m := in[0]
	switch do {
	case protocol.Union:
		m = fold(in, group.Union)
	case protocol.Difference:
		if len(in) > 1 {
			m = group.Difference(m, fold(in[1:], group.Union))
		}
	case protocol.Intersection:
		m = fold(in, group.Intersection)
	case protocol.Split:
		return split(m, sizes)
	}
	return []wire.Members{m}, nil
}

// fold is an associative operation over a list, by halves: that of many large sets with a
// small one each would take long.
func fold(list []wire.Members, do func(a, b wire.Members) wire.Members) wire.Members {
	if len(list) == 1 {
		return list[0]
	}
	n := len(list) / 2
	return do(fold(list[:n], do), fold(list[n:], do))
}

// split cuts members into parts, in order. Members behind the last part are in none.
func split(m wire.Members, sizes []uint32) ([]wire.Members, error) {
	total := uint64(0)
	for _, n := range sizes {
		total += uint64(n)
	}
	if total > uint64(m.Len()) {
		return nil, protocol.Refused("parts of %d processes together of a set of %d", total, m.Len())
	}
	var out []wire.Members
	first := 0
	for _, n := range sizes {
		part, err := group.RangeIncl(m, nil)
		if n > 0 {
			part, err = group.RangeIncl(m, []group.Triplet{{First: first, Last: first + int(n) - 1, Stride: 1}})
		}
		if err != nil {
			return nil, protocol.Refused("%v", err)
		}
		out = append(out, part)
		first += int(n)
	}
	return out, nil
}

// isResult: the set is what a change makes of its input.
func (h *Head) isResult(number uint32) { h.sets[number].taken = 1 }

// ofChange: the set came of an operation that is not decided.
func (h *Head) ofChange(number, op uint32) {
	h.sets[number].op = op
	if h.ofOp[op] == nil {
		h.ofOp[op] = map[uint32]struct{}{}
	}
	h.ofOp[op][number] = struct{}{}
}

// notOfChange: there is no such set any more.
func (h *Head) notOfChange(number, op uint32) {
	delete(h.ofOp[op], number)
	if len(h.ofOp[op]) == 0 {
		delete(h.ofOp, op)
	}
}

// changeDecided: what was made over the outputs of an operation stays, or is gone
// with them, whoever holds it.
func (h *Head) changeDecided(op uint32, committed bool) {
	numbers := h.ofOp[op]
	delete(h.ofOp, op)
	for n := range numbers {
		h.sets[n].op = 0
	}
	if committed {
		return
	}
	for _, p := range h.procs {
		maps.DeleteFunc(p.given, func(n uint32, _ int) bool { _, ok := numbers[n]; return ok })
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(numbers))) {
		if h.sets[n] != nil {
			h.endSet(n)
		}
	}
}
