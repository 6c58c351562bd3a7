// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/data/dtype"
)

// A digest depends on the numbers of a message, not on how the two sides cut
// them into elements, and differs if one number has another width or kind.
func TestNumberDigest(t *testing.T) {
	digest := func(count, size int64, s []dtype.Run) elements {
		var d numberDigest
		d.add(s, count, size)
		return d.sum()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	numbers := []dtype.Run{
		{Width: 1}, {Width: 2, Kind: dtype.Int16}, {Width: 4, Kind: dtype.Float32}, {Width: 4, Kind: dtype.Uint32},
		{Width: 8, Kind: dtype.Float64}, {Width: 8, Kind: dtype.Int64},
	}
	for range 2000 {
		var runs, cut []dtype.Run
		size, count := int64(0), 1+rnd.Int64N(3)
		for range 1 + rnd.IntN(4) {
			r := numbers[rnd.IntN(len(numbers))]
			r.N = 1 + rnd.Int64N(5)
			runs = append(runs, r)
			size += r.Width * r.N
			for left := r.N; left > 0; {
				k := 1 + rnd.Int64N(left)
				cut = append(cut, dtype.Run{Width: r.Width, N: k, Kind: r.Kind})
				left -= k
			}
		}
		want := digest(count, count*size, runs)
		if got := digest(1, count*size, []dtype.Run{{N: count, Sub: cut}}); got != want {
			t.Fatalf("%v %d times: %#x, cut as %v %#x", runs, count, want, cut, got)
		}
		// The receiver's type may go on.
		if got := digest(count+2, count*size, cut); got != want {
			t.Fatalf("%v %d times: %#x, as the beginning of more %#x", runs, count, want, got)
		}
		if got := digest(count, count*size-runs[len(runs)-1].Width, runs); got == want {
			t.Errorf("%v %d times has the digest of one number less", runs, count)
		}
		if last := &runs[len(runs)-1]; last.Width > 1 {
			other := append([]dtype.Run(nil), runs...)
			other[len(other)-1].Kind = dtype.Complex64
			if got := digest(count, count*size, other); got == want {
				t.Errorf("%v %d times has the digest of %v", runs, count, other)
			}
		}
		if len(runs) == 1 {
			kind := runs[0].Kind
			if kind == dtype.Opaque {
				kind = dtype.Int8
			}
			if got := elements(kind).digest(count * size); got != want {
				t.Errorf("%v %d times: %#x, as %v %#x", runs, count, want, kind, got)
			}
		}
	}
}

// A kind fits the bits that are no digest.
const _ = uint16(digested - 1 - elements(dtype.NumKinds))
