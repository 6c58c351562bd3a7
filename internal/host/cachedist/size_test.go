// SPDX-License-Identifier: Apache-2.0

package cachedist

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1024K\n": 1 << 20, "2M": 2 << 20, "512": 512, "": 0, "K": 0, "-1K": 0, "x": 0} {
		got, ok := parseSize(text)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
	if n := PrivateCacheBytes(); n < 1<<10 || n > 1<<30 {
		t.Errorf("a processor's own cache holds %d bytes", n)
	}
}
