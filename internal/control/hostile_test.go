// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
)

// bye reads until the server closes and returns its last words.
func bye(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	in := newFDReader(c)
	defer in.close()
	words := ""
	for {
		f, fds, err := in.next()
		closeFDs(fds[:])
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("connection ends with %v", err)
			}
			return words
		}
		if f.kind == kBye {
			words = byeError(f.body).Error()
		}
	}
}

func TestGarbageBeforeHello(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	big := appendFrame(nil, 0, 0, &helloMsg{})
	big[offLength+2] = 0xff
	for _, c := range []struct {
		send []byte
		want string
	}{
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "version"},
		{appendFrame(nil, 1, 0, &emptyMsg{kFinalize}), "first frame"},
		{big, "at most"},
		{appendFrame(nil, 0, 2, &helloMsg{}), "descriptors"},
		{appendFrame(nil, 0, 0, &helloMsg{}), "unknown token"},
		{append(appendFrame(nil, 0, 0, &emptyMsg{kTool}), appendFrame(nil, 1, 0, &emptyMsg{kFinalize})...), "does not belong here"},
		{make([]byte, frameHead), "version"},
	} {
		if got := bye(t, r.raw(c.send)); !strings.Contains(got, c.want) {
			t.Errorf("%.20q: %q; want %q in it", c.send, got, c.want)
		}
	}
	half := r.raw(appendFrame(nil, 0, 0, &helloMsg{})[:7])
	half.CloseWrite()
	bye(t, half)
	a.settle()
}

// rawJoin says hello by hand as process i.
func (r *rig) rawJoin(i int) *net.UnixConn {
	r.t.Helper()
	var m helloMsg
	hex.Decode(m.token[:], []byte(r.procs[i].Token))
	r.Started(r.procs[i].Proc, os.Getpid())
	c := r.raw(appendFrame(nil, 0, 0, &m))
	r.await(fmt.Sprint("joined ", i+1))
	return c
}

func TestGarbageAfterHello(t *testing.T) {
	twice := appendFrame(nil, 4, 0, &getMsg{"k", true})
	short := appendFrame(nil, 3, 0, &getMsg{"key", true})
	short[frameHead] = 200
	bad := [][]byte{
		appendFrame(nil, 0, 0, &emptyMsg{kFinalize}),
		appendFrame(nil, 3, 0, &announceMsg{}),
		appendFrame(nil, 7, 0, &membersMsg{kWatch, wire.MembersOf(wire.ProcID{Job: 5, Serial: 1})}),
		appendFrame(nil, 0, 0, &textMsg{kBye, "bye"}),
		appendFrame(nil, 0, 0, &helloMsg{}),
		append(twice, twice...),
		short,
	}
	r := newRig(t, len(bad)+1, nil)
	r.watch = true
	a := r.join(len(bad))
	for i, b := range bad {
		c := r.rawJoin(i)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if got := bye(t, c); !strings.Contains(got, "protocol error") {
			t.Errorf("frame %d: %q", i, got)
		}
		r.await(fmt.Sprintf("dropped %d protocol error", i+1))
	}
	// What a dropped process may still do to others ends with its exit only.
	a.settle()
	r.Exited(r.procs[0].Proc, "signal: killed", false)
	a.expect(EvDied, r.procs[0].Proc)
}

// A dropped process that knew a pid may still use it until it has exited.
func TestDroppedHoldsBackReaping(t *testing.T) {
	r := newRig(t, 3, nil)
	r.watch = true
	dead, other := r.join(0), r.join(1)
	c := r.rawJoin(2)
	if _, err := c.Write(appendFrame(nil, 1, 0, &procMsg{kContact, dead.id})); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the contact is given", func() bool {
		r.Server.mu.Lock()
		defer r.Server.mu.Unlock()
		return len(r.agent.seats[1].knownBy) == 1
	})
	if _, err := c.Write([]byte("garbage garbage garbage")); err != nil {
		t.Fatal(err)
	}
	bye(t, c)
	r.await("dropped 3")
	r.Exited(dead.id, "signal: killed", false)
	other.expect(EvDied, dead.id)
	other.settle()
	if r.noted("reap 1") {
		t.Error("reaped while the dropped process runs")
	}
	r.Exited(r.procs[2].Proc, "signal: killed", false)
	r.await("reap 1")
	r.await("reap 3")
}

// A client that never reads is dropped and delays nobody.
func TestStoppedClient(t *testing.T) {
	r := newRig(t, 3, nil)
	r.watch = true
	a := r.join(0)
	stopped := r.rawJoin(1)
	val := make([]byte, MaxValue)
	a.must(a.Put("k", val))
	// Its own requests stop being read long before the hard limit...
	req := appendFrame(nil, 1, 0, &getMsg{"k", false})
	stopped.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for range 1 << 20 {
		if _, err := stopped.Write(req); err != nil {
			break
		}
	}
	r.Server.mu.Lock()
	p := r.peers[2]
	r.Server.mu.Unlock()
	p.mu.Lock()
	queued := p.bytes
	p.mu.Unlock()
	if queued > softQueue+2*MaxValue {
		t.Errorf("%d bytes queued for its own requests; want about %d", queued, softQueue)
	}
	// ... and what others cause drops it.
	ev := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvAbort, Text: strings.Repeat("x", maxText)}})
	r.Server.mu.Lock()
	for range hardQueue / len(ev) {
		r.st.send(r.st.bySerial(2), ev)
	}
	r.flush()
	r.Server.mu.Unlock()
	r.await("dropped 2 client left")
	a.settle()
	r.Exited(r.procs[1].Proc, "signal: killed", false)
	a.expect(EvDied, r.procs[1].Proc)
}

// A thousand deaths reach a process that does not read while they happen.
func TestNoDeathIsLost(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	r := newRig(t, n+1, nil)
	r.watch = true
	c := r.rawJoin(n)
	for _, p := range r.procs[:n] {
		r.Exited(p.Proc, strings.Repeat("signal: killed ", 10), false)
	}
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Write(appendFrame(nil, 0, 0, &membersMsg{kWatch, r.world.Members})); err != nil {
		t.Fatal(err)
	}
	in := newFDReader(c)
	defer in.close()
	for next := uint32(1); next <= uint32(n); {
		f, fds, err := in.next()
		closeFDs(fds[:])
		if err != nil {
			t.Fatal(err)
		}
		var m eventMsg
		if f.kind != kEvent || decode(&m, f.body) != nil || m.ev.Kind != EvDied {
			continue
		}
		if m.ev.Proc.Serial != next {
			t.Fatalf("death of %d; want that of %d", m.ev.Proc.Serial, next)
		}
		next++
	}
}

// Random bytes and mutilated frames from a process that has joined.
func TestRandomFrames(t *testing.T) {
	n := 60
	r := newRig(t, n+1, nil)
	a := r.join(n)
	rnd := rand.New(rand.NewPCG(3, 4))
	samples := samples(a.id.Job)
	for i := range n {
		c := r.rawJoin(i)
		var b []byte
		for range 50 {
			m := samples[rnd.IntN(len(samples))]
			if m.kind() == kSpawn {
				continue
			}
			b = appendFrame(b, rnd.Uint32N(3), 0, m)
			if rnd.IntN(4) == 0 {
				b[len(b)-1-rnd.IntN(min(len(b), 40))] = byte(rnd.Uint32())
			}
		}
		c.Write(b) // may fail in the middle
		c.Close()
	}
	a.settle()
	for i := range n {
		r.Exited(r.procs[i].Proc, "signal: killed", false)
	}
	r.await("reap 1")
}

func TestClientRefusesGarbage(t *testing.T) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@gompi-test-%d", os.Getpid()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	token := strings.Repeat("00", 16)
	for _, b := range [][]byte{
		[]byte("SSH-2.0-OpenSSH_9.6\r\n"),
		appendFrame(nil, 0, 0, &welcomeMsg{}),                  // without descriptors
		appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvHost}}), // not a welcome
		appendFrame(nil, 0, 0, &welcomeMsg{})[:40],
		nil,
	} {
		served := async(t, func() error {
			c, err := ln.AcceptUnix()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, frameHead+tokenBytes)); err != nil {
				return err
			}
			_, err = c.Write(b)
			return err
		})
		if _, _, err := Dial(ln.Addr().String(), token); err == nil {
			t.Errorf("joined with answer %.20q", b)
		}
		if err := served(); err != nil {
			t.Error(err)
		}
	}
}
