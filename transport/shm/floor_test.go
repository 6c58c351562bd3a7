// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// shelf is the least that two processors need to hand bytes over: a place for
// them and a word that says how often it was filled.
type shelf struct {
	count atomic.Uint64
	_     [2*lineBytes - 8]byte
	data  []byte
}

func (s *shelf) put(p []byte) {
	copy(s.data, p)
	s.count.Add(1)
}

func (s *shelf) take(p []byte, n uint64) {
	for s.count.Load() < n {
	}
	copy(p, s.data)
}

// BenchmarkFloor copies a payload into a place that is always the same and out
// of it on another processor, there and back, with nothing around: what a
// transport that copies twice can at best reach.
func BenchmarkFloor(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("needs two processors")
	}
	pin := func(cpu int) {
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			b.Logf("processor %d: %v", cpu, err)
		}
	}
	for _, size := range []int{8, 1 << 10, 4 << 10, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			out, back := &shelf{data: make([]byte, size)}, &shelf{data: make([]byte, size)}
			done := make(chan struct{})
			rounds := uint64(b.N)
			go func() {
				defer close(done)
				pin(1) // the thread ends with its goroutine
				p := make([]byte, size)
				for i := range rounds {
					out.take(p, i+1)
					back.put(p)
				}
			}()
			first := make(chan struct{})
			go func() {
				defer close(first)
				pin(0)
				p := make([]byte, size)
				for i := range rounds {
					out.put(p)
					back.take(p, i+1)
				}
			}()
			<-first
			<-done
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/oneway")
		})
	}
}
