// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Advise has memory that nothing was written to come in huge pages, where whole ones are
// in it and the administrator allows that. Nothing else of it changes: a kernel that
// cannot gives small ones.
func Advise(b []byte) {
	from := (uintptr(unsafe.Pointer(unsafe.SliceData(b))) + pageSize - 1) &^ (pageSize - 1)
	to := (uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(len(b))) &^ (pageSize - 1)
	if from < to {
		unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
	}
}
