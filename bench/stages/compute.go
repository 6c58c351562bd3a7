// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"runtime"
	"time"

	"gompi/internal/host/cputime"
)

// pi approximates pi by n rectangles, the first kind of computing.
func pi(n int) float64 {
	h, sum := 1/float64(n), 0.0
	for i := range n {
		x := h * (float64(i) + 0.5)
		sum += 4 / (1 + x*x)
	}
	return h * sum
}

// newMatrix makes a matrix of n rows and columns.
func newMatrix(n int) []float64 {
	a := make([]float64, n*n)
	for i := range a {
		a[i] = float64(i/n+i%n) * 1.1
	}
	return a
}

// squares reads a whole matrix, the second kind of computing.
func squares(a []float64) (sum float64) {
	for _, v := range a {
		sum += v * v
	}
	return sum
}

// cost returns the processor time of an operation, whatever else runs: the lesser of two
// measurements.
func cost(do func()) time.Duration {
	const enough = 10 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for n := 1; ; n *= 2 {
		var took [2]time.Duration
		for i := range took {
			begin := cputime.Thread()
			for range n {
				do()
			}
			took[i] = cputime.Thread() - begin
		}
		if least := min(took[0], took[1]); least >= enough || n >= 1<<40 {
			return max(least/time.Duration(n), 1)
		}
	}
}
