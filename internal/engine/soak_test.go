// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"gompi/internal/base/idset"
	"gompi/internal/base/wire"
	"gompi/internal/host/wait"
	"gompi/internal/test/testlab"
	"gompi/transport"
	"gompi/transport/inproc"
)

// guest starts an engine that joins a job over inproc.
func guest(t *testing.T, hub *inproc.Hub, id wire.ProcID) *node {
	t.Helper()
	s := wait.NewChan()
	tr, err := hub.Open(transport.Env{Self: id, Wake: s.Wake, Segment: -1, Bell: -1})
	if err != nil {
		t.Fatal(err)
	}
	g := &node{ctl: &testControl{}}
	if g.Engine, err = New(Config{
		Self: id, Control: g.ctl, Transports: []transport.Transport{tr}, Sleeper: s, Policy: wait.ForGoroutine(),
	}); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSoakGuests: processes come, exchange messages with one that stays, and leave
// or die. What that one keeps, and the time that it takes, is that of those who
// live.
func TestSoakGuests(t *testing.T) {
	const alive = 100
	joins, warm := testlab.Rounds(10_000, 200_000), 2*alive+idset.MaxPast
	ns, hub := testJobOf(t, 1, nil, nil)
	n := ns[0]
	var live []*node
	var held []*Context // of each of live
	visit := func(i int) {
		g := guest(t, hub, proc(2+i))
		m := wire.MembersOf(n.Self(), g.Self())
		id := wire.ContextID{Creator: []wire.ProcID{n.Self(), g.Self()}[i%2], Serial: uint32(10 + i)}
		n.ctx, g.ctx = n.world(t, id, m), g.world(t, id, m)
		sent := bytes.Repeat([]byte{byte(i)}, 100)
		got := make([]byte, len(sent))
		if f := g.send(0, 1, sent); f != nil {
			t.Fatalf("%+v", f)
		}
		if _, f := n.recv(1, 1, got); f != nil || !bytes.Equal(got, sent) {
			t.Fatalf("guest %d sends %v: %+v", i, got, f)
		}
		h := g.irecv(0, 2, got)
		if f := n.send(1, 2, sent); f != nil {
			t.Fatalf("%+v", f)
		}
		if o := g.Wait(h); o.Status.Fault != nil {
			t.Fatalf("%+v", o)
		}
		if i%4 > 1 { // else when it has ended
			n.FreeContext(n.ctx)
		}
		live, held = append(live, g), append(held, n.ctx)
		if len(live) < alive {
			return
		}
		g, c := live[0], held[0]
		live, held = live[1:], held[1:]
		if i%3 > 0 {
			if err := g.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			n.ProcGone(g.Self(), "")
		} else {
			hub.Kill(g.Self())
			g.Close(context.Background())
			n.ProcFailed(g.Self(), "was killed")
		}
		n.FreeContext(c)
		n.ctl.mu.Lock()
		n.ctl.dead = nil
		n.ctl.mu.Unlock()
	}
	for i := range warm {
		visit(i)
	}
	first := testlab.Take()
	var early, late testlab.Spread
	for i := range joins {
		began := time.Now()
		visit(warm + i)
		if took := time.Since(began); i < joins/10 {
			early.Add(took)
		} else if i >= joins-joins/10 {
			late.Add(took)
		}
	}
	last := testlab.Take()
	t.Logf("%d joins: at first %v; at last %v; heap %d and %d KiB", joins, &early, &late, first.HeapBytes>>10, last.HeapBytes>>10)
	if last.HeapBytes > first.HeapBytes+2<<20 || last.Goroutines > first.Goroutines+2 {
		t.Errorf("%d KiB of heap and %d goroutines, then %d and %d", first.HeapBytes>>10, first.Goroutines, last.HeapBytes>>10, last.Goroutines)
	}
	// The least of many is what the work itself takes.
	if a, b := early.At(0.1), late.At(0.1); b > 2*a {
		t.Errorf("a visit took %v in the beginning and %v in the end", a, b)
	}
	n.mu.Lock()
	for what, x := range map[string][2]int{
		"peers": {len(n.peers), alive}, "dead": {len(n.dead), 0}, "watched": {len(n.watched), alive},
		"contexts": {len(n.contexts), alive}, "creators of freed contexts": {n.freed.Creators(), idset.MaxPast + alive},
		"slots": {len(n.links[1].slots), 2 * alive}, "others": {len(n.asked) + len(n.lost) + len(n.meetings), 0},
	} {
		if x[0] > x[1] {
			t.Errorf("%s: %d are kept, at most %d of the living", what, x[0], x[1])
		}
	}
	n.mu.Unlock()
	for _, g := range live {
		g.Close(context.Background())
	}
	runtime.KeepAlive(n)
}
