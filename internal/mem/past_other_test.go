// SPDX-License-Identifier: Apache-2.0

//go:build race || !amd64

package mem

import (
	"bytes"
	"testing"
)

func streams(t *testing.T, src []byte) {
	t.Helper()
	n := len(src) / pastStep * pastStep
	got := aligned(n + pastStep)
	if stream(got[:n], src[:n]); !bytes.Equal(got[:n], src[:n]) || !bytes.Equal(got[n:], make([]byte, pastStep)) {
		t.Fatalf("%d bytes are not what they were", n)
	}
}
