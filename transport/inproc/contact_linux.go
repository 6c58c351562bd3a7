// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// dropDescriptors closes the descriptors of a contact, which inproc does not use.
func dropDescriptors(c wire.Contact) {
	if c.SameHost {
		for _, fd := range []int{c.Segment, c.Bell} {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	}
}
