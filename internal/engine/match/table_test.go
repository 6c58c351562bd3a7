// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"
	"testing"

	"gompi/internal/base/wire"
)

func TestKey(t *testing.T) {
	c := wire.ContextID{Creator: wire.ProcID{Job: 1<<64 - 1, Serial: 1<<32 - 1}, Serial: 1<<32 - 2}
	for _, pl := range []wire.TrafficClass{0, 1, wire.TrafficClass(wire.NumTraffic - 1)} {
		for _, source := range []int32{Any, 0, 1, MaxSource} {
			for _, tag := range []int32{Any, 0, 1, 1<<31 - 1} {
				k := NewKey(c, pl, source, tag)
				if k.Context() != c || !k.In(c) || k.Plane() != pl || k.Source() != source || k.Tag() != tag {
					t.Errorf("plane %d source %d tag %d comes back as %v", pl, source, tag, k)
				}
				if k.Exact() != (source != Any && tag != Any) {
					t.Errorf("%v: Exact is %v", k, k.Exact())
				}
				if m := NewKey(c, pl, 5, 5).With(source, tag); m != k {
					t.Errorf("With gives %v, want %v", m, k)
				}
				m := slowKey{c, pl, 1, 1}
				if got, want := k.Fits(m.key()), (slowKey{c, pl, source, tag}).fits(m); got != want {
					t.Errorf("%v fits %v: %v", k, m.key(), got)
				}
			}
		}
	}
	// Words that another process may send.
	for _, w2 := range []uint64{1 << 31, 1<<32 - 1, sourceMask, uint64(wire.NumTraffic) << planeShift, 1<<64 - 1} {
		if (Key{W2: w2}).Exact() {
			t.Errorf("key word %#x passes as exact", w2)
		}
	}
}

func TestBugsPanic(t *testing.T) {
	k := NewKey(testContext, 0, 1, 1)
	for name, f := range map[string]func(){
		"tag":          func() { k.With(0, -2) },
		"source":       func() { k.With(MaxSource+1, 0) },
		"small source": func() { k.With(-2, 0) },
		"post twice":   func() { var tb table; p := &receive{Key: k}; tb.Post(p); tb.Post(p) },
		"keep twice":   func() { var tb table; a := &message{Key: k}; tb.Keep(a); tb.Keep(a) },
		"keep any":     func() { var tb table; tb.Keep(&message{Key: k.With(Any, 1)}) },
		"take nothing": func() { var tb table; tb.Take(&message{Key: k}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// TestHashSpreads holds chains short for the patterns that programs use.
func TestHashSpreads(t *testing.T) {
	const n = 1 << 14
	for _, pattern := range []struct {
		name string
		key  func(i int) Key
	}{
		{"tags", func(i int) Key { return NewKey(testContext, 0, 3, int32(i)) }},
		{"tags by 65536", func(i int) Key { return NewKey(testContext, 0, 3, int32(i<<16&0x7fffffff|i>>15)) }},
		{"tags by 1000", func(i int) Key { return NewKey(testContext, 0, 3, int32(i*1000)) }},
		{"sources", func(i int) Key { return NewKey(testContext, 0, int32(i), 3) }},
		{"sources by tags", func(i int) Key { return NewKey(testContext, 0, int32(i>>7), int32(i&127)) }},
		{"any source", func(i int) Key { return NewKey(testContext, 0, Any, int32(i)) }},
		{"contexts", func(i int) Key {
			return NewKey(wire.ContextID{Creator: wire.ProcID{Job: 42}, Serial: uint32(i)}, 0, Any, Any)
		}},
		{"creators", func(i int) Key {
			return NewKey(wire.ContextID{Creator: wire.ProcID{Job: 42, Serial: uint32(i)}}, 0, 0, 0)
		}},
	} {
		var x index[message]
		links := make([]link[message], n)
		for i := range links {
			links[i].key = pattern.key(i)
			x.push(&links[i])
		}
		if x.keys != n {
			t.Fatalf("%s: %d keys, not %d: the pattern repeats itself", pattern.name, x.keys, n)
		}
		// A key is found after half a chain of its own bucket: for random
		// buckets at load 1 that is 1.5 links on average.
		steps := 0
		for i := range links {
			for l := x.buckets[links[i].key.hash()&uint64(len(x.buckets)-1)]; ; l = l.chain {
				steps++
				if l == &links[i] {
					break
				}
			}
		}
		if mean := float64(steps) / n; mean > 2 {
			t.Errorf("%s: %.2f links looked at per key", pattern.name, mean)
		}
	}
}

// TestIndexShrinks: after a flood the buckets go, but not in a program that
// fills and drains its queues in turn.
func TestIndexShrinks(t *testing.T) {
	var x index[message]
	round := func(n int) {
		links := make([]link[message], n)
		for i := range links {
			links[i].key = NewKey(testContext, 0, 1, int32(i))
			x.push(&links[i])
		}
		for i := range links {
			x.remove(&links[i])
		}
	}
	round(100_000)
	large := len(x.buckets)
	if large < 100_000 {
		t.Fatalf("%d buckets for 100000 keys", large)
	}
	for range 20 {
		round(60_000)
		if len(x.buckets) != large {
			t.Fatalf("%d buckets after a usual round, were %d", len(x.buckets), large)
		}
	}
	for range 3 * large {
		round(1)
	}
	if len(x.buckets) != minBuckets {
		t.Errorf("%d buckets long after the flood, want %d", len(x.buckets), minBuckets)
	}
}

func TestNoAllocation(t *testing.T) {
	const n = 500
	var tb table
	ps, as := make([]receive, n), make([]message, n)
	classesOf := []class{exact, anySource, anyTag, anyBoth}
	base := NewKey(testContext, 0, 0, 0)
	round := func() {
		for i := range ps {
			ps[i].Key = base.With(1, int32(i)).widen(classesOf[i%4])
			tb.Post(&ps[i])
		}
		for i := range as {
			if as[i].Key = base.With(1, int32(i)); tb.Arrive(as[i].Key) == nil {
				tb.Keep(&as[i])
			}
		}
		for i := range ps {
			tb.Withdraw(&ps[i])
		}
		for tb.ArrivedLen() > 0 {
			for _, c := range classesOf {
				if a := tb.Peek(base.With(1, 7).widen(c)); a != nil {
					tb.Take(a)
				}
			}
			if a := tb.Peek(base.With(1, Any)); a != nil {
				tb.Take(a)
			}
		}
	}
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
}

// TestFloodIsLinear would not end before the deadline if a look-up walked over
// the messages it does not want.
func TestFloodIsLinear(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	var tb table
	as := make([]message, n)
	base := NewKey(testContext, 0, 0, 0)
	for i := range as {
		as[i].Key = base.With(int32(i%1000), int32(i/1000))
		tb.Keep(&as[i])
	}
	// The youngest first: a walk would start at the wrong end every time.
	var p receive
	for i := n - 1; i >= 0; i-- {
		p.Key = as[i].Key.widen(class(i % classes))
		a := tb.Post(&p)
		switch {
		case a != nil && !p.Key.Fits(a.Key):
			t.Fatalf("%v got %v", p.Key, a.Key)
		case a == nil && p.Key.class() == anyBoth:
			t.Fatalf("nothing for %v among %d", p.Key, tb.ArrivedLen())
		case a == nil:
			tb.Withdraw(&p) // a wildcard has taken it before
		}
	}
	w := twins{fast: tb}
	for a := range tb.EachArrived {
		w.slow.arrived = append(w.slow.arrived, slowEntry{0, slowKey{testContext, 0, a.Key.Source(), a.Key.Tag()}})
	}
	if err := w.books(); err != nil {
		t.Fatal(err)
	}
}

func TestIterationWhileChanging(t *testing.T) {
	var tb table
	k := NewKey(testContext, 0, 1, 0)
	ps := make([]receive, 6)
	for i := range ps {
		ps[i].Key = k.With(1, int32(i))
		tb.Post(&ps[i])
	}
	var extra receive
	var seen []int32
	for p := range tb.EachPosted {
		seen = append(seen, p.Key.Tag())
		tb.Withdraw(p)
		switch p.Key.Tag() {
		case 0:
			tb.Withdraw(&ps[2])
		case 1:
			extra.Key = k.With(1, 99)
			tb.Post(&extra)
			tb.Post(&ps[0])
			tb.Withdraw(&ps[4])
			tb.Post(&ps[4]) // younger than the iteration
		}
	}
	if len(seen) != 4 || seen[0] != 0 || seen[1] != 1 || seen[2] != 3 || seen[3] != 5 {
		t.Errorf("visited %v, want 0 1 3 5", seen)
	}
	if tb.PostedLen() != 3 {
		t.Errorf("%d receives left, want 3", tb.PostedLen())
	}

	as := make([]message, 5)
	for i := range as {
		as[i].Key = k.With(2, int32(i))
		tb.Keep(&as[i])
	}
	seen = nil
	for a := range tb.EachArrived {
		seen = append(seen, a.Key.Tag())
		if a.Key.Tag() == 1 {
			tb.Take(&as[2])
			tb.Take(&as[1])
		}
		if a.Key.Tag() == 3 {
			break
		}
	}
	if len(seen) != 3 || seen[2] != 3 || tb.ArrivedLen() != 3 {
		t.Errorf("visited %v, %d left", seen, tb.ArrivedLen())
	}
}

// TestSame: each message of a key is visited once, from both ends.
func TestSame(t *testing.T) {
	for n := range 6 {
		var tb table
		k := NewKey(testContext, 0, 1, 0)
		as := make([]message, 2*n)
		for i := range as {
			as[i].Key = k.With(1, int32(i%2))
			tb.Keep(&as[i])
		}
		var seen []int
		for a := range tb.Same(k) {
			for i := range as {
				if a == &as[i] {
					seen = append(seen, i/2)
				}
			}
		}
		want := [][]int{nil, {0}, {0, 1}, {0, 2, 1}, {0, 3, 1, 2}, {0, 4, 1, 3, 2}}[n]
		if !slices.Equal(seen, want) {
			t.Errorf("of %d messages visited %v, want %v", n, seen, want)
		}
	}
}

// FuzzKey: whatever three words another process sends, a key that passes Exact
// is one that NewKey could have built.
func FuzzKey(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3)<<32|7)
	f.Add(^uint64(0), ^uint64(0), ^uint64(0))
	f.Add(uint64(0), uint64(0), uint64(1)<<31)
	f.Fuzz(func(t *testing.T, w0, w1, w2 uint64) {
		k := Key{w0, w1, w2}
		if k.String() == "" {
			t.Error("no text")
		}
		if !k.Exact() {
			return
		}
		if back := NewKey(k.Context(), k.Plane(), k.Source(), k.Tag()); back != k || k.class() != exact || !k.Fits(k) {
			t.Errorf("%#x comes back as %#x", k, back)
		}
	})
}
