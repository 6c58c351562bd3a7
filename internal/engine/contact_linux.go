// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// closeContact closes the file descriptors of a contact that is not used.
func closeContact(c wire.Contact) {
	for _, fd := range []int{c.Segment, c.Bell} {
		if c.SameHost && fd >= 0 {
			unix.Close(fd)
		}
	}
}
