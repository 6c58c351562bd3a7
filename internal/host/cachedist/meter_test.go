// SPDX-License-Identifier: Apache-2.0

package cachedist

import "testing"

// TestDistanceOfOne: what nobody else reads is near, and a probe changes nothing.
func TestDistanceOfOne(t *testing.T) {
	line := make([]byte, 64)
	for i := range line {
		line[i] = byte(i)
	}
	var d Meter
	far := 0
	for range 1000 * probeInterval {
		if d.Probe(line); d.Far() {
			far++
		}
	}
	if far > 100*probeInterval {
		t.Errorf("far in %d of %d", far, 1000*probeInterval)
	}
	for i, b := range line {
		if b != byte(i) {
			t.Fatalf("byte %d became %d", i, b)
		}
	}
}
