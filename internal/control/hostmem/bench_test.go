// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostmem_test

import (
	"testing"

	"gompi/internal/control/hostmem"
)

// What it takes until a process can touch 128 MiB: that nobody of the host has touched yet,
// and that another one has filled.
func BenchmarkFill(b *testing.B) {
	const n = 128 << 20
	all := hostmem.Range{Lo: 0, Hi: n}
	_, procs := job(b, 2)
	fill := func(b *testing.B, x *hostmem.Memory, want int64) {
		if taken, err := x.Fill(all); err != nil || taken != want {
			b.Fatalf("%d bytes taken of %d: %v", taken, want, err)
		}
	}
	shut := func(b *testing.B, x *hostmem.Memory) {
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("new", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			x := open(b, procs[0], n, false)
			b.StartTimer()
			fill(b, x, n)
			b.StopTimer()
			shut(b, x)
		}
	})
	b.Run("there", func(b *testing.B) {
		first := open(b, procs[0], n, false)
		defer shut(b, first)
		fill(b, first, n)
		for range b.N {
			b.StopTimer()
			x := open(b, procs[1], n, false)
			b.StartTimer()
			fill(b, x, 0)
			b.StopTimer()
			shut(b, x)
		}
	})
}
