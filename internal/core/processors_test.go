// SPDX-License-Identifier: Apache-2.0

package core

import (
	"runtime"
	"testing"
	"time"
)

// A rank that has begun on one processor, of more than there are, gets Go's second one
// late, unless the program has said how many it wants.
func TestSecondProcessorComesLate(t *testing.T) {
	was := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(was)
	due := func(s *processors) { // its time has come
		s.mu.Lock()
		s.late.Reset(0)
		s.mu.Unlock()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
			s.mu.Lock()
			over := s.late == nil
			s.mu.Unlock()
			if over {
				return
			}
		}
		t.Fatal("nothing comes")
	}
	is := func(want int, when string) {
		t.Helper()
		if n := runtime.GOMAXPROCS(0); n != want {
			t.Fatalf("GOMAXPROCS is %d %s, want %d", n, when, want)
		}
	}
	var s processors
	s.give(2, 1<<20, 1)
	is(1, "at the start")
	s.give(2, 1<<20, 1)
	is(1, "when others have come")
	due(&s)
	is(2, "later")
	s.give(3, 1, 3)
	is(3, "when others have gone")
	s.give(0, 1, 3)
	is(3, "when the user has said how many")

	runtime.GOMAXPROCS(1)
	s.give(2, 1<<20, 1)
	s.give(4, 1, 4)
	is(4, "when there are more processors than that")
	runtime.GOMAXPROCS(1)
	s.give(2, 1<<20, 1)
	runtime.GOMAXPROCS(5)
	due(&s)
	is(5, "when the program has said how many")
	runtime.GOMAXPROCS(1)
	s.give(2, 2, 2)
	is(2, "where each has a processor")
	runtime.GOMAXPROCS(1)
	s.give(2, 1<<20, 1)
	s.end()
	if s.late != nil {
		t.Error("something is to come after the end")
	}
}
