// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// BenchmarkPingPong plays between two processes. ns/op is a round trip; the
// median one-way time is reported beside it.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{0, 8, 24, 64, 256, 1024, 4096, 16384} {
		b.Run(fmt.Sprint("eager-", size), func(b *testing.B) {
			c := start(b, "echo")
			defer c.stop(b)
			p := make([]byte, size)
			oneWay(b, size, func() {
				c.send(wire.Header{miniData}, p)
				for c.next().Kind != transport.EvRecv {
				}
			})
		})
	}
	for _, v := range []struct{ name, env string }{{"bulk-", "GOMPI_CMA=on"}, {"bounce-", "GOMPI_CMA=off"}} {
		for _, size := range []int{4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
			b.Run(fmt.Sprint(v.name, size), func(b *testing.B) {
				c := start(b, "echo", v.env)
				defer c.stop(b)
				p, q := make([]byte, size), make([]byte, size)
				for i := range p {
					p[i] = byte(i * 7 >> 3)
				}
				oneWay(b, size, func() { c.bulkRound(p, q) })
				if !bytes.Equal(p, q) {
					b.Fatal("other bytes came back")
				}
			})
		}
	}
}

// bulkRound sends p in bulk and receives the answer in q.
func (c *child) bulkRound(p, q []byte) {
	c.offer(p)
	for ours := false; !ours; {
		switch e := c.next(); e.Kind {
		case transport.EvRecv:
			if err := c.tr.Accept(c.slot, e.Payload, q, 2); err != nil {
				panic(err)
			}
		case transport.EvBulk:
			if e.Err != nil {
				panic(e.Err)
			}
			ours = e.Token == 2
		case transport.EvDown:
			panic(e.Err)
		}
	}
}

// oneWay measures batches, so that the clock costs nothing, and reports the
// median and the best.
func oneWay(b *testing.B, size int, round func()) {
	batch := 1
	if size <= 16<<10 {
		batch = 100
	}
	for range 10 {
		round()
	}
	var times []time.Duration
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		at := time.Now()
		for range batch {
			round()
		}
		times = append(times, time.Since(at))
	}
	b.StopTimer()
	slices.Sort(times)
	per := 2 * float64(batch)
	b.ReportMetric(float64(times[len(times)/2])/per, "ns/oneway")
	b.ReportMetric(float64(times[0])/per, "ns/best")
}

// BenchmarkEmptyPoll is what a spinning engine pays for each turn.
func BenchmarkEmptyPoll(b *testing.B) {
	for _, peers := range []int{0, 1, 8, 64} {
		b.Run(fmt.Sprint(peers), func(b *testing.B) {
			f := newFabric(nil)
			defer f.close()
			hub := f.open(b, parentID)
			defer hub.Close()
			for i := range peers {
				id := childID.Next(i)
				tr := f.open(b, id)
				defer tr.Close()
				if _, err := tr.Connect(f.Contact(parentID, id)); err != nil {
					b.Fatal(err)
				}
			}
			ev := make([]transport.Event, 16)
			for hub.Poll(ev) > 0 {
			}
			b.ResetTimer()
			for range b.N {
				hub.Poll(ev)
			}
		})
	}
}

// BenchmarkRuns compares one call for several pieces with a call for each.
func BenchmarkRuns(b *testing.B) {
	there := make([]byte, transport.MaxRuns*8192)
	m := memory{os.Getpid(), true}
	key := addrOf(there)
	for _, count := range []int{1, 2, 8, transport.MaxRuns} {
		for _, size := range []int{8, 512, 4096} {
			runs := make([]transport.Run, count)
			for i := range runs {
				runs[i] = transport.Run{Mem: make([]byte, size), Off: int64(i * 8192)}
			}
			b.Run(fmt.Sprintf("together-%dx%d", count, size), func(b *testing.B) {
				for range b.N {
					if err := m.WriteRuns(runs, key); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("each-%dx%d", count, size), func(b *testing.B) {
				for range b.N {
					for _, r := range runs {
						if err := m.Write(r.Mem, key, r.Off); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
