// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

// TestLinger: the service stays after much, and after little as long as that
// pays now and then; in vain it stays once in a while.
func TestLinger(t *testing.T) {
	var l linger
	after := func(what func()) bool {
		was := l
		what()
		return l.stays(was)
	}
	little := func() { l.came(8) }
	if after(func() {}) {
		t.Error("stays after nothing")
	}
	in := 0
	for range 1000 {
		if after(little) {
			in++
			l.paid(false)
		}
	}
	if in == 0 || in > 1000/-noHope {
		t.Errorf("stays %d times in vain", in)
	}
	if !after(l.refused) {
		t.Error("does not stay when the transport is full")
	}
	if !after(func() { l.came(longFrame); l.came(FrameMax) }) {
		t.Error("does not stay after two long frames")
	}
	for l.hope < 0 {
		after(little)
	}
	in = 0
	for k := range 1000 {
		if after(little) {
			in++
			l.paid(k%mostHope == 0)
		}
	}
	if in != 1000 {
		t.Errorf("stays %d times of 1000 although it pays", in)
	}
}
