// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// everybody is all parties.
const everybody = protocol.Caller | protocol.Process | protocol.Gompictl | protocol.Agent | protocol.Head | protocol.ForeignHead

// TestRows holds that each row of the table is complete, and has a sample, which is also a seed
// of the fuzz tests.
func TestRows(t *testing.T) {
	samples := map[protocol.Kind][]protocol.Message{}
	for _, m := range controltest.Samples(6) {
		k := protocol.KindOf(m)
		samples[k] = append(samples[k], m)
	}
	names := map[string]protocol.Kind{}
	kinds := protocol.Kinds(everybody, everybody)
	for _, k := range kinds {
		name := k.String()
		if old, twice := names[name]; twice || name != strings.ToLower(name) || strings.ContainsAny(name, " %") {
			t.Errorf("kind %d is called %q, as kind %d", uint8(k), name, uint8(old))
		}
		names[name] = k
		most := protocol.MaxBody
		switch k {
		case protocol.KindCommand, protocol.KindReport, protocol.KindLaunchCommand: // they carry what a process sent
			most += 64
		}
		if n := k.BodyLimit(); n < 1 || n > most {
			t.Errorf("%v: limit of %d bytes, at most %d allowed", k, n, most)
		}
		if len(samples[k]) == 0 {
			t.Errorf("%v has no sample", k)
		}
		m := k.New()
		if m == nil {
			if k != protocol.KindPart {
				t.Errorf("%v has no constructor", k)
			}
			continue
		}
		if protocol.KindOf(m) != k {
			t.Errorf("%v makes a %v", k, protocol.KindOf(m))
		}
		if !slices.ContainsFunc(samples[k], func(s protocol.Message) bool { return reflect.TypeOf(s) == reflect.TypeOf(m) }) {
			t.Errorf("%v has no sample of type %T", k, m)
		}
	}
	for k := range samples {
		if !slices.Contains(kinds, k) {
			t.Errorf("there are samples of %v, which has no row", k)
		}
	}
	if none := protocol.Kind(250); none.String() != "kind 250" || none.BodyLimit() != 0 || none.New() != nil {
		t.Errorf("kind 250 exists: %v", none)
	}
}

// TestCheck holds that no party may send what its row does not say, and that the request number
// is where it has to be.
func TestCheck(t *testing.T) {
	for k := range 256 {
		kind := protocol.Kind(k)
		for from := protocol.Caller; from <= protocol.ForeignHead; from <<= 1 {
			may := slices.Contains(protocol.Kinds(from, everybody), kind)
			var errs [2]error
			for id := range errs {
				f := protocol.Frame{Kind: kind, ID: uint32(id)}
				errs[id] = f.Check(from)
			}
			switch {
			case !may:
				for _, err := range errs {
					if err == nil || !strings.Contains(err.Error(), kind.String()+" frame does not belong here") {
						t.Errorf("%v from %v: %v", kind, from, err)
					}
				}
			case kind.Asks():
				if errs[1] != nil || errs[0] == nil || !strings.Contains(errs[0].Error(), "no number") {
					t.Errorf("request %v from %v: %v", kind, from, errs)
				}
			case errs[0] != nil:
				t.Errorf("%v from %v: %v", kind, from, errs[0])
			}
		}
	}
	ask := protocol.Frame{Kind: protocol.KindWatch, ID: 7}
	if err := ask.Check(protocol.Process); err == nil || err.Error() != "watch frame is one way and has the request number 7" {
		t.Error(err)
	}
	for id := range uint32(2) { // it may be either
		f := protocol.Frame{Kind: protocol.KindFinalize, ID: id}
		if err := f.Check(protocol.Process); err != nil {
			t.Error(err)
		}
	}
}

// TestErrorsNameTheKind holds that errors of frames name the kind, not its number.
func TestErrorsNameTheKind(t *testing.T) {
	many := &protocol.SetGet{Keys: make([]string, protocol.MaxKeys+1)}
	f := protocol.Frame{Kind: protocol.KindSetGet, Body: protocol.Encode(many)}
	if _, err := f.Message(); err == nil || err.Error() != "set-get: 1025 elements, at most 1024 allowed" {
		t.Error(err)
	}
	long := protocol.ShortFrame(0, 0, &protocol.Disconnected{})
	long[protocol.OffLength+2] = 1
	if _, _, err := protocol.ParseHead(long); err == nil || err.Error() != "disconnected frame has 65552 bytes, at most 16384 allowed" {
		t.Error(err)
	}
}

// TestTooLong holds that what a reader would refuse is an error of the writer, which writes nothing
// of it.
func TestTooLong(t *testing.T) {
	word := strings.Repeat("x", protocol.MaxArgs)
	scattered := make([]wire.Range, protocol.MaxRanges+1)
	for i := range scattered {
		scattered[i] = wire.Range{First: wire.ProcID{Job: 1, Serial: uint32(5*i + 1)}, Count: 2, Stride: 1}
	}
	for want, m := range map[string]protocol.Message{
		"set-get: 1025 elements, at most 1024 allowed":                  &protocol.SetGet{Keys: make([]string, protocol.MaxKeys+1)},
		"put: 262145 bytes, at most 262144 allowed":                     &protocol.Put{Val: make([]byte, protocol.MaxValue+1)},
		"submit: number -1 is not in 0..":                               &protocol.Submit{Request: change.Request{Kind: change.Grow, Leave: -1}, Parts: make([]protocol.SubmitPart, 1)},
		"spawn frame would have 5":                                      &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 1, Argv: []string{word, word, word, word, word}}}},
		"fence: 65537 ranges of processes, at most 65536 allowed":       &protocol.Members{Kind: protocol.KindFence, Members: wire.NewMembers(scattered...)},
		"reply: 4194305 bytes, at most 4194304 allowed":                 &protocol.Reply{Body: make([]byte, protocol.MaxBody+1)},
		"welcome: 17 elements, at most 16 allowed":                      &protocol.Welcomed{Preallocated: make([]protocol.Preallocated, 17)},
		"launch-event: 65537 bytes, at most 65536 allowed":              &protocol.LaunchEvent{Data: make([]byte, protocol.MaxChunk+1)},
		"reply frame would have 4194305 bytes, at most 4194304 allowed": &protocol.Reply{Body: make([]byte, protocol.MaxBody-4)},
	} {
		b, err := protocol.AppendFrame([]byte("before"), 1, 0, m)
		if !errors.Is(err, protocol.ErrTooMany) || !strings.Contains(err.Error(), want) || string(b) != "before" {
			t.Errorf("%T: %v, %d bytes; want %q", m, err, len(b), want)
		}
	}
	if b, err := protocol.ReplyFrame(1, 0, &protocol.SetsBody{Sets: make([]protocol.SetName, protocol.MaxNames+1)}); !errors.Is(err, protocol.ErrTooMany) || b != nil {
		t.Errorf("a reply: %v", err)
	}
	for _, m := range controltest.Samples(6) {
		if _, err := protocol.AppendFrame(nil, 1, 0, m); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}
