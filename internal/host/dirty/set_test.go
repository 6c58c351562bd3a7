// SPDX-License-Identifier: Apache-2.0

package dirty

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// twin is a set, a bool for each byte.
type twin struct {
	in   []bool
	skew int
}

func newTwin(bytes, skew int) *twin { return &twin{make([]bool, bytes), skew} }

func (w *twin) add(from, to int) {
	for at := max(from, 0); at < min(to, len(w.in)); at++ {
		first := (at+w.skew)/ChunkBytes*ChunkBytes - w.skew
		for k := max(first, 0); k < min(first+ChunkBytes, len(w.in)); k++ {
			w.in[k] = true
		}
		at = first + ChunkBytes - 1
	}
}

// same holds a set against its twin, as a whole and between any two bytes.
func (w *twin) same(t *testing.T, s *Set, r *rand.Rand) {
	t.Helper()
	from, to := 0, len(w.in)
	for range 2 {
		last := int64(-1)
		got := make([]bool, len(w.in))
		for lo, hi := range s.Runs(int64(from), int64(to)) {
			if lo <= last || lo >= hi || lo < int64(from) || hi > int64(to) {
				t.Fatalf("run %d to %d of %d to %d, behind %d", lo, hi, from, to, last)
			}
			last = hi
			for k := lo; k < hi; k++ {
				got[k] = true
			}
		}
		n := int64(0)
		for k := range w.in {
			if w.in[k] {
				n++
			}
			if want := w.in[k] && k >= from && k < to; got[k] != want || s.Has(int64(k)) != w.in[k] {
				t.Fatalf("byte %d of %d, runs of %d to %d: %v, want %v; it has it: %v", k, len(w.in), from, to, got[k], want, s.Has(int64(k)))
			}
		}
		if s.Bytes() != n {
			t.Fatalf("%d bytes, want %d", s.Bytes(), n)
		}
		if len(w.in) == 0 {
			return
		}
		from = r.IntN(len(w.in))
		to = from + r.IntN(len(w.in)-from+1)
	}
}

func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		n, skew := r.IntN(40*ChunkBytes), r.IntN(ChunkBytes)
		if r.IntN(3) == 0 {
			n, skew = r.IntN(40)*ChunkBytes, 0
		}
		s, w := newSet(int64(n), int64(skew)), newTwin(n, skew)
		for range r.IntN(12) {
			from := r.IntN(n+1) - r.IntN(20)
			to := from + r.IntN(20)
			if r.IntN(4) == 0 {
				to = from + r.IntN(n+20)
			}
			s.Add(int64(from), int64(to))
			w.add(from, to)
		}
		w.same(t, s, r)
		travelled, err := ParseSet(int64(n), bytes.Clone(s.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		w.same(t, travelled, r)
	}
}

// Whatever another process sends as a set, what is taken out of it lies in the memory.
func FuzzParseSet(f *testing.F) {
	s := newSet(10*ChunkBytes, 7)
	s.Add(5000, 5001)
	f.Add(int64(10*ChunkBytes), s.Encoded())
	f.Add(int64(1), []byte("\xff\x0f\x00\x00\x00\x00\x00\x00\xff"))
	f.Add(int64(-1), []byte{})
	f.Add(int64(0), make([]byte, 9))
	f.Add(int64(1)<<62, make([]byte, 9))
	f.Fuzz(func(t *testing.T, n int64, b []byte) {
		s, err := ParseSet(n, b)
		if err != nil {
			return
		}
		if n > 64*ChunkBytes*8 {
			t.Fatalf("%d bytes are a set of %d", len(b), n)
		}
		w := newTwin(int(n), int(s.skew))
		for c := range int64(len(b)-setHead) * 8 {
			if b[setHead+c/8]&(1<<(c%8)) != 0 {
				first := int(c*ChunkBytes - s.skew)
				w.add(max(first, 0), first+ChunkBytes)
			}
		}
		w.same(t, s, rand.New(rand.NewPCG(1, uint64(n))))
	})
}

func TestMarks(t *testing.T) {
	const n = 9*ChunkBytes + 100
	r := rand.New(rand.NewPCG(3, 4))
	m := NewMarks(n)
	for range 50 {
		before := m.Arm()
		m.Mark(r.Int64N(n), n)
		w := m.Arm()
		want := newTwin(n, 0)
		for range r.IntN(5) {
			from := r.Int64N(n+10) - 5
			to := from + r.Int64N(2*ChunkBytes)
			m.Mark(from, to)
			want.add(int(from), int(to))
		}
		s, err := w.Written()
		if err != nil {
			t.Fatal(err)
		}
		want.same(t, s, r)
		if s, err := before.Written(); err != nil || !s.Has(n-1) {
			t.Errorf("what was marked before is none of before: %v", err)
		}
		if err := w.Disarm(); err != nil {
			t.Error(err)
		}
	}
}
