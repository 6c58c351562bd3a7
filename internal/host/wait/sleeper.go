// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"errors"
	"sync"
)

// Sleeper is where a process sleeps when nothing has happened for a while. Only one
// goroutine at a time may be in Sleep.
type Sleeper interface {
	// Add makes the sleeper wake whenever fd is readable.
	Add(fd int) error
	// AddBell makes each write to fd end the current or the next Sleep, until DropBell. fd
	// is an eventfd that nobody reads, so one write wakes all processes that have added
	// it. DropBell must precede the close of fd. Both are safe from any goroutine.
	AddBell(fd int) error
	DropBell(fd int)
	// Wake ends the current or the next Sleep. Safe from any goroutine.
	Wake()
	// Sleep blocks until Wake has been called or an added fd is readable.
	// It may return early.
	Sleep()
	// Close ends the current Sleep. The sleeper must not be used again.
	Close()
}

var errClosed = errors.New("the process has ended")

// chanSleeper is a sleeper for ranks without file descriptors.
type chanSleeper struct {
	c chan struct{}

	mu     sync.Mutex
	bells  Sleeper       // holds the bells, for a goroutine that sleeps there; nil before the first bell
	ended  chan struct{} // closed when that goroutine ends
	closed bool
}

// NewChan returns a sleeper that wakes by Wake and by bells only.
func NewChan() Sleeper { return &chanSleeper{c: make(chan struct{}, 1)} }

func (s *chanSleeper) Add(int) error {
	panic("gompi: BUG: file descriptor for a sleeper without epoll")
}

func (s *chanSleeper) AddBell(fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.bells == nil {
		var err error
		if s.bells, err = NewEpoll(); err != nil {
			return err
		}
		s.ended = make(chan struct{})
		go s.forwardBells(s.bells)
	}
	return s.bells.AddBell(fd)
}

// forwardBells wakes the sleeper at each ring of a bell.
func (s *chanSleeper) forwardBells(bells Sleeper) {
	defer close(s.ended)
	for {
		bells.Sleep()
		s.Wake()
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return
		}
	}
}

func (s *chanSleeper) DropBell(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bells != nil && !s.closed {
		s.bells.DropBell(fd)
	}
}

func (s *chanSleeper) Wake() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

func (s *chanSleeper) Sleep() { <-s.c }

func (s *chanSleeper) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first && s.bells != nil {
		s.bells.Wake()
		<-s.ended
		s.bells.Close()
	}
	s.Wake()
}
