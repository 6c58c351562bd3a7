// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync/atomic"
	"unsafe"
)

// wordAt returns the first word of mapped memory, which must begin at a page.
func wordAt(m []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[0])) }
