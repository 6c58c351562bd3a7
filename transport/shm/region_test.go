// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

const exposedBytes = 8 << 20

// lies exposes memory and does nothing more.
func lies(m *mini) {
	b := make([]byte, exposedBytes)
	fill(b, 3)
	key, value := m.tr.Proof()
	p := binary.LittleEndian.AppendUint64(nil, m.tr.Register(b))
	p = binary.LittleEndian.AppendUint64(p, key)
	m.send(wire.Header{miniData}, binary.LittleEndian.AppendUint64(p, value))
	for m.next().Kind != transport.EvDown {
	}
	b[0]++ // it lives until here
}

// reach finds what the child has exposed.
func (c *child) reach(t testing.TB) (m transport.Memory, key uint64) {
	t.Helper()
	e := c.next()
	for ; e.Kind != transport.EvRecv; e = c.next() {
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(e.Payload[8*i:]) }
	m, err := c.tr.Reach(wire.Contact{Proc: childID, SameHost: true, PID: c.cmd.Process.Pid, Segment: dup(c.fds[2]), Bell: dup(c.fds[3])}, word(1), word(2))
	if err != nil {
		t.Fatal(err)
	}
	return m, word(0)
}

// Memory of another process is read and written while that does not look.
func TestExposed(t *testing.T) {
	c := start(t, "lies")
	m, key := c.reach(t)
	want := make([]byte, exposedBytes)
	fill(want, 3)
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		n := r.IntN(1 + transport.MaxRead>>r.IntN(18))
		off := r.IntN(exposedBytes - n + 1)
		got := make([]byte, n)
		if err := m.Read(got, key, int64(off)); err != nil || !bytes.Equal(got, want[off:off+n]) {
			t.Fatalf("%d bytes at %d: %v", n, off, err)
		}
		fill(got, r.Uint64())
		copy(want[off:], got)
		if err := m.Write(got, key, int64(off)); err != nil {
			t.Fatal(err)
		}
	}
	// A piece ends where the other's memory does: what comes before is copied.
	got := make([]byte, 4096)
	if err := m.ReadRuns([]transport.Run{{Mem: got[:8]}, {Mem: got[8:16], Off: 1 << 46}, {Mem: got[16:24], Off: 8}}, key); err == nil || errors.Is(err, transport.ErrPeerGone) {
		t.Fatalf("read from nowhere: %v", err)
	}
	if !bytes.Equal(got[:8], want[:8]) {
		t.Fatal("the run before the bad one was not read")
	}
	c.stop(t)
}

// TestKillExposed kills a process whose memory is being read and written:
// copies succeed until there is no such process any more.
func TestKillExposed(t *testing.T) {
	kills := 30
	if testing.Short() {
		kills = 5
	}
	r := rand.New(rand.NewPCG(9, 4))
	for range kills {
		c := start(t, "lies")
		m, key := c.reach(t)
		var wg sync.WaitGroup
		for i, copies := range []func([]byte, []transport.Run) error{
			func(b []byte, _ []transport.Run) error { return m.Read(b, key, 0) },
			func(b []byte, _ []transport.Run) error { return m.Write(b, key, 1<<20) },
			func(_ []byte, runs []transport.Run) error { return m.ReadRuns(runs, key) },
			func(_ []byte, runs []transport.Run) error { return m.WriteRuns(runs, key) },
		} {
			wg.Go(func() {
				b := make([]byte, transport.MaxRead)
				runs := make([]transport.Run, transport.MaxRuns)
				for k := range runs {
					runs[k] = transport.Run{Mem: make([]byte, 4096), Off: int64((i*transport.MaxRuns + k) << 14)}
				}
				for end := time.Now().Add(20 * time.Second); ; {
					err := copies(b, runs)
					if errors.Is(err, transport.ErrPeerGone) {
						return
					}
					if err != nil || time.Now().After(end) {
						t.Errorf("copy %d: %v", i, err)
						return
					}
				}
			})
		}
		<-time.After(time.Duration(r.IntN(8000)) * time.Microsecond)
		c.cmd.Process.Signal(syscall.SIGKILL)
		wg.Wait() // it is not reaped yet: its pid is nobody else's
		c.cmd.Wait()
		c.tr.Fail(c.slot)
		c.tr.Close()
		c.closeFDs()
	}
}
