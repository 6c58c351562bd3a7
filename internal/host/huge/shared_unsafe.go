// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

// unsafe: the kernel gets addresses of memory. Nothing is read or written through them.

import (
	"os"
	"strings"
	"unsafe"
)

// PageBytes is the size of a huge page.
const PageBytes = pageSize

// Mode says how shared memory without a file name (memfd) gets huge pages.
type Mode int

const (
	Never     Mode = iota // the administrator has turned them off
	Advised               // at the first touch, after Advise
	Collapsed             // by Collapse only
)

// SharedMode returns the mode of this system.
func SharedMode() Mode {
	read := func(name string) string {
		text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/" + name)
		return string(text)
	}
	return sharedMode(read("enabled"), read("shmem_enabled"))
}

// sharedMode derives the mode from two settings: one for memory of processes and one for
// files in memory. A setting that cannot be read means Never. If nobody has set
// shmem_enabled, it is [never]: then no huge pages come by themselves, and Collapse works.
func sharedMode(enabled, shmem string) Mode {
	switch {
	case enabled == "" || strings.Contains(enabled, "[never]"):
		return Never
	case strings.Contains(shmem, "[never]"):
		return Collapsed
	case shmem == "" || strings.Contains(shmem, "[deny]"):
		return Never
	}
	return Advised // advise, within_size, always, force
}

// Collapse turns whole pages of a shared mapping into huge ones, in place, for all
// processes that map the file. b must begin at a huge page, in memory and in the file, and
// at least one small page of each huge page must exist. After an error some of the memory
// may be in huge pages. The error is EAGAIN if another process was using a page at that
// moment. In each call the kernel first runs a thread of its own on every processor. If
// these are busy, that takes most of the time.
func Collapse(b []byte) error {
	_, err := collapse(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return err
}
