// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/test/testlab"
	"gompi/transport"
)

// flood sends numbered messages of random sizes for ever.
func flood(m *mini) {
	r := rand.New(rand.NewPCG(1, 1))
	p := make([]byte, m.tr.Caps().EagerMax)
	for i := uint64(1); ; i++ {
		n := r.IntN(len(p)) >> r.IntN(12)
		fill(p[:n], i)
		if !m.send(wire.Header{miniData, i}, p[:n]) {
			return
		}
		for m.at < m.n {
			if m.next().Kind == transport.EvDown {
				return
			}
		}
	}
}

// pack is flood with payloads that are written in the parent's memory, so
// that death comes in the middle of many.
func pack(m *mini) {
	r := rand.New(rand.NewPCG(3, 3))
	for i := uint64(1); ; {
		switch p, st := m.tr.Reserve(m.slot, 1+r.IntN(m.tr.Caps().EagerMax)); st {
		case transport.Sent:
			fill(p, i)
			m.tr.Commit(m.slot, &wire.Header{miniData, i}, p)
			i++
		case transport.Full:
			m.next()
		default:
			return
		}
	}
}

// bulks offers buffers and takes those of the peer, for ever.
func bulks(m *mini) {
	r := rand.New(rand.NewPCG(2, 2))
	mine, theirs := make([]byte, 8<<20), make([]byte, 8<<20)
	offer := func() { m.offer(mine[:1+r.IntN(len(mine))>>r.IntN(8)]) }
	offer()
	for {
		switch e := m.next(); e.Kind {
		case transport.EvRecv:
			m.tr.Accept(m.slot, e.Payload, theirs, 2)
		case transport.EvBulk:
			if e.Token == 1 {
				offer()
			}
		case transport.EvDown:
			return
		}
	}
}

func fill(p []byte, seed uint64) {
	for i := range p {
		p[i] = byte(seed + uint64(i)*11)
	}
}

// TestKill kills the peer at random moments. Everything that it sent whole
// comes, nothing comes half, transfers end with ErrPeerGone, EvDown is last.
func TestKill(t *testing.T) {
	kills := testlab.Rounds(12, 30)
	for _, v := range []struct {
		role string
		env  []string
	}{
		{"flood", nil},
		{"flood", []string{"GOMPI_RING=4096"}},
		{"pack", nil},
		{"pack", []string{"GOMPI_RING=4096"}},
		{"bulks", nil},
		{"bulks", []string{"GOMPI_CMA=off"}},
	} {
		t.Run(v.role, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(v.env)), 4))
			for range kills {
				c := start(t, v.role, v.env...)
				c.untilKilled(t, time.Duration(r.IntN(20000))*time.Microsecond)
				c.tr.Close()
				c.closeFDs()
			}
		})
	}
}

// TestKillAnswering kills a peer that answers each message, in the duplex line if it may.
// Each answer that comes is the next one and whole, after it EvDown.
func TestKillAnswering(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 4
	}
	r := rand.New(rand.NewPCG(5, 5))
	for _, setting := range []string{"GOMPI_DUPLEX=auto", "GOMPI_DUPLEX=off"} {
		most, mostInLine := 0, 0
		// Longer where the machine is so busy that there were no answers to speak of.
		for k := 0; k < kills || most < 100 && k < 10*kills; k++ {
			c := start(t, "echo", setting)
			n, inLine := c.answeredUntilKilled(t, time.Duration(r.IntN(10000))*time.Microsecond*time.Duration(1+k/kills))
			most, mostInLine = max(most, n), max(mostInLine, inLine)
			c.tr.Release(c.slot)
			c.tr.Close()
			c.closeFDs()
		}
		if off := setting == "GOMPI_DUPLEX=off"; most < 100 || off && mostInLine > 0 || !off && mostInLine < most/2 {
			t.Errorf("%s: %d answers at most, %d in the line", setting, most, mostInLine)
		}
	}
}

// answeredUntilKilled plays ping-pong with the child, kills it after d, and follows it to
// its EvDown. It returns the number of answers, and of those that came in the line.
func (c *child) answeredUntilKilled(t *testing.T, d time.Duration) (answers, inLine int) {
	t.Helper()
	var p [8]byte
	fill(p[:], 0)
	c.send(wire.Header{miniData}, p[:])
	for c.next().Kind != transport.EvRecv {
	}
	dead := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		c.cmd.Process.Signal(syscall.SIGKILL)
		c.cmd.Wait()
		close(dead)
	})
	defer timer.Stop()
	for deadline, failed, sent := time.Now().Add(20*time.Second), false, 0; ; {
		if sent == answers {
			sent++
			fill(p[:], uint64(sent))
			c.send(wire.Header{miniData, 0, uint64(sent % 3)}, p[:])
		}
		for turns := 0; c.at == c.n; turns++ {
			c.at, c.n = 0, c.tr.Poll(c.ev[:])
			if turns%1024 < 1023 || failed {
				continue
			}
			select {
			case <-dead:
				failed = true
				c.tr.Fail(c.slot)
			default:
				runtime.Gosched()
			}
		}
		switch e := c.next(); e.Kind {
		case transport.EvRecv:
			answers++
			if in := c.tr.conn(c.slot).in; uint32(in.half.word.Load()>>32) == in.seq-1 {
				inLine++
			}
			want := [8]byte{}
			fill(want[:], uint64(answers))
			if e.Header != (wire.Header{miniData, 0, uint64(answers % 3)}) || !bytes.Equal(e.Payload, want[:]) {
				t.Fatalf("answer %d: %v %x", answers, e.Header, e.Payload)
			}
		case transport.EvDown:
			if !failed || !errors.Is(e.Err, transport.ErrPeerGone) {
				t.Fatalf("EvDown (declared dead: %v) after %d answers: %v", failed, answers, e.Err)
			}
			return answers, inLine
		}
		if time.Now().After(deadline) {
			t.Fatalf("no EvDown after %d answers", answers)
		}
	}
}

// untilKilled plays with the child, kills it after d, and follows it to its
// EvDown.
func (c *child) untilKilled(t *testing.T, d time.Duration) {
	t.Helper()
	dead := make(chan struct{})
	first := make(chan struct{})
	go func(first <-chan struct{}) {
		<-first
		timer := time.NewTimer(d)
		<-timer.C
		c.cmd.Process.Signal(syscall.SIGKILL)
		c.cmd.Wait()
		close(dead)
	}(first)
	deadline := time.Now().Add(20 * time.Second)
	mine, theirs := make([]byte, 4<<20), make([]byte, 8<<20)
	offers, ends, last, failed := 0, 0, uint64(0), false
	// An offer that finds no room is sent later: waiting for room here would
	// wait for ever once the child is dead, and throw its messages away.
	var unsent []byte
	offer := func() {
		if n, err := c.tr.Offer(c.slot, mine, 1, c.desc[:]); err == nil {
			offers++
			unsent = c.desc[:n]
		}
	}
	offer()
	var ev [16]transport.Event
	for {
		if unsent != nil && c.tr.Send(c.slot, &wire.Header{miniOffer}, unsent, 0) != transport.Full {
			unsent = nil
		}
		n := c.tr.Poll(ev[:])
		if n == 0 {
			select {
			case <-dead:
				if !failed {
					failed = true
					c.tr.Fail(c.slot)
				}
			default:
			}
			if time.Now().After(deadline) {
				t.Fatal("no EvDown")
			}
		}
		for i := range ev[:n] {
			e := &ev[i]
			switch e.Kind {
			case transport.EvRecv:
				if first != nil {
					close(first)
					first = nil
				}
				if e.Header[0] == miniOffer {
					if err := c.tr.Accept(c.slot, e.Payload, theirs, 2); err != nil && !failed {
						t.Fatal(err)
					}
					continue
				}
				if last++; e.Header[1] != last {
					t.Fatalf("message %d, want %d", e.Header[1], last)
				}
				for k, b := range e.Payload {
					if b != byte(last+uint64(k)*11) {
						t.Fatalf("message %d: byte %d of %d is wrong", last, k, len(e.Payload))
					}
				}
			case transport.EvBulk:
				if e.Err != nil && !errors.Is(e.Err, transport.ErrPeerGone) {
					t.Fatal(e.Err)
				}
				if e.Token == 1 {
					ends++
					if e.Err == nil {
						offer()
					}
				}
			case transport.EvDown:
				if !failed || !errors.Is(e.Err, transport.ErrPeerGone) {
					t.Fatalf("EvDown (declared dead: %v): %v", failed, e.Err)
				}
				if ends != offers {
					t.Fatalf("%d of %d offers answered", ends, offers)
				}
				if c.tr.Send(c.slot, &wire.Header{}, nil, 0) != transport.Broken {
					t.Fatal("Send to a dead peer is not Broken")
				}
				c.tr.Release(c.slot)
				return
			}
		}
	}
}
