// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

func (k *child) port() string {
	k.t.Helper()
	var b protocol.ValueBody
	k.must(k.Ask(bg, &protocol.Port{}, &b))
	return string(b.Val)
}

// meets asks for a meeting at a port by k alone.
func (k *child) meets(ctx context.Context, port string, accepts bool) (b protocol.ConnectBody, err error) {
	err = k.Ask(ctx, &protocol.Connect{Port: port, Accepts: accepts, Members: wire.MembersOf(k.id)}, &b)
	return b, err
}

// A group that gives up has met another or has not, and the other has met it just then:
// none is met by a group that does not know of it. Of one job, and of two.
func TestGivenUpMeetings(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("two jobs %v", two), func(t *testing.T) {
			r := newRig(t, 2, nil)
			a, b := r.join(0), (*child)(nil)
			if two {
				b = newRig(t, 1, nil).join(0)
			} else {
				b = r.join(1)
			}
			port := b.port()
			for round := range 150 {
				// In turn this end and the other one gives up, for which b has a port.
				quits, stays, accepts := a, b, false
				if !two && round%2 == 1 {
					quits, stays, accepts = b, a, true
				}
				ctx, cancel := context.WithTimeout(bg, time.Duration(rand.IntN(400))*time.Microsecond)
				other := make(chan protocol.ConnectBody, 1)
				go func() {
					m, err := stays.meets(bg, port, !accepts)
					if err != nil {
						t.Error(err)
					}
					other <- m
				}()
				m, err := quits.meets(ctx, port, accepts)
				cancel()
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
					quits.must(controltest.Async(t, func() (err error) { m, err = quits.meets(bg, port, accepts); return err })())
				}
				var n protocol.ConnectBody
				quits.must(controltest.Async(t, func() error { n = <-other; return nil })())
				if m.IDs != n.IDs || m.Job != n.Job {
					t.Fatalf("round %d: %v meet for %d, and %v for %d", round, m.Mine.Members, m.IDs, n.Mine.Members, n.IDs)
				}
				quits.must(quits.ReleaseSet(m.Theirs.Number))
				stays.must(stays.ReleaseSet(n.Theirs.Number))
			}
			r.parked(0)
		})
	}
}

// foreign is the head of a job of which nothing else is there.
type foreign struct {
	t    *testing.T
	job  wire.JobID
	conn net.Conn
}

// called waits until another head calls.
func (f *foreign) called(ln net.Listener) {
	f.t.Helper()
	var err error
	if f.conn, err = ln.Accept(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { f.conn.Close() })
	var m protocol.Greet
	fr, err := readFrame(f.conn.(*net.UnixConn))
	if err == nil {
		err = protocol.Decode(&m, fr.Body)
	}
	if err == nil {
		_, err = f.conn.Write(protocol.ShortFrame(0, 0, &protocol.Greet{Job: f.job, Port: m.Port}))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) hears(do protocol.JobMessageKind) *protocol.JobMessage {
	f.t.Helper()
	fr, err := readFrame(f.conn.(*net.UnixConn))
	m := new(protocol.JobMessage)
	if err == nil {
		err = protocol.Decode(m, fr.Body)
	}
	if err != nil || m.Kind != do {
		f.t.Fatalf("heard %+v, %v; want %d", m, err, do)
	}
	return m
}

func (f *foreign) says(m *protocol.JobMessage) {
	f.t.Helper()
	if _, err := f.conn.Write(protocol.ShortFrame(0, 0, m)); err != nil {
		f.t.Fatal(err)
	}
}

// Whether a group was met that gives up connecting to another job's port that job says. If
// it says nothing the wait ends, and one that is then accepted all the same is told of as
// one that cannot be reached.
func TestGivenUpAbroad(t *testing.T) {
	var now atomic.Int64
	now.Store(1)
	r := newRig(t, 1, func(cfg *Config) { cfg.Now = func() time.Duration { return time.Duration(now.Load()) } })
	a := r.join(0)
	f := &foreign{t: t, job: wire.JobID(rand.Uint64() | 1)}
	ln, err := net.Listen("unix", protocol.Address(f.job, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := fmt.Sprintf("gompi-port:%016x:1:0", uint64(f.job))
	theirs := wire.MembersOf(wire.ProcID{Job: f.job, Serial: 3})
	begin := func() (over func() error, cancel context.CancelFunc) {
		ctx, cancel := context.WithCancel(bg)
		return controltest.Async(t, func() error {
			m, err := a.meets(ctx, port, false)
			if err == nil {
				err = a.ReleaseSet(m.Theirs.Number)
			}
			return err
		}), cancel
	}
	for i, met := range []bool{true, false} {
		over, cancel := begin()
		if i == 0 {
			f.called(ln)
		}
		id := f.hears(protocol.JobConnect).ID
		cancel()
		if m := f.hears(protocol.JobHangUp); m.ID != id {
			t.Fatalf("group %d hangs up, not %d", m.ID, id)
		}
		if met {
			f.says(&protocol.JobMessage{Kind: protocol.JobAccepted, ID: id, Members: theirs, Number: 5})
			a.must(over())
		} else {
			f.says(&protocol.JobMessage{Kind: protocol.JobRefused, ID: id, Text: "cancelled"})
			if err := over(); !errors.Is(err, context.Canceled) {
				t.Fatalf("given up: %v", err)
			}
		}
	}
	over, cancel := begin()
	id := f.hears(protocol.JobConnect).ID
	cancel()
	f.hears(protocol.JobHangUp)
	r.parked(1)
	now.Add(int64(head.RecallWait))
	r.tick()
	if err := over(); !errors.Is(err, context.Canceled) {
		t.Fatalf("no answer: %v", err)
	}
	f.says(&protocol.JobMessage{Kind: protocol.JobAccepted, ID: id, Members: theirs, Number: 6})
	if m := f.hears(protocol.JobDisconnected); m.By != a.id || m.Proc != theirs.At(0) {
		t.Fatalf("cut off: %+v", m)
	}
	r.parked(0)
}
