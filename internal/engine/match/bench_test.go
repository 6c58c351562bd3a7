// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

type (
	table   = Table[int, int]
	receive = Posted[int]
	message = Arrived[int]
)

var testContext = wire.ContextID{Creator: wire.ProcID{Job: 0x1234567890abcdef}, Serial: 1}

// BenchmarkExpected is the engine's common case: a receive is posted into an
// empty table, its message arrives.
func BenchmarkExpected(b *testing.B) {
	for _, c := range []struct {
		name        string
		source, tag int32
	}{{"exact", 1, 7}, {"anySource", Any, 7}, {"anyBoth", Any, Any}} {
		b.Run(c.name, func(b *testing.B) {
			var t table
			base := NewKey(testContext, wire.TrafficP2P, 0, 0)
			var p receive
			b.ReportAllocs()
			for b.Loop() {
				p.Key = base.With(c.source, c.tag)
				if t.Post(&p) != nil || t.Arrive(base.With(1, 7)) != &p {
					b.Fatal("no match")
				}
			}
		})
	}
}

// BenchmarkExpectedAmong is the same while other receives wait.
func BenchmarkExpectedAmong(b *testing.B) {
	for _, n := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var t table
			base := NewKey(testContext, wire.TrafficP2P, 0, 0)
			for i := range n {
				t.Post(&receive{Key: base.With(1, int32(i+1000))})
			}
			var p receive
			p.Key = base.With(1, 7)
			b.ReportAllocs()
			for b.Loop() {
				if t.Post(&p) != nil || t.Arrive(p.Key) != &p {
					b.Fatal("no match")
				}
			}
		})
	}
}

// BenchmarkManyTags posts 1,000 receives with different tags; their messages
// arrive in another order. One operation is one receive.
func BenchmarkManyTags(b *testing.B) {
	const n = 1000
	var t table
	base := NewKey(testContext, wire.TrafficP2P, 0, 0)
	ps := make([]receive, n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := i % n
		if k == 0 {
			for j := range ps {
				ps[j].Key = base.With(1, int32(j))
				t.Post(&ps[j])
			}
		}
		if t.Arrive(base.With(1, int32(k*7%n))) == nil {
			b.Fatal("no match")
		}
	}
}

// BenchmarkUnexpected lets a message arrive first, into an empty table.
func BenchmarkUnexpected(b *testing.B) {
	var t table
	k := NewKey(testContext, wire.TrafficP2P, 1, 7)
	p, a := receive{Key: k}, message{Key: k}
	b.ReportAllocs()
	for b.Loop() {
		if t.Arrive(k) != nil {
			b.Fatal("match from nowhere")
		}
		t.Keep(&a)
		if t.Post(&p) != &a {
			b.Fatal("no match")
		}
	}
}

// BenchmarkFlood keeps a million messages from 1,000 sources with 1,000 tags,
// then takes them with receives of one class.
func BenchmarkFlood(b *testing.B) {
	const n = 1_000_000
	base := NewKey(testContext, wire.TrafficP2P, 0, 0)
	as := make([]message, n)
	for i := range as {
		as[i].Key = base.With(int32(i%1000), int32(i/1000))
	}
	for _, c := range []struct {
		name string
		wild class
	}{{"exact", exact}, {"anySource", anySource}, {"anyTag", anyTag}, {"anyBoth", anyBoth}} {
		b.Run(c.name, func(b *testing.B) {
			var t table
			var p receive
			var keep, post time.Duration
			for b.Loop() {
				start := time.Now()
				for i := range as {
					t.Keep(&as[i])
				}
				kept := time.Now()
				for i := range as {
					p.Key = base.With(int32(i/1000), int32(i%1000)).widen(c.wild)
					if t.Post(&p) == nil {
						b.Fatal("no match")
					}
				}
				keep += kept.Sub(start)
				post += time.Since(kept)
			}
			b.ReportMetric(float64(keep.Nanoseconds())/float64(b.N)/n, "ns/keep")
			b.ReportMetric(float64(post.Nanoseconds())/float64(b.N)/n, "ns/post")
		})
	}
}
