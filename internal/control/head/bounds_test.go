// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// A set has so many names, and can be told with all of them; one more is too many, in
// whichever way it is given.
func TestNamesOfASet(t *testing.T) {
	w := watching(t, 1, 2)
	fill := strings.Repeat("x", protocol.MaxName-20)
	b := w.taken(1, change.Request{Kind: change.Grow, In: []uint32{1}, Join: []int{1}})
	joining, result := b.Outputs[0].Joining[0], b.Outputs[0].Result
	name := func(i int) error {
		return w.got(1, &protocol.Algebra{Do: protocol.Union, In: []uint32{1, joining}, Names: []string{fmt.Sprint(fill, i)}}, &protocol.SetsBody{})
	}
	for i := range protocol.MaxNames {
		if err := name(i); err != nil {
			t.Fatalf("name %d: %v", i, err)
		}
	}
	if err := name(protocol.MaxNames); !errors.Is(err, protocol.ErrTooMany) || len(w.h.names) != protocol.MaxNames {
		t.Errorf("one more: %v, %d names are kept", err, len(w.h.names))
	}
	var d protocol.DescribeBody
	if err := w.got(1, &protocol.Text{Kind: protocol.KindLookup, Text: protocol.SetURI(7, result)}, &d); err != nil || len(d.Names) != protocol.MaxNames {
		t.Errorf("it is told with %d names: %v", len(d.Names), err)
	}
	w.tools()
	w.consistent()
	// Nothing is to be done for it, so it would be the set itself that is named.
	w = watching(t, 1, 2)
	for i := range protocol.MaxNames {
		w.h.names[fmt.Sprint("app://", i)] = 1
		w.h.sets[1].names = append(w.h.sets[1].names, fmt.Sprint("app://", i))
	}
	s := &protocol.Submit{Request: change.Request{Kind: change.Replace, In: []uint32{1}, To: 2}, Parts: []protocol.SubmitPart{{Names: []string{"", "", "new"}}}}
	var r protocol.OpBody
	if err := w.got(1, s, &r); err != nil || r.Why != protocol.WhyMalformed || w.h.names["app://new"] != 0 {
		t.Errorf("a change that does nothing names it: %v, %+v", err, r)
	}
}

// What a request names is bounded so that all who are told of it can be.
func TestLargeRequests(t *testing.T) {
	ones := func(n int) []uint32 {
		in := make([]uint32, n)
		for i := range in {
			in[i] = 1
		}
		return in
	}
	multi := func(parts, inputs int) change.Request {
		r := change.Request{Kind: change.Multi}
		for range parts {
			r.Parts = append(r.Parts, change.Request{Kind: change.Sub, In: ones(inputs), Leave: 1})
		}
		return r
	}
	sets := make([]int, protocol.MaxInputs)
	for i := range sets {
		sets[i] = 1
	}
	for what, c := range map[string]struct {
		r     change.Request
		names int
		want  protocol.Why
	}{
		"inputs of parts":          {multi(protocol.MaxParts, protocol.MaxInputs), 0, protocol.WhyMalformed},
		"one input too many":       {multi(5, protocol.MaxInputs/4), 0, protocol.WhyMalformed},
		"sets of newcomers":        {change.Request{Kind: change.Multi, Parts: []change.Request{{Kind: change.Add, Join: sets}, {Kind: change.Add, Join: []int{1}}}}, 0, protocol.WhyMalformed},
		"newcomers in all":         {change.Request{Kind: change.Multi, Parts: []change.Request{{Kind: change.Add, Join: []int{change.MaxJoin}}, {Kind: change.Add, Join: []int{1}}}}, 0, protocol.WhyMalformed},
		"names":                    {change.Request{Kind: change.Multi, Parts: []change.Request{{Kind: change.Add, Join: []int{1}}, {Kind: change.Add, Join: []int{1}}}}, protocol.MaxNames, protocol.WhyMalformed},
		"as many inputs as it may": {change.Request{Kind: change.Sub, In: ones(protocol.MaxInputs), Leave: 1}, 0, protocol.WhyNot},
	} {
		w := watching(t, 1, 2)
		s := &protocol.Submit{Request: c.r, Parts: make([]protocol.SubmitPart, max(1, len(c.r.Parts)))}
		for i := range s.Parts {
			for j := range c.names {
				s.Parts[i].Names = append(s.Parts[i].Names, fmt.Sprint(strings.Repeat("x", 1000), i, "-", j))
			}
		}
		var b protocol.OpBody
		if err := w.got(1, s, &b); err != nil || b.Why != c.want {
			t.Errorf("%s: %v, %+v", what, err, b)
		}
		w.tools()
		w.consistent()
	}
}

// Operations that nobody forgets are kept up to a bound, which counts what they hold.
func TestKeptOperations(t *testing.T) {
	w := watching(t, 1, 2)
	w.taken(1, change.Request{Kind: change.Shrink, In: []uint32{1}, Leave: 1}) // the others wait for it
	s := &protocol.Submit{Request: change.Request{Kind: change.Grow, In: []uint32{1}, Join: []int{1}}, Parts: []protocol.SubmitPart{{Argv: []string{strings.Repeat("x", protocol.MaxArgs)}}}}
	n := 0
	var b protocol.OpBody
	for ; n < maxOpBytes/protocol.MaxArgs+2 && b.Why == protocol.WhyNot; n++ {
		if b = (protocol.OpBody{}); w.got(1, s, &b) != nil {
			t.Fatalf("operation %d: %+v", n, b)
		}
	}
	if b.Why != protocol.WhyBusy || w.h.opBytes > maxOpBytes {
		t.Errorf("%d operations of %d bytes: %+v", n, w.h.opBytes, b)
	}
	w.consistent()
	w.finish()
}

// What a change would have its members told of is not longer than they can be told.
func TestLongChange(t *testing.T) {
	w := watching(t, 1, 2)
	var scattered []wire.ProcID // no two are as far apart as the next
	for i := range uint32(1 << 16) {
		scattered = append(scattered, wire.ProcID{Job: 7, Serial: 1 + i}, wire.ProcID{Job: 7, Serial: 1<<30 - i*i%97*500})
	}
	tells := owner{w.h}.Tells
	if err := tells([]uint32{1}, scattered, nil, 0, false); err != nil {
		t.Errorf("who leave are %d ranges: %v", len(wire.MembersOf(scattered...).Ranges()), err)
	}
	for what, err := range map[string]error{
		"who leave and who stay are so many ranges": tells([]uint32{1}, scattered, scattered, 0, true),
		"one range too many":                        tells([]uint32{1}, append(scattered, wire.ProcID{Job: 7, Serial: 1 << 31}), nil, 0, false),
	} {
		if !errors.Is(err, protocol.ErrTooMany) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What processes tell of their stacks is kept up to a bound; each has its share.
func TestReportsAreBounded(t *testing.T) {
	w := watching(t, 1, 4)
	w.h.roundBytes = maxRoundBytes - 4000 // of others
	r := w.h.BeginRound()
	w.flush()
	for serial := uint32(1); serial <= 4; serial++ {
		size := protocol.MaxReport
		if serial == 1 {
			size = 100
		}
		w.tell(w.procs[serial], &protocol.Stacks{ID: r.id, Queues: make([]byte, 100), Stacks: make([]byte, size)})
	}
	if w.h.roundBytes > maxRoundBytes {
		t.Errorf("%d bytes are kept, at most %d allowed", w.h.roundBytes, maxRoundBytes)
	}
	for i, x := range w.h.EndRound(r) {
		if n := len(x.Stacks); !x.Answered || len(x.Queues) != 100 || n < 100 || n > 4000 {
			t.Errorf("process %d: %d bytes are kept", i+1, n)
		}
	}
	w.h.Told(r)
	if w.h.roundBytes != maxRoundBytes-4000 {
		t.Errorf("%d bytes count when all is told", w.h.roundBytes)
	}
}

// One process is not sent more in a step than its agent would keep for it.
func TestSentAtOnce(t *testing.T) {
	w := watching(t, 1, 2)
	reads := w.procs[1]
	for range 4 * maxSending / protocol.MaxValue {
		w.lastID++
		reads.asked[w.lastID] = nil
		w.h.Take(reads.host, &protocol.Report{Kind: protocol.ReportFrame, Serial: 1, Frame: protocol.Frame{Kind: protocol.KindGet, ID: w.lastID, Body: protocol.Encode(&protocol.Get{Key: "k", Wait: true})}})
	}
	w.h.Take(0, &protocol.Report{Kind: protocol.ReportFrame, Serial: 2, Frame: protocol.Frame{Kind: protocol.KindPut, ID: 1, Body: protocol.Encode(&protocol.Put{Key: "k", Val: make([]byte, protocol.MaxValue)})}})
	bytes, shut := 0, false
	w.h.Flush(func(e *Effect) {
		if e.Order.Serial == 1 {
			bytes += len(e.Order.Frame)
			shut = shut || e.Order.Kind == protocol.CmdShut
		}
	})
	if !shut || bytes > maxSending {
		t.Errorf("it is sent %d bytes, and shut: %v", bytes, shut)
	}
}

// What a process may ask with the members of its sets has a bound.
func TestAskedPagesAreBounded(t *testing.T) {
	w := watching(t, 1, 2)
	var err error
	n := 0
	for ; err == nil && n <= maxAsked; n++ {
		var s protocol.SetBody
		if err := w.got(1, &protocol.Members{Kind: protocol.KindDefine, Members: w.h.sets[1].members}, &s); err != nil {
			t.Fatal(err)
		}
		w.ask(w.procs[1], &protocol.Subscribe{Set: 1, In: s.S.Number})
		if len(w.h.asked) <= n {
			err = w.last.Err()
		}
	}
	if !errors.Is(err, protocol.ErrRefused) || len(w.h.asked) != maxAsked {
		t.Errorf("%d pages: %v", len(w.h.asked), err)
	}
	w.finish()
}
