// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// someSet is a set that there may be, mostly a late one.
func (w *world) someSet() uint32 {
	switch last := w.h.lastSet; w.rng.IntN(4) {
	case 0:
		return w.anySet()
	case 1:
		return w.h.main
	default:
		return last - min(last, uint32(w.rng.IntN(8))) + uint32(w.rng.IntN(2))
	}
}

// someOp is an operation that there may be.
func (w *world) someOp() uint32 {
	if list := slices.Sorted(maps.Keys(w.h.ops)); len(list) > 0 && w.rng.IntN(4) > 0 {
		return list[w.rng.IntN(len(list))]
	}
	return uint32(w.rng.IntN(20))
}

func (w *world) someName() string {
	if w.rng.IntN(20) == 0 {
		return strings.Repeat("n", protocol.MaxName-len(protocol.AppScheme)-1) + fmt.Sprint(w.rng.IntN(3))
	}
	return [...]string{"", "", "a", "b", "app://c", protocol.SelfURI}[w.rng.IntN(6)]
}

func (w *world) someProcs() wire.Members {
	var b wire.MembersBuilder
	for serial := uint32(1); serial <= w.h.lastProc+1; serial++ {
		if w.rng.IntN(int(w.h.lastProc)) < 3 && (serial <= w.h.lastProc || w.rng.IntN(20) == 0) {
			b.Add(wire.Range{First: wire.ProcID{Job: 7, Serial: serial}, Count: 1})
		}
	}
	return b.Members()
}

// talk is anything else that a process may say, of sets and operations that there are or
// not.
func (w *world) talk(m *member) {
	set := w.someSet
	switch w.rng.IntN(24) {
	case 0, 1, 2:
		a := &protocol.Algebra{Do: protocol.SetOp(1 + w.rng.IntN(4)), In: []uint32{set()}}
		if a.Do == protocol.Split {
			a.Sizes = []uint32{uint32(w.rng.IntN(3)), uint32(w.rng.IntN(3))}
		} else if w.rng.IntN(3) > 0 {
			a.In = append(a.In, set())
		}
		if name := w.someName(); name != "" {
			a.Names = []string{name}
		}
		w.ask(m, a)
	case 3, 4:
		w.ask(m, &protocol.Set{Kind: protocol.KindMain, Number: set()})
	case 5:
		w.ask(m, &protocol.Text{Kind: protocol.KindLookup, Text: [...]string{protocol.MainURI, protocol.WorldURI, "app://a", protocol.SetURI(7, set())}[w.rng.IntN(4)]})
	case 6:
		w.ask(m, &protocol.Set{Kind: protocol.KindDescribe, Number: set()})
	case 7:
		w.ask(m, &protocol.Provide{Op: w.someOp(), Set: set()})
	case 8:
		w.ask(m, &protocol.SetPut{Set: set(), Put: protocol.Put{Key: fmt.Sprint(w.rng.IntN(3)), Val: make([]byte, w.rng.IntN(2)*protocol.MaxValue/2)}})
	case 9, 10, 11:
		x := &protocol.SetGet{Set: set(), Keys: []string{fmt.Sprint(w.rng.IntN(3))}, Wait: w.rng.IntN(2) == 0, Call: uint64(w.rng.IntN(4))}
		if w.rng.IntN(3) == 0 {
			x.Coll = set()
		}
		w.ask(m, x)
	case 12, 13:
		w.tell(m, &protocol.Release{Number: set(), Use: protocol.SetUse{Opened: uint32(w.rng.IntN(2)), Calls: uint64(w.rng.IntN(2))}})
	case 14:
		w.ask(m, &protocol.NextEvent{Number: uint32(w.rng.IntN(3)), On: w.rng.IntN(4) > 0, Sets: []uint32{set(), 0}})
	case 15:
		w.tell(m, &protocol.Undecided{Op: w.someOp(), Set: set()})
	case 16:
		w.ask(m, &protocol.News{Since: uint64(w.rng.IntN(int(w.h.lastNews) + 2))})
	case 17:
		if p := w.someProcs(); p.Len() > 0 {
			w.ask(m, &protocol.Members{Kind: [...]protocol.Kind{protocol.KindDefine, protocol.KindFence}[w.rng.IntN(2)], Members: p})
		}
	case 18:
		w.tell(m, &protocol.Members{Kind: protocol.KindWatch, Members: w.someProcs()})
	case 19:
		w.tell(m, &protocol.Announce{Addrs: []string{"x"}})
		w.ask(m, &protocol.Proc{Kind: protocol.KindContact, Proc: wire.ProcID{Job: 7, Serial: uint32(w.rng.IntN(int(w.h.lastProc) + 2))}})
	case 20:
		for id := range m.asked {
			if w.rng.IntN(2) == 0 {
				w.tell(m, &protocol.Cancel{ID: id})
				break
			}
		}
	case 21:
		s := &protocol.Submit{Request: change.Request{Kind: change.Multi, Parts: []change.Request{w.request(), w.request()}}, Parts: make([]protocol.SubmitPart, 2)}
		for i := range s.Request.Parts {
			r := &s.Request.Parts[i]
			r.Start, r.Min, r.Max, r.Whole, r.NoQueue = 0, 0, 0, 0, false
		}
		w.ask(m, s)
	case 22:
		w.tell(m, &protocol.Op{Kind: [...]protocol.Kind{protocol.KindVoted, protocol.KindCompleted, protocol.KindReleased, protocol.KindForget}[w.rng.IntN(4)], Op: w.someOp()})
	case 23:
		w.tools()
	}
}

// tools ask what there is. All of it can be told.
func (w *world) tools() {
	tell := func(m protocol.Message) {
		if _, err := protocol.AppendFrame(nil, 1, 0, m); err != nil {
			w.fail("a tool is not told %T: %v", m, err)
		}
	}
	for _, r := range w.h.Ops() {
		tell(&r)
	}
	for _, r := range w.h.Sets() {
		tell(&r)
	}
	for _, r := range w.h.Used() {
		tell(&r)
	}
	r := w.h.BeginRound()
	w.flush()
	for _, serial := range slices.Sorted(maps.Keys(r.left)) {
		if w.rng.IntN(4) > 0 {
			w.tell(w.procs[serial], &protocol.Stacks{ID: r.id, Stacks: make([]byte, 100)})
		}
	}
	for _, x := range w.h.EndRound(r) {
		tell(&x)
	}
	w.h.Told(r)
}

// large asks for much at once. It is done or refused, and all can be told of afterwards.
func (w *world) large(m *member) {
	name := func(i int) string { return fmt.Sprint(strings.Repeat("x", 1000), m.id.Serial, "-", i) }
	switch w.rng.IntN(6) {
	case 0: // names of one set
		in := []uint32{w.someSet()}
		if o := w.h.ops[w.someOp()]; o != nil && len(o.body.Outputs) > 0 && o.body.Outputs[0].Result != 0 {
			in = append(in, o.body.Outputs[0].Result)
		}
		for i := range protocol.MaxNames + 10 {
			w.ask(m, &protocol.Algebra{Do: protocol.Union, In: in, Names: []string{name(i)}})
		}
	case 1: // parts and inputs
		s := &protocol.Submit{Request: change.Request{Kind: change.Multi}}
		n := []int{4, protocol.MaxParts}[w.rng.IntN(2)]
		for range n {
			in := make([]uint32, []int{1, 4, protocol.MaxInputs}[w.rng.IntN(3)])
			for i := range in {
				in[i] = w.someSet()
			}
			s.Request.Parts = append(s.Request.Parts, change.Request{Kind: change.Sub, In: in, Leave: 1})
		}
		s.Parts = make([]protocol.SubmitPart, n)
		w.ask(m, s)
	case 2: // names of outputs
		s := &protocol.Submit{Request: change.Request{Kind: change.Add, Join: []int{1, 1}}, Parts: make([]protocol.SubmitPart, 1)}
		n := 2
		if w.rng.IntN(2) == 0 {
			n = protocol.MaxNames
		}
		for i := range n {
			s.Parts[0].Names = append(s.Parts[0].Names, name(i))
		}
		w.ask(m, s)
	case 3: // keys
		var keys []string
		for i := range protocol.MaxKeys {
			keys = append(keys, fmt.Sprintf("%0*d", protocol.MaxKey, i))
		}
		w.ask(m, &protocol.SetGet{Set: w.someSet(), Keys: keys, Wait: w.rng.IntN(2) == 0, Call: uint64(w.rng.IntN(3))})
	case 4: // sets
		a := &protocol.Algebra{Do: protocol.Union}
		for range protocol.MaxInputs {
			a.In = append(a.In, w.h.main)
		}
		for range 4 {
			w.ask(m, a)
		}
	case 5: // pages
		for set := range w.h.lastSet {
			w.ask(m, &protocol.Subscribe{Set: w.h.main, In: set + 1})
		}
	}
	w.ask(m, &protocol.Set{Kind: protocol.KindDescribe, Number: w.h.main})
	w.tools()
}

// readable is an answer, to a request that has one of its own, in full.
func (w *world) readable(q protocol.Message, body []byte) {
	var b protocol.Message
	switch x := q.(type) {
	case *protocol.Algebra:
		b = &protocol.SetsBody{}
	case *protocol.Text:
		b = &protocol.DescribeBody{}
	case *protocol.Set:
		b = &protocol.DescribeBody{}
		if x.Kind == protocol.KindMain {
			b = &protocol.Empty{}
		}
	case *protocol.SetGet:
		b = &protocol.ValuesBody{}
	case *protocol.News:
		b = &protocol.NewsBody{}
	case *protocol.NextEvent:
		b = &protocol.SetEvent{}
	default:
		return
	}
	if err := protocol.Decode(b, body); err != nil {
		w.fail("the answer to %T cannot be read: %v", q, err)
	}
}

// consistent checks what must hold of the head's tables after each step.
func (w *world) consistent() {
	h := w.h
	living := func(what string, n uint32) *set {
		t := h.sets[n]
		if t == nil {
			w.fail("%s is set %d, which there is not", what, n)
		}
		return t
	}
	if h.main != 0 {
		living("the main set", h.main)
	}
	sets, names := 0, 0
	for n, t := range h.sets {
		if sets += setBytes(t.members) + t.origin.bytes(); len(t.names) > protocol.MaxNames {
			w.fail("set %d has %d names", n, len(t.names))
		}
		if o := h.ops[t.op]; t.op != 0 && !t.undone && (o == nil || o.body.State >= change.Committed) {
			w.fail("set %d is of operation %d, which is decided", n, t.op)
		}
		if t.store == nil {
			continue
		}
		held := 0
		for k, v := range t.store.vals {
			held += entryBytes + len(k) + len(v)
		}
		for call, c := range t.store.calls {
			left := 0
			for _, id := range t.members.All() {
				if _, ok := c.made[id.Serial]; !ok && h.takesPart(id) {
					left++
				}
			}
			if held += c.size; left != c.left || left+c.wait == 0 {
				w.fail("call %d of set %d: %d members are left, not %d, %d wait", call, n, left, c.left, c.wait)
			}
		}
		if held != t.store.bytes {
			w.fail("the store of set %d counts %d bytes, and holds %d", n, t.store.bytes, held)
		}
	}
	for name, n := range h.names {
		if names += nameBytes(name); n != 0 && !slices.Contains(living(name, n).names, name) {
			w.fail("set %d is not called %s", n, name)
		}
	}
	if sets+names != h.setBytes {
		w.fail("sets count %d bytes, and take %d", h.setBytes, sets+names)
	}
	for n := range h.follows {
		living("what is followed", n)
	}
	for op, list := range h.ofOp {
		for n := range list {
			if living("one of a change", n).op != op {
				w.fail("set %d is of operation %d, not %d", n, h.sets[n].op, op)
			}
		}
	}
	for _, a := range h.asked {
		living("whose members ask", a.coll)
		living("what they ask for", a.in)
	}
	for _, p := range h.procs {
		for n := range p.given {
			living("what a process was given", n)
		}
	}
	bytes := 0
	for _, o := range h.ops {
		if bytes += o.size; o.main != 0 {
			living("the main set of a change", o.main)
		}
		if o.kept < 0 || o.users < 0 {
			w.fail("%+v", o)
		}
	}
	if bytes != h.opBytes || bytes > maxOpBytes {
		w.fail("operations count %d bytes, and take %d", h.opBytes, bytes)
	}
}
