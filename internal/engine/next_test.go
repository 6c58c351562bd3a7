// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/host/wait"
	"gompi/transport"
	"gompi/transport/inproc"
)

// walled is a transport that cannot connect to some.
type walled struct {
	transport.Transport
	name string
	shut func(p wire.ProcID) error // nil: to nobody
}

func (n *walled) Caps() transport.Caps {
	c := n.Transport.Caps()
	c.Name = n.name
	return c
}

func (n *walled) Connect(c wire.Contact) (transport.Slot, error) {
	if n.shut != nil {
		if err := n.shut(c.Proc); err != nil {
			closeContact(c)
			return 0, err
		}
	}
	return n.Transport.Connect(c)
}

// twoWays starts a job over two transports, of which the first cannot connect
// where shut has an error. kill ends the connections of a node, which says nothing
// from then on.
func twoWays(t *testing.T, n int, shut func(from, to int) error) (ns []*node, kill func(*node)) {
	first, second := inproc.NewHub(), inproc.NewHub()
	ns, own := testJobOf(t, n, nil, func(i int, c *Config) {
		s := wait.NewChan()
		c.Sleeper, c.Transports = s, nil
		for k, hub := range []*inproc.Hub{first, second} {
			tr, err := hub.Open(transport.Env{Self: c.Self, Wake: s.Wake, Segment: -1, Bell: -1})
			if err != nil {
				t.Fatal(err)
			}
			w := &walled{Transport: tr, name: []string{"first", "second"}[k]}
			if k == 0 {
				w.shut = func(p wire.ProcID) error { return shut(i, int(p.Serial)-1) }
			}
			c.Transports = append(c.Transports, w)
		}
	})
	return ns, func(n *node) {
		for _, hub := range []*inproc.Hub{own, first, second} {
			hub.Kill(n.Self())
		}
	}
}

// exchange sends messages of several sizes both ways at the same time.
func exchange(t *testing.T, a, b *node) {
	t.Helper()
	var wg sync.WaitGroup
	sizes := []int{0, 5, 1000, 100_000, 1 << 20}
	for _, n := range []*node{a, b} {
		to := 1 - n.ctx.Rank
		wg.Go(func() {
			var reqs []Handle
			bufs := make([][]byte, len(sizes))
			for i, size := range sizes {
				bufs[i] = make([]byte, size)
				reqs = append(reqs, n.irecv(to, i, bufs[i]))
			}
			for i, size := range sizes {
				if f := n.send(to, i, bytes.Repeat([]byte{byte(i + 1)}, size)); f != nil {
					t.Errorf("rank %d sends %d bytes: %+v", n.ctx.Rank, size, f)
				}
			}
			for i, r := range reqs {
				if o := n.Wait(r); o.Status.Fault != nil || o.Status.Bytes != int64(sizes[i]) {
					t.Errorf("rank %d receives %d bytes: %+v", n.ctx.Rank, sizes[i], o)
				}
				if want := bytes.Repeat([]byte{byte(i + 1)}, sizes[i]); !bytes.Equal(bufs[i], want) {
					t.Errorf("rank %d receives something else in %d bytes", n.ctx.Rank, sizes[i])
				}
			}
		})
	}
	wg.Wait()
}

// A transport that cannot connect is not the end: the next is tried.
func TestNextTransport(t *testing.T) {
	full := fmt.Errorf("directory is full: %w", transport.ErrUnavailable)
	mixed := 0
	for what, shut := range map[string]func(from, to int) error{
		"nobody": func(int, int) error { return nil },
		"both":   func(int, int) error { return full },
		"0 to 1": func(from, _ int) error {
			if from == 0 {
				return full
			}
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			for round := range 20 {
				ns, kill := twoWays(t, 2, shut)
				a, b := ns[0], ns[1]
				if round%2 == 0 { // one begins
					if f := a.send(1, 50, []byte("hello")); f != nil {
						t.Fatalf("%+v", f)
					}
					if _, f := b.recv(0, 50, make([]byte, 5)); f != nil {
						t.Fatalf("%+v", f)
					}
				}
				exchange(t, a, b)
				exchange(t, a, b)
				if a.mixed(b) || b.mixed(a) {
					mixed++
				}
				name := a.TransportOf(a.ctx, 1)
				if want := map[string]string{"nobody": "first", "both": "second"}[what]; want != "" && name != want {
					t.Fatalf("by %q, want %s", name, want)
				}
				// What has been sent whole is delivered, by whatever it came.
				for i := range 10 {
					if f := b.send(0, 60, []byte{byte(i)}); f != nil {
						t.Fatalf("%+v", f)
					}
				}
				kill(b)
				a.ProcFailed(b.Self(), "was killed")
				for i := range 10 {
					buf := make([]byte, 1)
					if _, f := a.recv(1, 60, buf); f != nil || buf[0] != byte(i) {
						t.Fatalf("round %d: message %d is %d: %+v", round, i, buf[0], f)
					}
				}
				_, f := a.recv(1, 60, make([]byte, 1))
				wantClass(t, "receive", f, fault.ProcFailed)
			}
		})
	}
	t.Logf("%d pairs had two contacts", mixed)
}

// mixed reports whether n has two contacts with m.
func (n *node) mixed(m *node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[m.Self()].other != nil
}

// Where none can connect the error says so of each.
func TestNoTransport(t *testing.T) {
	ns, _ := twoWays(t, 2, func(int, int) error { return fmt.Errorf("directory is full: %w", transport.ErrUnavailable) })
	for _, tr := range ns[0].links[1:] {
		tr.Transport.(*walled).shut = func(wire.ProcID) error { return fmt.Errorf("no way: %w", transport.ErrUnavailable) }
	}
	f := ns[0].send(1, 1, []byte("x"))
	wantClass(t, "send", f, fault.Unreachable)
	if text := f.Err.Error(); !bytes.Contains([]byte(text), []byte("by first: ")) || !bytes.Contains([]byte(text), []byte("by second: ")) {
		t.Errorf("error %q", text)
	}
}

// A contact that cannot be answered, because who made it has ended since: what it
// had sent comes first.
func TestEndedBeforeAnswer(t *testing.T) {
	for range 50 {
		endedBefore(t, func(*node, wire.ProcID) {})
	}
}

// Likewise if the contact that it had made is seen after the answer.
func TestEndedUnseen(t *testing.T) {
	endedBefore(t, func(a *node, b wire.ProcID) { a.linkDown(a.peers[b], errors.New("it is gone")) })
}

// endedBefore has rank 1 send and die while rank 0, which does not look, waits for
// its contact; then fail is called, with the lock of rank 0.
func endedBefore(t *testing.T, fail func(a *node, b wire.ProcID)) {
	t.Helper()
	ns, hub := testJobOf(t, 2, nil, nil)
	a, b := ns[0], ns[1]
	asked, gone := make(chan struct{}), make(chan struct{})
	a.ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		close(asked)
		<-gone
		return wire.Contact{Segment: -1, Bell: -1}, fmt.Errorf("process %v is gone", p)
	}
	lost := a.isend(1, 1, []byte("x"), Standard)
	<-asked
	a.Lock() // so that it sees all at once
	for i := range 10 {
		if f := b.send(0, 60, []byte{byte(i)}); f != nil {
			t.Fatalf("%+v", f)
		}
	}
	fail(a, b.Self())
	hub.Kill(b.Self())
	close(gone)
	a.Unlock()
	a.ProcFailed(b.Self(), "was killed")
	for i := range 10 {
		buf := make([]byte, 1)
		if _, f := a.recv(1, 60, buf); f != nil || buf[0] != byte(i) {
			t.Fatalf("message %d is %d: %+v", i, buf[0], f)
		}
	}
	wantClass(t, "send", a.Wait(lost).Status.Fault, fault.ProcFailed)
}
