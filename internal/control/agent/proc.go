// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/rand"
	"fmt"

	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Proc is one process of this host, from the reservation until its child has ended, its pid is free and its connection is gone.
type Proc struct {
	serial uint32
	token  [protocol.TokenBytes]byte
	files  *Files // nil when exited

	state     protocol.ProcState // as far as this host and the head's orders say
	over      bool               // the head has said so: whoever asks of its end is told
	connected bool
	welcomed  bool     // the head has: now it may hear of anything
	welcome   []byte   // that waits for memory that it tells of, nil: none does
	after     []Action // what comes after that
	shares    bool     // it is told of the arena of gifts
	pid       int      // of the child, 0 before Started
	helloPID  int      // who said hello
	exitSeen  bool     // Exited was called; else the child may run, whatever the state is
	reaped    bool     // Reap was called
	unborn    bool     // given up before there was a child
	hears     bool     // it was given the bell of its group

	// Who was given its pid and has not let go of it, and whose pids it was
	// given itself: the same pairs from both sides.
	knownBy, knows map[uint32]struct{}

	// holds are the ranges that it was given and may touch, until it says that it
	// does not, or nothing of it runs any more.
	holds map[place]*extent
	// memories are those that it has in the same way, by name.
	memories map[string]struct{}
}

// direct tells that the process is the launcher's own child: its pid stays
// taken until the launcher reaps it.
func (s *Proc) direct() bool { return s.pid != 0 && s.pid == s.helloPID }

// NewProcs makes what n processes need. It is no business of the agent's owner
// alone: memory is slow.
func NewProcs(n int) ([]*Proc, error) {
	var mem segment.Memory
	defer mem.Close()
	procs := make([]*Proc, 0, n)
	err := mem.Take(int64(n)*segment.InitialBytes, func(k int64) error {
		for range k / segment.InitialBytes {
			f, err := newFiles()
			if err != nil {
				return fmt.Errorf("process %d of %d: %w", len(procs)+1, n, err)
			}
			procs = append(procs, newProc(f))
		}
		return nil
	})
	if err != nil {
		Release(procs)
		return nil, err
	}
	return procs, nil
}

func newProc(f *Files) *Proc {
	s := &Proc{files: f, state: protocol.Starting}
	rand.Read(s.token[:]) // never fails
	return s
}

// BareProcs are n places without memory, for tests of what is said of them.
func BareProcs(n int) []*Proc {
	procs := make([]*Proc, n)
	for i := range procs {
		f := &Files{segment: -1, bell: -1}
		f.refs.Store(1)
		procs[i] = newProc(f)
	}
	return procs
}

// Release frees places that were not reserved.
func Release(procs []*Proc) {
	for _, s := range procs {
		s.files.Release()
	}
}
