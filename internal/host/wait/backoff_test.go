// SPDX-License-Identifier: Apache-2.0

package wait

import "testing"

// A wait looks, yields between shorter spins, and comes to its end, sooner if a yield
// is dear.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		spin, most, again, cost int
		looks, yields           int
	}{
		{0, 0, 0, 1, 0, 0},
		{3, 0, 5, 1, 3, 0},
		{3, 2, 0, 1, 3, 2},
		{3, 2, 5, 1, 13, 2},
		{0, 64, 0, 1, 0, 64},
		{2, 64, 0, 64, 2, 1},
		{2, 64, 1, 40, 4, 2},
	} {
		b := Backoff{SpinsLeft: c.spin}
		looks, yields := 0, 0
		for {
			if b.Spin() {
				looks++
			} else if b.MayYield(c.most) {
				yields++
				b.AddYield(c.cost, c.again)
			} else {
				break
			}
		}
		if looks != c.looks || yields != c.yields {
			t.Errorf("%+v: %d looks and %d yields", c, looks, yields)
		}
		if b.Spin() || b.MayYield(c.most) {
			t.Errorf("%+v: it goes on after its end", c)
		}
	}
}
