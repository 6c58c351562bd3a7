// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"math"
	"testing"
)

func TestQuo(t *testing.T) {
	for _, d := range []int64{1, 2, 3, 4, 7, 8, 12, 16, 24, 1000, 1 << 20, 1<<20 + 1, 1 << 62, math.MaxInt64} {
		for _, n := range []int64{0, 1, d - 1, d, 2, 7, 8, 12345, 1<<40 - 1, math.MaxInt64 - 1, math.MaxInt64} {
			if got := Quo(n, d); got != n/d {
				t.Errorf("%d / %d: %d", n, d, got)
			}
		}
	}
}
