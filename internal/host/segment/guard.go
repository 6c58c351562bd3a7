// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Punch gives whole pages of a mapping back to the system, for all processes that map the
// file. mem must begin at a page. The pages read as zeros afterwards, and need Fill before
// the next use.
func Punch(mem []byte) error {
	if err := unix.Madvise(mem, unix.MADV_REMOVE); err != nil {
		return fmt.Errorf("release %d bytes of shared memory: %w", len(mem), err)
	}
	return nil
}

// Guard allows this process to touch whole pages of a mapping, or makes that a fault.
func Guard(mem []byte, open bool) error {
	prot := unix.PROT_NONE
	if open {
		prot = unix.PROT_READ | unix.PROT_WRITE
	}
	if err := unix.Mprotect(mem, prot); err != nil {
		return fmt.Errorf("protect %d bytes of shared memory: %w", len(mem), err)
	}
	return nil
}
