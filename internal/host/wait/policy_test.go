// SPDX-License-Identifier: Apache-2.0

package wait

import "testing"

// Whether ranks share processors follows from their number alone, however long
// somebody has them spin.
func TestOversubscribed(t *testing.T) {
	for _, c := range []struct {
		p    Policy
		want bool
	}{
		{ForOS(1, 2), false}, {ForOS(2, 2), false}, {ForOS(3, 2), true}, {ForOS(100, 2), true}, {ForGoroutine(), true},
	} {
		for _, spin := range []int{0, c.p.Spin, 50, 5000} {
			p := c.p
			if p.Spin = spin; p.Oversubscribed() != c.want {
				t.Errorf("%+v: oversubscribed: %v", p, !c.want)
			}
		}
	}
}
