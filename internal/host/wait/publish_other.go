// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package wait

import "sync/atomic"

// DelayedStores reports whether a store by Publish may become visible late.
const DelayedStores = false

// Publish stores v so that other processes see it.
func Publish(p *atomic.Uint64, v uint64) { p.Store(v) }

// Publish32 is Publish for 32 bits.
func Publish32(p *atomic.Uint32, v uint32) { p.Store(v) }

func publish32(p *atomic.Int32, v int32) { p.Store(v) }
