// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"gompi/internal/wait"
)

// However many ranks share the processors, their service goroutines leave these
// to the ranks.
func TestServiceShare(t *testing.T) {
	const look = 30 * time.Microsecond
	for _, cpus := range []int{1, 2, 16} {
		for _, ranks := range []int{2, 4, 16, 64, 100, 300, 1000} {
			p := wait.ForOS(ranks, cpus)
			if p.Spare {
				continue
			}
			if share := float64(ranks) * float64(look) / float64(longestTick(&p)); share > 0.25 {
				t.Errorf("%d ranks on %d processors: %.2f processors look whether the ranks work", ranks, cpus, share)
			}
		}
	}
}
