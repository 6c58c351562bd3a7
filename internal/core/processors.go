// SPDX-License-Identifier: Apache-2.0

package core

import (
	"runtime"
	"sync"
	"time"
)

// processors is how many of them Go's scheduler uses: this rank's share. Of more ranks
// than processors one that has begun on a single processor gets Go's second one late,
// when most others have started: with it come pieces of the heap of its own, and threads
// that wake each other for nothing, a tenth of what a start takes.
type processors struct {
	mu   sync.Mutex
	want int
	late *time.Timer // of the second one; nil: nothing is to come
}

// How long that takes: somewhat longer than until the agent lets ranks go. Before, both
// would be the same processor.
const (
	secondAfter = 100 * time.Millisecond
	secondEach  = 2 * time.Millisecond // for each process of the host
)

// give sets how many, with so many processes of the job on so many processors of this
// host; 0: that is for others to say.
func (s *processors) give(n, local, usable int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want = n
	switch {
	case n != 2 || local <= usable || runtime.GOMAXPROCS(0) != 1:
		s.set()
	case s.late == nil:
		s.late = time.AfterFunc(secondAfter+time.Duration(local)*secondEach, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.late == nil {
				return
			}
			s.stop()
			if runtime.GOMAXPROCS(0) == 1 { // else the program has said how many
				s.set()
			}
		})
	}
}

// set does it now. mu is held.
func (s *processors) set() {
	s.stop()
	if s.want > 0 && s.want != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(s.want)
	}
}

// stop has nothing come any more. mu is held.
func (s *processors) stop() {
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
}

// end leaves to Go what it has.
func (s *processors) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}
