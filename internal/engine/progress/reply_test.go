// SPDX-License-Identifier: Apache-2.0

package progress

import "testing"

// After much the service goroutine waits for more, and after little as long as that
// pays now and then; in vain it does once in a while.
func TestReplies(t *testing.T) {
	var l replies
	after := func(what func()) bool {
		was := l
		what()
		return l.expected(was)
	}
	little := func() { l.came(false) }
	if after(func() {}) {
		t.Error("waits after nothing")
	}
	in := 0
	for range 1000 {
		if after(little) {
			in++
			l.learn(false)
		}
	}
	if in == 0 || in > 1000/-leastScore {
		t.Errorf("waits %d times in vain", in)
	}
	if !after(func() { l.refused++ }) {
		t.Error("does not wait when the transport is full")
	}
	if !after(func() { l.came(true); l.came(true) }) {
		t.Error("does not wait after two long frames")
	}
	for l.score < 0 {
		after(little)
	}
	in = 0
	for k := range 1000 {
		if after(little) {
			in++
			l.learn(k%mostScore == 0)
		}
	}
	if in != 1000 {
		t.Errorf("waits %d times of 1000 although it pays", in)
	}
}
