// SPDX-License-Identifier: Apache-2.0

package wait

// Sleeper is where a process sleeps when nothing has happened for a while.
// One goroutine at a time may be in Sleep.
type Sleeper interface {
	// Add makes fd wake the sleeper whenever it is readable.
	Add(fd int) error
	// Wake ends the current or the next Sleep. Safe from any goroutine.
	Wake()
	// Sleep blocks until Wake has been called or an added fd is readable.
	// It may return early.
	Sleep()
	// Close ends a Sleep for good.
	Close()
}

// chanSleeper serves ranks without file descriptors.
type chanSleeper struct{ c chan struct{} }

// NewChan returns a sleeper that only Wake ends.
func NewChan() Sleeper { return chanSleeper{make(chan struct{}, 1)} }

func (s chanSleeper) Add(int) error {
	panic("gompi: BUG: file descriptor for a sleeper without epoll")
}

func (s chanSleeper) Wake() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

func (s chanSleeper) Sleep() { <-s.c }
func (s chanSleeper) Close() { s.Wake() }
