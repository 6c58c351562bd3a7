// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Advise makes the kernel use huge pages for memory that was never written, wherever b
// contains a whole huge page and the administrator allows it. It changes nothing else. A
// kernel that cannot do it uses small pages.
func Advise(b []byte) {
	from := (uintptr(unsafe.Pointer(unsafe.SliceData(b))) + pageSize - 1) &^ (pageSize - 1)
	to := (uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(len(b))) &^ (pageSize - 1)
	if from < to {
		unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
	}
}
