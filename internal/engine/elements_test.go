// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/dtype"
)

// A digest depends on the numbers of a message, not on how the two sides cut
// them into elements, and differs if one number has another width.
func TestWidthDigest(t *testing.T) {
	digest := func(count, size int64, s []dtype.Run) elements {
		var d widthDigest
		d.add(s, count, size)
		return d.sum()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	widths := []int64{1, 2, 4, 8}
	for range 2000 {
		var runs, cut []dtype.Run
		size, count := int64(0), 1+rnd.Int64N(3)
		for range 1 + rnd.IntN(4) {
			r := dtype.Run{Width: widths[rnd.IntN(4)], N: 1 + rnd.Int64N(5)}
			runs = append(runs, r)
			size += r.Width * r.N
			for left := r.N; left > 0; {
				k := 1 + rnd.Int64N(left)
				cut = append(cut, dtype.Run{Width: r.Width, N: k})
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
		if len(runs) == 1 {
			kind := map[int64]dtype.Kind{1: dtype.Int8, 2: dtype.Int16, 4: dtype.Float32, 8: dtype.Float64}[runs[0].Width]
			if got := elements(kind).digest(count * size); got != want {
				t.Errorf("%v %d times: %#x, as %v %#x", runs, count, want, kind, got)
			}
		}
	}
}

// A kind fits the bits that are no digest.
const _ = uint16(digested - 1 - elements(dtype.NumKinds))
