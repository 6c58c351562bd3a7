// SPDX-License-Identifier: Apache-2.0

package spawner

// numbers allocates numbers from 0, each time the lowest free one.
type numbers struct {
	taken []bool // up to the highest number ever taken
	low   int    // all below are taken
	used  int
}

func (s *numbers) take() int {
	for s.low < len(s.taken) && s.taken[s.low] {
		s.low++
	}
	if s.low == len(s.taken) {
		s.taken = append(s.taken, false)
	}
	s.taken[s.low] = true
	s.used++
	return s.low
}

func (s *numbers) put(n int) {
	s.taken[n] = false
	s.low = min(s.low, n)
	s.used--
}
