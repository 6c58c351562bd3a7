// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func id(serial int) ProcID { return ProcID{Job: 7, Serial: uint32(serial)} }

// scattered gives a random list of different processes, in runs of equal
// strides and singles.
func scattered(rnd *rand.Rand, runs int) (ps []ProcID) {
	used := map[ProcID]bool{}
	for range runs {
		job := JobID(1 + rnd.IntN(2))
		first, stride := 1+rnd.IntN(200), rnd.IntN(13)-6
		for i := range 1 + rnd.IntN(12) {
			p := ProcID{Job: job, Serial: uint32(first + i*stride)}
			if first+i*stride > 0 && !used[p] {
				used[p] = true
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// pieces cuts a list into ranges at random.
func pieces(rnd *rand.Rand, ps []ProcID) (rs []Range) {
	for len(ps) > 0 {
		r := Range{First: ps[0], Count: 1}
		for limit := 1 + rnd.IntN(9); r.Count < min(limit, len(ps)); r.Count++ {
			d := int(ps[r.Count].Serial) - int(ps[r.Count-1].Serial)
			if ps[r.Count].Job != ps[0].Job || r.Count > 1 && d != r.Stride || d == 0 {
				break
			}
			r.Stride = d
		}
		rs = append(rs, r)
		ps = ps[r.Count:]
	}
	return rs
}

func TestMembersAgainstList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		ps := scattered(rnd, 1+rnd.IntN(60))
		m := NewMembers(pieces(rnd, ps)...)
		if single := MembersOf(ps...); !m.Equal(single) || m.Len() != len(ps) {
			t.Fatalf("%v: as pieces %v, one by one %v", ps, m.Ranges(), single.Ranges())
		}
		if !m.Check() {
			t.Fatalf("%v: Check fails", m.Ranges())
		}
		for i, p := range m.All() {
			if p != ps[i] || m.At(i) != p || m.Index(p) != i {
				t.Fatalf("%v: process %d is %v, At %v, Index %d; want %v", m.Ranges(), i, p, m.At(i), m.Index(p), ps[i])
			}
		}
		for s := range 300 {
			p := ProcID{Job: JobID(1 + s%3), Serial: uint32(s)}
			if got, want := m.Index(p), slices.Index(ps, p); got != want {
				t.Fatalf("%v: Index(%v) = %d, want %d", m.Ranges(), p, got, want)
			}
		}
		if len(ps) > 0 {
			twice := append(slices.Clone(ps), ps[rnd.IntN(len(ps))])
			if NewMembers(pieces(rnd, twice)...).Check() {
				t.Fatalf("%v: a process twice is not seen", twice)
			}
		}
		back, rest, err := ReadMembers(append(AppendMembers(nil, m), 9), 1<<16)
		if err != nil || !back.Equal(m) || len(rest) != 1 {
			t.Fatalf("%v comes back as %v, %d bytes left, %v", m.Ranges(), back.Ranges(), len(rest), err)
		}
	}
}

func TestRangeCommon(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	random := func() Range {
		for {
			r := Range{First: id(rnd.IntN(100)), Count: rnd.IntN(20), Stride: rnd.IntN(25) - 12}
			if rnd.IntN(8) == 0 {
				r = Range{First: id(1<<32 - 1 - rnd.IntN(1000)), Count: 1 + rnd.IntN(40), Stride: -rnd.IntN(1 << 26)}
			}
			if r.Count == 0 || r.valid() {
				return r
			}
		}
	}
	for range 60000 {
		r, q := random(), random()
		first, count, step := r.Common(q)
		n := 0
		for i := range r.Count {
			if q.Index(r.At(i)) < 0 {
				continue
			}
			if n >= count || first+n*step != i {
				t.Fatalf("%v and %v: place %d is common; got %d places from %d, every %d", r, q, i, count, first, step)
			}
			n++
		}
		if n != count || step <= 0 {
			t.Fatalf("%v and %v: %d places, every %d; want %d", r, q, count, step, n)
		}
	}
}

// A million ranks in stripes are a few ranges, and a permutation of many is
// still searched fast.
func TestMembersLarge(t *testing.T) {
	const n, scattered = 1 << 20, 1 << 18
	striped := NewMembers(Range{id(1), n / 2, 2}, Range{id(2), n / 2, 2})
	if len(striped.Ranges()) != 2 || striped.Index(id(n)) != n-1 || !striped.Check() {
		t.Fatalf("stripes are %v", striped.Ranges())
	}
	var b MembersBuilder
	perm := rand.New(rand.NewPCG(5, 6)).Perm(scattered)
	for _, v := range perm {
		b.Add(Range{First: id(v + 1), Count: 1})
	}
	m := b.Members()
	if !m.Check() {
		t.Fatal("a permutation fails Check")
	}
	for i, v := range perm {
		if m.Index(id(v+1)) != i {
			t.Fatalf("process %d is at %d, want %d", v, m.Index(id(v+1)), i)
		}
	}
	if k := len(m.index.x.strides); k > scattered/1000 {
		t.Errorf("a look-up goes through %d strides", k)
	}
}

func TestMembersRefuseImpossible(t *testing.T) {
	for _, r := range []Range{
		{First: id(1), Count: -1},
		{First: id(1), Count: 3, Stride: -1},
		{First: id(1<<32 - 1), Count: 2},
		{First: id(1), Count: 1 << 40, Stride: 1 << 40},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is accepted", r)
				}
			}()
			NewMembers(r)
		}()
	}
}

// FuzzReadMembers: what is accepted is encoded to the same bytes.
func FuzzReadMembers(f *testing.F) {
	f.Add(AppendMembers(nil, NewMembers(Range{id(1), 5, 2}, Range{id(2), 3, 4})))
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, rest, err := ReadMembers(b, 1000)
		if err != nil {
			return
		}
		if again := AppendMembers(nil, m); !slices.Equal(again, b[:len(b)-len(rest)]) {
			t.Fatalf("%x becomes %x", b, again)
		}
	})
}
