// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/sim"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/transport"
)

// wiretap notes the messages of collectives that processes hand to their
// transports.
type wiretap struct {
	mu   sync.Mutex
	sent map[[2]uint32][]int64 // from, to: lengths in order
}

// wrap is for testjob.Wrap.
func (w *wiretap) wrap(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error) {
	return &tapped{Transport: t, tap: w, self: self, peers: map[transport.Slot]wire.ProcID{}}, nil
}

// tapped is one process's transport.
type tapped struct {
	transport.Transport
	tap   *wiretap
	self  wire.ProcID
	peers map[transport.Slot]wire.ProcID
}

func (t *tapped) Connect(c wire.Contact) (transport.Slot, error) {
	s, err := t.Transport.Connect(c)
	if err == nil {
		t.peers[s] = c.Proc
	}
	return s, err
}

func (t *tapped) Poll(ev []transport.Event) int {
	n := t.Transport.Poll(ev)
	for i := range ev[:n] {
		if ev[i].Kind == transport.EvUp {
			t.peers[ev[i].Slot] = ev[i].Proc
		}
	}
	return n
}

// The kinds of header that begin a message, as package engine's envelope.go
// numbers them: the payload is the message, or begins with its length.
const (
	kindEager = 1
	kindRTS   = 2
)

func (t *tapped) Send(s transport.Slot, h *wire.Header, p []byte, tok transport.Token) transport.Status {
	// Read before: what is sent belongs to others.
	bytes := int64(-1)
	if (match.Key{W0: h[0], W1: h[1], W2: h[2]}).Plane() == wire.TrafficColl {
		switch uint8(h[3]) {
		case kindEager:
			bytes = int64(len(p))
		case kindRTS:
			bytes = int64(binary.LittleEndian.Uint64(p))
		}
	}
	st := t.Transport.Send(s, h, p, tok)
	if bytes >= 0 && (st == transport.Sent || st == transport.Queued) {
		pair := [2]uint32{t.self.Serial, t.peers[s].Serial}
		t.tap.mu.Lock()
		t.tap.sent[pair] = append(t.tap.sent[pair], bytes)
		t.tap.mu.Unlock()
	}
	return st
}

// starters start each operation on blocks of count elements of 8 bytes, so
// that sim.Call describes the call.
var starters = map[collectives.Op]func(w *mpi.Comm, count, root int) mpi.Request{
	collectives.OpBarrier: func(w *mpi.Comm, count, root int) mpi.Request { return w.Ibarrier() },
	collectives.OpBcast: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Ibcast(w, make([]int64, count), root)
	},
	collectives.OpReduce: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Ireduce(w, make([]int64, count), make([]int64, count), mpi.Sum, root)
	},
	collectives.OpAllreduce: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Iallreduce(w, make([]int64, count), make([]int64, count), mpi.Sum)
	},
	collectives.OpScan: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Iscan(w, make([]int64, count), make([]int64, count), mpi.Sum)
	},
	collectives.OpExscan: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Iexscan(w, make([]int64, count), make([]int64, count), mpi.Sum)
	},
	collectives.OpGather: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Igather(w, make([]int64, count), make([]int64, count*w.Size()), root)
	},
	collectives.OpGatherv: func(w *mpi.Comm, count, root int) mpi.Request {
		counts, displs := equal(w, count)
		return mpi.Igatherv(w, make([]int64, count), make([]int64, count*w.Size()), counts, displs, root)
	},
	collectives.OpScatter: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Iscatter(w, make([]int64, count*w.Size()), make([]int64, count), root)
	},
	collectives.OpScatterv: func(w *mpi.Comm, count, root int) mpi.Request {
		counts, displs := equal(w, count)
		return mpi.Iscatterv(w, make([]int64, count*w.Size()), counts, displs, make([]int64, count), root)
	},
	collectives.OpAllgather: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Iallgather(w, make([]int64, count), make([]int64, count*w.Size()))
	},
	collectives.OpAllgatherv: func(w *mpi.Comm, count, root int) mpi.Request {
		counts, displs := equal(w, count)
		return mpi.Iallgatherv(w, make([]int64, count), make([]int64, count*w.Size()), counts, displs)
	},
	collectives.OpAlltoall: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.Ialltoall(w, make([]int64, count*w.Size()), make([]int64, count*w.Size()))
	},
	collectives.OpAlltoallv: func(w *mpi.Comm, count, root int) mpi.Request {
		counts, displs := equal(w, count)
		return mpi.Ialltoallv(w, make([]int64, count*w.Size()), counts, displs, make([]int64, count*w.Size()), counts, displs)
	},
	collectives.OpReduceScatterBlock: func(w *mpi.Comm, count, root int) mpi.Request {
		return mpi.IreduceScatterBlock(w, make([]int64, count*w.Size()), make([]int64, count), mpi.Sum)
	},
	collectives.OpReduceScatter: func(w *mpi.Comm, count, root int) mpi.Request {
		counts, _ := equal(w, count)
		return mpi.IreduceScatter(w, make([]int64, count*w.Size()), make([]int64, count), counts, mpi.Sum)
	},
}

// equal are the counts and displacements of blocks of one length.
func equal(w *mpi.Comm, count int) (counts, displs []int) {
	for r := range w.Size() {
		counts, displs = append(counts, count), append(displs, r*count)
	}
	return counts, displs
}

// planned is one of the calls that a job makes.
type planned struct {
	op          collectives.Op
	count, root int
}

// TestEngineSendsWhatIsSimulated: for every algorithm, the messages from each
// rank to each other one have the same lengths in the same order in a real job
// and in the simulation.
func TestEngineSendsWhatIsSimulated(t *testing.T) {
	names := map[collectives.Op][]string{}
	most := 0
	for _, g := range selection.All() {
		names[g.Op] = append(names[g.Op], g.Name)
		most = max(most, len(names[g.Op]))
	}
	ran := map[*collectives.Algorithm]bool{}
	for ranks := 2; ranks <= 9; ranks++ {
		for k := range most {
			var force []string
			for op, list := range names {
				force = append(force, fmt.Sprintf("%v=%s", op, list[k%len(list)]))
			}
			table := selection.DefaultTable()
			if err := table.ForceAll(strings.Join(force, ",")); err != nil {
				t.Fatal(err)
			}
			var p []planned
			for op := range starters {
				for i, count := range []int{0, 1, 5, 300, 6000} {
					p = append(p, planned{op, count, (i + k) % ranks})
				}
			}
			t.Run(fmt.Sprintf("%d-%d", ranks, k), func(t *testing.T) {
				want, calls := simulated(t, p, ranks, table)
				got := executed(t, p, ranks, strings.Join(force, ","))
				for from := range ranks {
					for to := range ranks {
						if x, y := got[[2]int{from, to}], want[[2]int{from, to}]; !slices.Equal(x, y) {
							t.Errorf("from %d to %d: %v\nsimulated: %v", from, to, x, y)
						}
					}
				}
				for _, g := range calls {
					ran[g] = true
				}
			})
		}
	}
	for _, g := range selection.All() {
		c := sim.Call{Alg: g, Ranks: 8, ElemBytes: 8}
		if starters[g.Op] != nil && c.Validate() == nil && !ran[g] {
			t.Errorf("%v was never run", g)
		}
	}
}

// simulated are the lengths of all messages of a plan, and its algorithms.
func simulated(t *testing.T, p []planned, ranks int, table *selection.Table) (map[[2]int][]int64, []*collectives.Algorithm) {
	lengths := map[[2]int][]int64{}
	var calls []*collectives.Algorithm
	m := sim.DefaultMachine()
	for _, x := range p {
		i := slices.IndexFunc(selection.All(), func(g *collectives.Algorithm) bool { return g.Op == x.op })
		c := sim.Call{Alg: selection.All()[i], Ranks: ranks, Root: x.root, Count: int64(x.count), ElemBytes: 8}
		c.Alg = c.Selected(table)
		calls = append(calls, c.Alg)
		_, err := sim.Run(&c, &m, func(m sim.Message) {
			pair := [2]int{m.From, m.To}
			lengths[pair] = append(lengths[pair], m.Bytes)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lengths, calls
}

// executed are the lengths of all messages that a job sends for a plan.
func executed(t *testing.T, p []planned, ranks int, force string) map[[2]int][]int64 {
	tap := &wiretap{sent: map[[2]uint32][]int64{}}
	mpitest.Run(t, ranks, func(t *mpitest.T, w *mpi.Comm) {
		for _, x := range p {
			r := starters[x.op](w, x.count, x.root)
			if _, err := r.Wait(); err != nil {
				t.Fatalf("%v of %d: %v", x.op, x.count, err)
			}
		}
	}, mpitest.Setting("GOMPI_COLL", force), testjob.Wrap(tap.wrap))
	var serials []uint32
	for pair := range tap.sent {
		serials = append(serials, pair[0], pair[1])
	}
	slices.Sort(serials)
	serials = slices.Compact(serials)
	if len(serials) != ranks {
		t.Fatalf("processes %v took part, want %d", serials, ranks)
	}
	rank := func(serial uint32) int { return slices.Index(serials, serial) }
	lengths := map[[2]int][]int64{}
	for pair, list := range tap.sent {
		lengths[[2]int{rank(pair[0]), rank(pair[1])}] = list
	}
	return lengths
}
