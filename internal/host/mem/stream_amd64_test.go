// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mem

import (
	"bytes"
	"testing"
)

// streams holds both ways of this processor against copy.
func streams(t *testing.T, src []byte) {
	t.Helper()
	n := len(src) / lineBytes * lineBytes
	for _, f := range []func(dst, src []byte){streamPlain, func(dst, src []byte) {
		if hasWide() {
			streamWide(dst, src)
		} else {
			copy(dst, src)
		}
	}} {
		got := aligned(n + lineBytes)
		if f(got[:n], src[:n]); !bytes.Equal(got[:n], src[:n]) || !bytes.Equal(got[n:], make([]byte, lineBytes)) {
			t.Fatalf("%d bytes are not what they were", n)
		}
	}
}
