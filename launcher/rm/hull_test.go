// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math/rand/v2"
	"testing"
)

// tried is the best step down and the best step up by looking at all options.
func (m menu) tried(i int) (down, up int, loss, gain float64) {
	down, up = -1, -1
	for k := i - 1; k >= 0; k-- {
		if m[k].slots == m[i].slots {
			continue
		}
		if r := m.loses(i, k); down < 0 || r < loss {
			down, loss = k, r
		}
	}
	for k := i + 1; k < len(m); k++ {
		if r := m.gains(i, k); r > gain {
			up, gain = k, r
		}
	}
	return down, up, loss, gain
}

// Linked steps against those found by looking at all: menus of any shape, also with
// several sizes on as many slots, and values that tie.
func TestLink(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 1))
	for range 20000 {
		m := make(menu, 1+r.IntN(12))
		slots, most, concave := 0, 1+r.IntN(40), r.IntN(3) == 0
		for i := range m {
			if i == 0 || r.IntN(4) > 0 {
				slots += 1 + r.IntN(3)
			}
			m[i] = option{size: i + 1, slots: slots, value: float64(r.IntN(most) - most/3)}
			if concave {
				m[i].value = float64(slots * (40 - slots))
			}
		}
		m.link()
		for i, o := range m {
			if down, up, loss, gain := m.tried(i); o.down != down || o.up != up || o.loss != loss || o.gain != gain {
				t.Fatalf("from %d of %+v: down to %d for %v, up to %d for %v; want %d, %v, %d, %v", i, m, o.down, o.loss, o.up, o.gain, down, loss, up, gain)
			}
		}
	}
}
