// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package mem

import (
	"bytes"
	"testing"
)

func streams(t *testing.T, src []byte) {
	t.Helper()
	n := len(src) / lineBytes * lineBytes
	got := aligned(n + lineBytes)
	if stream(got[:n], src[:n]); !bytes.Equal(got[:n], src[:n]) || !bytes.Equal(got[n:], make([]byte, lineBytes)) {
		t.Fatalf("%d bytes are not what they were", n)
	}
}
