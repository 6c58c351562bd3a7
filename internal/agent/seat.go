// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/rand"
	"fmt"

	"gompi/internal/control"
	"gompi/internal/segment"
)

// Seat is the place of one process, from the reservation until its child has
// ended, its pid is free and its connection is gone.
type Seat struct {
	serial uint32
	token  [control.TokenBytes]byte
	files  *Files // nil when exited

	state     control.ProcState // as far as this host and the head's orders say
	over      bool              // the head has said so: whoever asks of its end is told
	connected bool
	welcomed  bool // the head has: now it may hear of anything
	pid       int  // of the child, 0 before Started
	helloPID  int  // who said hello
	exitSeen  bool // Exited was called; else the child may run, whatever the state is
	reaped    bool // Reap was called
	unborn    bool // given up before there was a child

	// Who was given its pid and has not let go of it, and whose pids it was
	// given itself: the same pairs from both sides.
	knownBy, knows map[uint32]struct{}
}

// direct tells that the process is the launcher's own child: its pid stays
// taken until the launcher reaps it.
func (s *Seat) direct() bool { return s.pid != 0 && s.pid == s.helloPID }

// NewSeats makes what n processes need. It is no business of the agent's owner
// alone: memory is slow.
func NewSeats(n int) ([]*Seat, error) {
	var mem segment.Memory
	defer mem.Close()
	seats := make([]*Seat, 0, n)
	err := mem.Take(int64(n)*segment.InitialBytes, func(k int64) error {
		for range k / segment.InitialBytes {
			f, err := newFiles()
			if err != nil {
				return fmt.Errorf("process %d of %d: %w", len(seats)+1, n, err)
			}
			seats = append(seats, newSeat(f))
		}
		return nil
	})
	if err != nil {
		Release(seats)
		return nil, err
	}
	return seats, nil
}

func newSeat(f *Files) *Seat {
	s := &Seat{files: f, state: control.Starting}
	rand.Read(s.token[:]) // never fails
	return s
}

// BareSeats are n seats without memory, for tests of what is said of them.
func BareSeats(n int) []*Seat {
	seats := make([]*Seat, n)
	for i := range seats {
		f := &Files{segment: -1, bell: -1}
		f.refs.Store(1)
		seats[i] = newSeat(f)
	}
	return seats
}

// Release frees seats that were not reserved.
func Release(seats []*Seat) {
	for _, s := range seats {
		s.files.Release()
	}
}
