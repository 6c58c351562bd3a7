// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
)

// pair starts a send to one rank and a receive of another, both with tag 1.
func (n *node) pair(dest int32, out []byte, source int32, in []byte, user context.Context) Handle {
	s := SendArgs{Op: "Pair", Buf: buffer.Of(out), Dest: dest, Tag: 1, User: user}
	r := RecvArgs{Op: "Pair", Buf: buffer.Of(in), Source: source, Tag: 1, User: user}
	return n.Pair(n.ctx, "Pair", &s, &r, Status{})
}

// A pair ends when both of its parts have, whichever is first, and takes nothing
// that stays.
func TestPair(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	a, b := ns[0], ns[1]
	for _, size := range []int{8, 1 << 20} {
		out, in := pattern(make([]byte, size), 1), make([]byte, size+1)
		h := a.pair(1, out, 1, in, nil)
		if o := a.Test(h); o.Done {
			t.Fatal("it ends before anything has come")
		}
		sent := b.isend(0, 1, out, Standard)
		if size > 8 {
			within(t, "the receive", func() bool {
				b.Kick()
				a.Kick()
				a.Lock()
				defer a.Unlock()
				return in[size-1] == out[size-1]
			})
			if o := a.Test(h); o.Done {
				t.Fatal("it ends before its message is received")
			}
		}
		if _, f := b.recv(0, 1, make([]byte, size)); f != nil {
			t.Fatal(f)
		}
		b.ended(t, "the other's send", sent, fault.OK)
		if o := a.ended(t, "the pair", h, fault.OK); o.Status.Bytes != int64(size) || o.Status.Source != 1 || o.Status.Tag != 1 {
			t.Errorf("%+v", o)
		}
		if err := checkPattern(in[:size], 1); err != nil {
			t.Error(err)
		}
	}
	// What does not fit in the receive is its fault, and the send goes on.
	h := a.pair(1, make([]byte, 8), 1, make([]byte, 4), nil)
	b.send(0, 1, make([]byte, 8))
	if _, f := b.recv(0, 1, make([]byte, 8)); f != nil {
		t.Error(f)
	}
	if o := a.ended(t, "a pair that is too short", h, fault.Truncate); o.Peer != 1 {
		t.Errorf("%+v", o)
	}
	if a.Live() != 0 {
		t.Errorf("%d requests are left", a.Live())
	}
}

// However one part of a pair fails, the other is withdrawn or completes, and the
// pair ends.
func TestPairFails(t *testing.T) {
	big := make([]byte, 1<<20)
	why := errors.New("why")
	for _, x := range []struct {
		name  string
		class fault.Class
		f     func(n *node, cancel func(error))
	}{
		{"receiver dies", fault.ProcFailed, func(n *node, _ func(error)) { n.ProcFailed(proc(2), "test") }},
		{"revoked", fault.Revoked, func(n *node, _ func(error)) { n.Revoke(n.ctx) }},
		{"given up", fault.Cancelled, func(_ *node, cancel func(error)) { cancel(why) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			ns, _ := testJobOf(t, 3, nil, nil)
			n := ns[0]
			user, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			h := n.pair(1, big, 2, make([]byte, 8), user)
			go func() { x.f(n, cancel) }()
			n.ended(t, "the pair", h, x.class)
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.table.PostedLen() != 0 {
				t.Error("its receive is still posted")
			}
		})
	}
}

// A pair that is pending when its context is freed completes, and ends it.
func TestPairFreed(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	a, b := ns[0], ns[1]
	big, in := pattern(make([]byte, 1<<20), 5), make([]byte, 1<<20)
	h := a.pair(1, big, 1, in, nil)
	a.FreeContext(a.ctx)
	a.lives(t)
	wantClass(t, "a later one", a.Wait(a.pair(1, big, 1, in, nil)).Status.Fault, fault.Comm)
	a.lives(t)
	sent := b.isend(0, 1, big, Standard)
	if _, f := b.recv(0, 1, make([]byte, 1<<20)); f != nil {
		t.Fatal(f)
	}
	a.ended(t, "the pair", h, fault.OK)
	b.ended(t, "the other's send", sent, fault.OK)
	a.gone(t)
	if o := a.Cancel(h); o.Status.Fault == nil {
		t.Error("a complete pair is cancelled")
	}
}
