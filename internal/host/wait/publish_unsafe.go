// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package wait

// unsafe: an atomic store is an exchange on this processor, which waits until all
// lines written before have come from the processors that have read them: 400 ns
// for 4 KiB. An ordinary store keeps its place among stores, and does not wait.

import (
	"sync/atomic"
	"unsafe"
)

// Late reports whether what Publish stores may become visible late.
const DelayedStores = true

// Publish stores v for other processes to see, after all that was stored before.
// What this processor loads next it may load before others see v: it may miss
// that one of them is about to sleep, while that one misses v. So who sleeps has
// to look once more, SecondLook after it has said so.
func Publish(p *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(p)) = v }

// Publish32 is Publish of 32 bits.
func Publish32(p *atomic.Uint32, v uint32) { *(*uint32)(unsafe.Pointer(p)) = v }

func publish32(p *atomic.Int32, v int32) { *(*int32)(unsafe.Pointer(p)) = v }
