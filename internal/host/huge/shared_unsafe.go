// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

// unsafe: the kernel is told of memory by its address; nothing is read or written.

import (
	"os"
	"strings"
	"unsafe"
)

// PageBytes is the size of a huge page.
const PageBytes = pageSize

// Way is how memory of a file that has no name (memfd) comes in huge pages.
type Mode int

const (
	Never     Mode = iota // the administrator has turned them off
	Advised               // as the kernel makes it, after Advise
	Collapsed             // by Collapse alone
)

// Shared is the way of this system.
func SharedMode() Mode {
	read := func(name string) string {
		text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/" + name)
		return string(text)
	}
	return sharedMode(read("enabled"), read("shmem_enabled"))
}

// shared is the way by the settings for memory of processes and for files in memory. What
// cannot be read is never. shmem_enabled says [never] where nobody has set it: none come by
// themselves, and who asks for a page gets it.
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

// Collapse makes whole pages of a shared mapping huge ones, in place, for all who have the
// file: b begins on one, in memory and in the file, and in each a small page at least is
// there. An error leaves memory as it was, or some of it in huge pages: EAGAIN where
// somebody was using a page at that moment. The kernel first has a thread of its own run on
// every processor, once a call, which where these compute is what it takes.
func Collapse(b []byte) error {
	_, err := collapse(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return err
}
