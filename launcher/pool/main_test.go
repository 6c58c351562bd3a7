// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"testing"

	"golang.org/x/sys/unix"
)

func closeFD(t *testing.T, fd int) {
	t.Helper()
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
}
