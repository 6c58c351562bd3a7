// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// Whatever a process may ask has its row.
func TestRequestsAreComplete(t *testing.T) {
	for k := range 256 {
		f := protocol.Frame{Kind: protocol.Kind(k), ID: 1}
		_, known := requests[f.Kind]
		if asks := f.Check(protocol.Process) == nil; asks != known {
			t.Errorf("%v: is a request: %v, has a row: %v", f.Kind, asks, known)
		}
	}
	for k, r := range requests {
		if r.waits && r.back != nil || r.back == nil && r.same != nil {
			t.Errorf("%v: %+v", k, r)
		}
	}
}

// head is the other end of a client's connection.
type head struct {
	t   *testing.T
	end *socket
	in  *fdReader
}

// next reads a frame of this kind into m.
func (h *head) next(kind protocol.Kind, m protocol.Message) (id uint32) {
	h.t.Helper()
	var f protocol.Frame
	err := controltest.Async(h.t, func() (err error) { f, _, err = h.in.next(); return err })()
	if err != nil || f.Kind != kind {
		h.t.Fatalf("%v frame, %v; want %v", f.Kind, err, kind)
	}
	if m != nil {
		if err := protocol.Decode(m, f.Body); err != nil {
			h.t.Fatal(err)
		}
	}
	return f.ID
}

// cancelled reads that a request is withdrawn.
func (h *head) cancelled(id uint32) {
	h.t.Helper()
	var m protocol.Cancel
	if h.next(protocol.KindCancel, &m); m.ID != id {
		h.t.Fatalf("request %d is cancelled, not %d", m.ID, id)
	}
}

// answers sends an answer, with descriptors if the frame is to have some.
func (h *head) answers(id uint32, files bool, r *protocol.Reply) {
	h.t.Helper()
	var rights []byte
	fds := 0
	if files {
		rights, fds = unix.UnixRights(0, 0), protocol.FrameFDs
	}
	var sent error
	err := h.end.raw.Control(func(fd uintptr) {
		sent = unix.Sendmsg(int(fd), protocol.ShortFrame(id, fds, r), rights, nil, 0)
	})
	if err := errors.Join(err, sent); err != nil {
		h.t.Fatal(err)
	}
}

func newHead(t *testing.T) (*Client, *head) {
	c, end := deaf(t)
	return c, &head{t: t, end: end, in: newFDReader(end)}
}

// What an answer gives that nobody waits for any more is given back, and only then is the
// same thing asked for again: or that would be taken, too.
func TestLateAnswersAreGivenBack(t *testing.T) {
	x := wire.ArenaRange{Arena: 1, Total: 1 << 20, Off: 64, Bytes: 4096}
	page := protocol.PageBody{X: x, Members: 2, Place: 1}
	asked := page
	asked.Rest = protocol.Encode(&protocol.QueryBody{Page: 9})
	replaced := protocol.PageBody{Rest: protocol.Encode(&protocol.QueryBody{Successor: 9})}
	for name, q := range map[string]struct {
		ask    protocol.Message
		answer protocol.Message
		files  bool
		back   []protocol.Message
	}{
		"lookup":  {ask: &protocol.Text{Kind: protocol.KindLookup, Text: "app://x"}, answer: &protocol.DescribeBody{Set: wire.Set{Number: 7}}, back: []protocol.Message{&protocol.Release{Number: 7}}},
		"define":  {ask: &protocol.Members{Kind: protocol.KindDefine, Members: wire.MembersOf(serial(1))}, answer: &protocol.SetBody{S: wire.Set{Number: 7}}, back: []protocol.Message{&protocol.Release{Number: 7}}},
		"algebra": {ask: &protocol.Algebra{Do: protocol.Union, In: []uint32{1}}, answer: &protocol.SetsBody{Sets: []protocol.SetName{{Number: 7, Name: "a"}, {Name: protocol.EmptyURI}, {Number: 8, Name: "b"}}}, back: []protocol.Message{&protocol.Release{Number: 7}, &protocol.Release{Number: 8}}},
		"common":  {ask: &protocol.Common{Members: wire.MembersOf(serial(1)), Bytes: 1}, answer: &protocol.CommonBody{X: x}, files: true, back: []protocol.Message{&protocol.LeaveCommon{Arena: 1, Off: 64}}},
		"memory":  {ask: &protocol.Memory{Name: "m", Bytes: 1}, answer: &protocol.MemoryBody{Name: "m", Bytes: 4096}, files: true, back: []protocol.Message{&protocol.LeaveMemory{Name: "m"}}},
		"follow":  {ask: &protocol.Subscribe{Set: 3}, answer: &page, files: true, back: []protocol.Message{&protocol.LeaveCommon{Arena: 1, Off: 64}, &protocol.Set{Kind: protocol.KindUnsubscribe, Number: 3}}},
		"asked":   {ask: &protocol.Subscribe{Set: 3, In: 4}, answer: &asked, files: true, back: []protocol.Message{&protocol.LeaveCommon{Arena: 1, Off: 64}, &protocol.Set{Kind: protocol.KindUnsubscribe, Number: 9}}},
		"alone":   {ask: &protocol.Subscribe{Set: 3}, answer: &protocol.PageBody{}, back: []protocol.Message{&protocol.Set{Kind: protocol.KindUnsubscribe, Number: 3}}},
		"none":    {ask: &protocol.Subscribe{Set: 3, In: 4}, answer: &replaced},
	} {
		t.Run(name, func(t *testing.T) {
			c, h := newHead(t)
			ask := func(ctx context.Context) func() error {
				return controltest.Async(t, func() error {
					fds, err := c.AskFiles(ctx, q.ask, reflect.New(reflect.TypeOf(q.answer).Elem()).Interface().(protocol.Message))
					if err == nil {
						protocol.CloseFiles(fds[:]...)
					}
					return err
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			over := ask(ctx)
			kind := protocol.KindOf(q.ask)
			id := h.next(kind, nil)
			cancel()
			if err := over(); !errors.Is(err, context.Canceled) {
				t.Fatalf("given up: %v", err)
			}
			h.cancelled(id)
			after := func() uint32 { return h.next(kind, nil) }
			again := ask(t.Context())
			if requests[kind].same == nil {
				id := after()
				after = func() uint32 { return id }
			}
			h.answers(id, q.files, &protocol.Reply{Body: protocol.Encode(q.answer)})
			for _, want := range q.back {
				got := reflect.New(reflect.TypeOf(want).Elem()).Interface().(protocol.Message)
				if s, ok := want.(*protocol.Set); ok {
					got = &protocol.Set{Kind: s.Kind}
				}
				if h.next(protocol.KindOf(want), got); !reflect.DeepEqual(got, want) {
					t.Errorf("given back: %+v, want %+v", got, want)
				}
			}
			h.answers(after(), q.files, &protocol.Reply{Body: protocol.Encode(q.answer)})
			if err := again(); err != nil {
				t.Errorf("asked again: %v", err)
			}
			// Nothing of it is left to be taken.
			end := controltest.Async(t, c.Finalize)
			h.answers(h.next(protocol.KindFinalize, nil), false, &protocol.Reply{})
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What may have happened returns when the head says whether it has: as ever if so, and
// else as given up.
func TestEffectsAreAnswered(t *testing.T) {
	body := protocol.Encode(&protocol.ValueBody{Val: []byte("v")})
	for kind, r := range requests {
		if !r.waits {
			continue
		}
		var asks []protocol.Message
		for _, m := range controltest.Samples(7) {
			if protocol.KindOf(m) == kind {
				asks = append(asks, m)
			}
		}
		if len(asks) == 0 {
			t.Fatalf("kind %d has no sample", kind)
		}
		for _, happened := range []bool{true, false} {
			c, h := newHead(t)
			ctx, cancel := context.WithCancel(t.Context())
			over := controltest.Async(t, func() error { return c.Ask(ctx, asks[0], new(protocol.ValueBody)) })
			id := h.next(kind, nil)
			cancel()
			h.cancelled(id)
			a := &protocol.Reply{Body: body}
			if !happened {
				a = protocol.Failure(protocol.Refused("cancelled"))
			}
			h.answers(id, false, a)
			if err := over(); happened && err != nil || !happened && !errors.Is(err, context.Canceled) {
				t.Errorf("kind %d: happened %v: %v", kind, happened, err)
			}
		}
		// The end of the connection ends the wait.
		c, h := newHead(t)
		ctx, cancel := context.WithCancel(t.Context())
		over := controltest.Async(t, func() error { return c.Ask(ctx, asks[0], new(protocol.ValueBody)) })
		id := h.next(kind, nil)
		cancel()
		h.cancelled(id)
		h.end.Close()
		if err := over(); !errors.Is(err, context.Canceled) {
			t.Errorf("kind %d: connection lost: %v", kind, err)
		}
	}
}
