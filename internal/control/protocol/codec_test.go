// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range controltest.Samples(6) {
		b := protocol.Encode(m)
		if len(b) > protocol.KindOf(m).BodyLimit() {
			t.Errorf("%T: %d bytes, limit %d", m, len(b), protocol.KindOf(m).BodyLimit())
		}
		got := controltest.Blank(m)
		if err := protocol.Decode(got, b); err != nil {
			t.Errorf("%T: %v", m, err)
		} else if !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v; want %+v", m, got, m)
		}
		for i := range b {
			if err := protocol.Decode(controltest.Blank(m), b[:i]); err == nil {
				t.Errorf("%T: %d of %d bytes accepted", m, i, len(b))
			}
		}
		if err := protocol.Decode(controltest.Blank(m), append(b, 0)); err == nil {
			t.Errorf("%T: a byte too many accepted", m)
		}
	}
}

func TestMembersRefused(t *testing.T) {
	p := wire.ProcID{Job: 1, Serial: 5}
	raw := func(rs ...wire.Range) []byte {
		le := binary.LittleEndian
		b := le.AppendUint32(nil, uint32(len(rs)))
		for _, r := range rs {
			b = le.AppendUint32(le.AppendUint64(b, uint64(r.First.Job)), r.First.Serial)
			b = le.AppendUint64(le.AppendUint32(b, uint32(r.Count)), uint64(r.Stride))
		}
		return b
	}
	for name, b := range map[string][]byte{
		"empty range":   raw(wire.Range{First: p, Stride: 1}),
		"no stride":     raw(wire.Range{First: p, Count: 2}),
		"wraps":         raw(wire.Range{First: wire.ProcID{Job: 1, Serial: 1<<32 - 1}, Count: 2, Stride: 1}),
		"wraps below":   raw(wire.Range{First: p, Count: 7, Stride: -1}),
		"huge stride":   raw(wire.Range{First: p, Count: 2, Stride: 1 << 62}),
		"lowest stride": raw(wire.Range{First: p, Count: 2, Stride: -1 << 63}),
		"not joined":    raw(wire.Range{First: p, Count: 1, Stride: 1}, wire.Range{First: p.Next(1), Count: 1, Stride: 1}),
		"overlap":       raw(wire.Range{First: p, Count: 3, Stride: 1}, wire.Range{First: p.Next(2), Count: 1, Stride: 1}),
		"strides meet":  raw(wire.Range{First: p, Count: 30, Stride: 2}, wire.Range{First: p.Next(1), Count: 30, Stride: 3}),
		"too many":      raw(wire.Range{First: p, Count: protocol.MaxMembers, Stride: 1}, wire.Range{First: wire.ProcID{Job: 2}, Count: 1, Stride: 1}),
		"claims ranges": {0xff, 0xff, 0, 0},
		"claims more":   {0xff, 0xff, 0xff, 0xff},
	} {
		if err := protocol.Decode(&protocol.Members{Kind: protocol.KindFence}, b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A set says of each member where it is, once, or of none.
func TestHostsRefused(t *testing.T) {
	p := wire.ProcID{Job: 1, Serial: 5}
	for name, h := range map[string]wire.Hosts{
		"too few":  {{Host: 0, Count: 2}},
		"too many": {{Host: 0, Count: 2}, {Host: 1, Count: 2}},
		"none":     {{Host: 0, Count: 3}, {Host: 1, Count: 0}},
		"again":    {{Host: 0, Count: 2}, {Host: 0, Count: 1}},
	} {
		s := protocol.SetBody{wire.Set{Members: wire.NewMembers(wire.Range{First: p, Count: 3}), Hosts: h}}
		if err := protocol.Decode(&protocol.SetBody{}, protocol.Encode(&s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// What is said of the parts of a request is said of each, and of nothing else.
func TestPartsRefused(t *testing.T) {
	parts := func(n int) []change.Request { return make([]change.Request, n) }
	for _, m := range []protocol.Submit{
		{Request: change.Request{Kind: change.Multi}},
		{Request: change.Request{Kind: change.Multi}, Parts: make([]protocol.SubmitPart, 1)},
		{Request: change.Request{Kind: change.Multi, Parts: parts(2)}, Parts: make([]protocol.SubmitPart, 1)},
		{Request: change.Request{Kind: change.Grow}},
		{Request: change.Request{Kind: change.Grow}, Parts: make([]protocol.SubmitPart, 2)},
		{Request: change.Request{Kind: change.Grow, Parts: parts(2)}, Parts: make([]protocol.SubmitPart, 2)},
	} {
		if err := protocol.Decode(&protocol.Submit{}, protocol.Encode(&m)); err == nil {
			t.Errorf("accepted: %+v", m)
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	gone := &protocol.GoneError{wire.ProcID{Job: 1, Serial: 2}, "signal: killed"}
	for _, err := range []error{gone, protocol.NotFound("key %q", "k"), protocol.Refused("no"), protocol.Ending("why"), protocol.NotDecided("operation 3")} {
		var m protocol.Reply
		if e := protocol.Decode(&m, protocol.Encode(protocol.Failure(err))); e != nil {
			t.Error(e)
		} else if !reflect.DeepEqual(m.Err(), err) {
			t.Errorf("%v becomes %v", err, m.Err())
		}
	}
}

// What kind of error it is travels as a status, and is said once, whoever has wrapped it.
func TestKindIsSaidOnce(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{protocol.ErrNotFound, "not found"},
		{fmt.Errorf("%w: key k", protocol.ErrNotFound), "not found: key k"},
		{protocol.NotFound("not found: %s", "x"), "not found: x"},
		{protocol.ErrSetGone, "the process set is gone"},
		{protocol.ErrRefused, "refused by gompirun"},
		{fmt.Errorf("%w: %w", protocol.ErrRefused, protocol.ErrRefused), "refused by gompirun"},
	} {
		var m protocol.Reply
		if err := protocol.Decode(&m, protocol.Encode(protocol.Failure(c.err))); err != nil {
			t.Fatal(err)
		}
		if got := m.Err(); got.Error() != c.want {
			t.Errorf("%v becomes %q, not %q", c.err, got, c.want)
		}
	}
	for text, want := range map[string]error{
		"not found: port x": protocol.NotFound("port x"), "job is ending: ^C": protocol.Ending("^C"), "refused by gompirun: no": protocol.Refused("no"),
		"refused by gompirun": protocol.ErrRefused, "protocol error: x": protocol.Refused("protocol error: x"), "not found here": protocol.Refused("not found here"),
	} {
		if got := protocol.FromText(text); got.Error() != want.Error() || !errors.Is(got, errors.Unwrap(want)) && !errors.Is(got, want) {
			t.Errorf("%q becomes %v, not %v", text, got, want)
		}
	}
	err := protocol.Without(fmt.Errorf("%w: refused by gompirun: why", protocol.ErrRefused), protocol.ErrRefused)
	if err.Error() != "why" || !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("%v", err)
	}
	if err := protocol.Without(protocol.ErrRefused, protocol.ErrRefused); err != protocol.ErrRefused {
		t.Errorf("%v", err)
	}
}

// A tool shows states that only a newer head knows; a process takes none.
func TestStateOfLater(t *testing.T) {
	r := protocol.OpReport{Op: protocol.OpBody{Op: 1, State: 77, Why: 99}, Kind: 55}
	var got protocol.OpReport
	if err := protocol.Decode(&got, protocol.Encode(&r)); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range []protocol.OpBody{{Op: 1, State: 77}, {Op: 1, State: change.Done, Why: 99}} {
		if err := protocol.Decode(&protocol.OpBody{}, protocol.Encode(&b)); err == nil {
			t.Errorf("%+v was taken", b)
		}
	}
}

// FuzzMessage: what decodes, encodes to the same bytes.
func FuzzMessage(f *testing.F) {
	all := controltest.Samples(6)
	for i, m := range all {
		f.Add(uint8(i), protocol.Encode(m))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		m := controltest.Blank(all[int(which)%len(all)])
		if protocol.Decode(m, b) != nil {
			return
		}
		if again := protocol.Encode(m); !bytes.Equal(b, again) {
			t.Errorf("%T\n%x becomes\n%x", m, b, again)
		}
	})
}

// Whoever is refused something for a limit of gompirun is told which limit that is, once.
func TestFailureNamesLimits(t *testing.T) {
	err := fmt.Errorf("create bell: %w", syscall.EMFILE)
	for _, err := range []error{err, protocol.Hinted(err)} {
		if text := protocol.Failure(err).Text; strings.Count(text, "ulimit -n") != 1 || !strings.Contains(text, "create bell") {
			t.Errorf("refused: %q", text)
		}
	}
}
