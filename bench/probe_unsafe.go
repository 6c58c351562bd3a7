// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync/atomic"
	"unsafe"
)

// wordAt is the word that mapped memory, which begins with a page, begins with.
func wordAt(m []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[0])) }
