// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// bye reads until the server closes and returns its last words.
func bye(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(controltest.Limit))
	words := ""
	for {
		f, err := readFrame(c)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("connection ends with %v", err)
			}
			return words
		}
		if f.Kind == protocol.KindBye {
			m := protocol.Text{Kind: protocol.KindBye}
			if err := protocol.Decode(&m, f.Body); err != nil {
				t.Error(err)
			}
			words = m.Text
		}
	}
}

func TestGarbageBeforeHello(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	big := protocol.ShortFrame(0, 0, &protocol.Hello{})
	big[protocol.OffLength+2] = 0xff
	for _, c := range []struct {
		send []byte
		want string
	}{
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "version"},
		{protocol.ShortFrame(1, 0, &protocol.Empty{Kind: protocol.KindFinalize}), "first frame"},
		{big, "at most"},
		{protocol.ShortFrame(0, 2, &protocol.Hello{}), "descriptors"},
		{protocol.ShortFrame(0, 0, &protocol.Hello{}), "unknown token"},
		{append(protocol.ShortFrame(0, 0, &protocol.Tool{}), protocol.ShortFrame(1, 0, &protocol.Empty{Kind: protocol.KindFinalize})...), "does not belong here"},
		{make([]byte, protocol.FrameHead), "version"},
	} {
		if got := bye(t, r.raw(c.send)); !strings.Contains(got, c.want) {
			t.Errorf("%.20q: %q; want %q in it", c.send, got, c.want)
		}
	}
	half := r.raw(protocol.ShortFrame(0, 0, &protocol.Hello{})[:7])
	half.CloseWrite()
	bye(t, half)
	a.settle()
}

// A program, a gompictl or a head of another protocol is told both versions and what is to be
// built anew, in a frame of its own protocol.
func TestAnotherProtocol(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	older, newer := byte(7), byte(wire.Protocol+1)
	own := fmt.Sprintf("gompirun has gompi %s, protocol %d", version.Gompi(), wire.Protocol)
	for _, c := range []struct {
		protocol byte
		frame    []byte
		want     []string
	}{
		{older, protocol.ShortFrame(0, 0, &protocol.Hello{Version: "x"}), []string{"the program has gompi (unknown build), protocol 7", "rebuild the program "}},
		{newer, protocol.ShortFrame(0, 0, &protocol.Hello{Version: "v9.9.9"}), []string{"the program has gompi v9.9.9, protocol ", "rebuild gompirun "}},
		{older, []byte{0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 0, 0}, []string{"gompictl has gompi (unknown build), protocol 7", "rebuild gompictl "}},
		{newer, protocol.ShortFrame(0, 0, &protocol.Tool{Version: "v9.9.9"}), []string{"gompictl has gompi v9.9.9, protocol ", "rebuild gompirun "}},
		{older, protocol.ShortFrame(0, 0, &protocol.Greet{}), []string{"the other job's gompirun has gompi (unknown build), protocol 7", "rebuild the other job's gompirun "}},
		{newer, protocol.ShortFrame(0, 0, &protocol.Greet{Version: "v9.9.9"}), []string{"the other job's gompirun has gompi v9.9.9", "rebuild gompirun "}},
	} {
		c.frame[4] = c.protocol
		conn := r.raw(c.frame)
		head := make([]byte, protocol.FrameHead)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		if head[4] != c.protocol || head[5] != byte(protocol.KindBye) {
			t.Errorf("protocol %d is answered with % x", c.protocol, head)
		}
		text, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
		for _, want := range append(c.want, own) {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q; want %q", text, want)
			}
		}
	}
	// The programs of a job would all print the same: the answer to the second waits until
	// the end of the first has ended the job.
	second := protocol.ShortFrame(0, 0, &protocol.Hello{})
	second[4] = older
	conn := r.raw(second)
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a second program of another protocol is answered at once: %v", err)
	}
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if text, err := io.ReadAll(conn); !strings.Contains(string(text), "rebuild the program ") {
		t.Errorf("a second program is told %q, %v", text, err)
	}
	a.settle()
}

// rawJoin says hello by hand as process i.
func (r *rig) rawJoin(i int) *net.UnixConn {
	r.t.Helper()
	var m protocol.Hello
	hex.Decode(m.Token[:], []byte(r.Token(r.procs[i].Proc)))
	r.Started(r.procs[i].Proc, os.Getpid())
	c := r.raw(protocol.ShortFrame(0, 0, &m))
	r.await(fmt.Sprint("joined ", i+1))
	return c
}

func TestGarbageAfterHello(t *testing.T) {
	twice := protocol.ShortFrame(4, 0, &protocol.Get{Key: "k", Wait: true})
	short := protocol.ShortFrame(3, 0, &protocol.Get{Key: "key", Wait: true})
	short[protocol.FrameHead] = 200
	bad := [][]byte{
		protocol.ShortFrame(0, 0, &protocol.Get{Key: "k"}),
		protocol.ShortFrame(3, 0, &protocol.Empty{Kind: protocol.KindIdle}),
		protocol.ShortFrame(3, 0, &protocol.Announce{}),
		protocol.ShortFrame(7, 0, &protocol.Members{Kind: protocol.KindWatch, Members: wire.MembersOf(wire.ProcID{Job: 5, Serial: 1})}),
		protocol.ShortFrame(0, 0, &protocol.Text{Kind: protocol.KindBye, Text: "bye"}),
		protocol.ShortFrame(0, 0, &protocol.Hello{}),
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
	a.expect(protocol.EvDied, r.procs[0].Proc)
}

// A dropped process that knew a pid may still use it until it has exited.
func TestDroppedHoldsBackReaping(t *testing.T) {
	r := newRig(t, 3, nil)
	r.watch = true
	dead, other := r.join(0), r.join(1)
	c := r.rawJoin(2)
	if _, err := c.Write(protocol.ShortFrame(1, 0, &protocol.Proc{Kind: protocol.KindContact, Proc: dead.id})); err != nil {
		t.Fatal(err)
	}
	r.reach("pids known", 2) // once from both sides
	if _, err := c.Write([]byte("garbage garbage garbage")); err != nil {
		t.Fatal(err)
	}
	bye(t, c)
	r.await("dropped 3")
	r.Exited(dead.id, "signal: killed", false)
	other.expect(protocol.EvDied, dead.id)
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
	val := make([]byte, protocol.MaxValue)
	a.must(a.Put("k", val))
	// Its own requests stop being read long before the hard limit...
	req := protocol.ShortFrame(1, 0, &protocol.Get{Key: "k", Wait: false})
	stopped.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for range 1 << 20 {
		if _, err := stopped.Write(req); err != nil {
			break
		}
	}
	most := 1<<20 + 2*protocol.MaxValue
	if r.links != nil {
		most += 4 * protocol.MaxValue // on their way
	}
	if n := r.sizes()["bytes queued"]; n > most {
		t.Errorf("%d bytes queued for its own requests; want about 1 MiB", n)
	}
	// ... and what others cause drops it.
	text := strings.Repeat("x", protocol.MaxText)
	for range 16 << 20 / protocol.MaxText {
		a.must(a.Cut(r.procs[1].Proc, text))
	}
	r.await("dropped 2 client left")
	a.settle()
	r.Exited(r.procs[1].Proc, "signal: killed", false)
	a.expect(protocol.EvDied, r.procs[1].Proc)
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
		r.host.Exited(p.Proc, strings.Repeat("signal: killed ", 10), false)
	}
	c.SetReadDeadline(time.Now().Add(controltest.Limit))
	if _, err := c.Write(protocol.ShortFrame(0, 0, &protocol.Members{Kind: protocol.KindWatch, Members: r.world.Members})); err != nil {
		t.Fatal(err)
	}
	for next := uint32(1); next <= uint32(n); {
		f, err := readFrame(c)
		if err != nil {
			t.Fatal(err)
		}
		var ev protocol.Event
		if f.Kind != protocol.KindEvent || protocol.Decode(&ev, f.Body) != nil || ev.Kind != protocol.EvDied {
			continue
		}
		if ev.Proc.Serial != next {
			t.Fatalf("death of %d; want that of %d", ev.Proc.Serial, next)
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
	samples := controltest.Samples(a.id.Job)
	for i := range n {
		c := r.rawJoin(i)
		var b []byte
		for range 50 {
			m := samples[rnd.IntN(len(samples))]
			if protocol.KindOf(m) == protocol.KindSpawn {
				continue
			}
			b = append(b, protocol.ShortFrame(rnd.Uint32N(3), 0, m)...)
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

// A process that asks without end for what does not come fills the head with no more
// than its share; its end gives that back.
func TestMadRequests(t *testing.T) {
	r := newRig(t, 64, nil)
	mad, other := r.rawJoin(0), r.join(1)
	ids := make([]wire.ProcID, 0, 64)
	for i := 0; i < 64; i += 1 + i%5%3 { // no stride has many
		ids = append(ids, r.procs[i].Proc)
	}
	scattered := wire.MembersOf(ids...)
	spawn := &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 1, Argv: []string{strings.Repeat("x", protocol.MaxArgs-9)}}}}
	r.holdSpawns = make(chan struct{})
	release := sync.OnceFunc(func() { close(r.holdSpawns) })
	t.Cleanup(release) // Close waits for them
	var b []byte
	for id := uint32(1); id <= 12; id++ {
		b = append(b, protocol.ShortFrame(id, 0, spawn)...)
	}
	for id := uint32(100); id < 30000; id++ {
		b = append(b, protocol.ShortFrame(id, 0, &protocol.Members{Kind: protocol.KindFence, Members: scattered})...)
	}
	go func() {
		mad.Write(b) // it is refused before all is written
	}()
	if got := bye(t, mad); !strings.Contains(got, "bytes of unanswered requests") {
		t.Errorf("%d bytes of fences and spawns: %q", len(b), got)
	}
	r.await("dropped 1 protocol error")
	r.reach("fences", 0)
	release()
	r.reach("bytes waiting", 0)
	other.must(other.Put("k", nil))
}

// What a process says last counts although it ends at once, with what it was sent
// unread.
func TestHeard(t *testing.T) {
	const n = 40
	r := newRig(t, n, nil)
	conns := make([]*net.UnixConn, n)
	for i := range conns {
		conns[i] = r.rawJoin(i)
	}
	for i, c := range conns {
		last := protocol.KindIdle
		if i%2 == 0 {
			last = protocol.KindFinalize
		}
		if _, err := c.Write(protocol.ShortFrame(0, 0, &protocol.Empty{Kind: last})); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if i > 0 {
			r.Exited(r.procs[i-1].Proc, "exit status 0", true) // all others hear how many they are now
		}
		p := r.procs[i].Proc
		heard := make(chan struct{})
		if !r.Heard(p, func() { close(heard) }) {
			<-heard
		}
		if at := r.State(p); at != protocol.Finalized {
			t.Errorf("process %v is %v", p, at)
		}
		if !r.Heard(p, nil) {
			t.Errorf("there is something to be heard of %v, which has ended", p)
		}
	}
	r.Exited(r.procs[n-1].Proc, "exit status 0", true)
}
