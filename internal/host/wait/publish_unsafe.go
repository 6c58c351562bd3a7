// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package wait

// unsafe: on this processor an atomic store is an exchange. The exchange waits until the
// processors that have read the lines written before have given them back: 400 ns for 4
// KiB. An ordinary store keeps its order among stores and does not wait.

import (
	"sync/atomic"
	"unsafe"
)

// DelayedStores reports whether a store by Publish may become visible late.
const DelayedStores = true

// Publish stores v so that other processes see it, after all earlier stores. This
// processor may do its next loads before others see v. So it may miss that another
// process is about to sleep, while that process misses v. A process that goes to sleep
// must therefore look again, RecheckDelay after it has announced its sleep.
func Publish(p *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(p)) = v }

// Publish32 is Publish for 32 bits.
func Publish32(p *atomic.Uint32, v uint32) { *(*uint32)(unsafe.Pointer(p)) = v }

func publish32(p *atomic.Int32, v int32) { *(*int32)(unsafe.Pointer(p)) = v }
