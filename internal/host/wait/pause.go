// SPDX-License-Identifier: Apache-2.0

package wait

// Pause lets a few cycles pass inside a spin loop. It is a real function call, which
// gives the loop a preemption point.
//
//go:noinline
func Pause() {
	for i := 0; i < 4; i++ {
		spinSink()
	}
}

//go:noinline
func spinSink() {}
