// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync"

	"gompi/internal/fault"
	"gompi/internal/wire"
)

// whole is memory that a process of the host has shared, and where in it
// something begins.
type whole struct {
	holder wire.ProcID
	place  uint64
	total  int64
	off    int64
	kept   bool // the process keeps it, so that it stays mapped
}

// joint is shared memory of another process as it is mapped here, once for all
// targets in it.
type joint struct {
	ready chan struct{} // closed when mem and err are set
	mem   []byte
	err   error
	users int
}

// joints are the mapped memories of a process.
type joints struct {
	mu  sync.Mutex
	all map[whole]*joint
}

// key names the memory without a place in it.
func (w whole) key() whole {
	w.off = 0
	return w
}

// join maps shared memory, or finds it. It may block.
func (s *Space) join(w whole) ([]byte, error) {
	k := w.key()
	switch {
	case k.holder == s.self:
		return s.ownShared(k)
	case k.kept:
		j, err := s.controls.join(joinKey{k.holder, k.place}, int(k.total))
		if err != nil {
			return nil, err
		}
		return j.mem, nil
	}
	s.joints.mu.Lock()
	j := s.joints.all[k]
	if j != nil {
		j.users++
		s.joints.mu.Unlock()
		<-j.ready
		if j.err != nil {
			s.leave(w)
		}
		return j.mem, j.err
	}
	j = &joint{ready: make(chan struct{}), users: 1}
	if s.joints.all == nil {
		s.joints.all = map[whole]*joint{}
	}
	s.joints.all[k] = j
	s.joints.mu.Unlock()
	j.mem, j.err = s.e.Join(k.holder, k.place, int(k.total))
	close(j.ready)
	if j.err != nil {
		s.leave(w)
	}
	return j.mem, j.err
}

// leave ends a join.
func (s *Space) leave(w whole) {
	k := w.key()
	switch {
	case k.holder == s.self:
		return
	case k.kept:
		s.controls.unjoinKey(joinKey{k.holder, k.place})
		return
	}
	s.joints.mu.Lock()
	j := s.joints.all[k]
	j.users--
	last := j.users == 0
	if last {
		delete(s.joints.all, k)
	}
	s.joints.mu.Unlock()
	if last && j.err == nil {
		s.e.Leave(j.mem)
	}
}

// ownShared finds memory that this process has shared itself.
func (s *Space) ownShared(k whole) ([]byte, error) {
	if mem := s.stock.own(k.place, k.total); k.kept && mem != nil {
		return mem, nil
	}
	s.e.Lock()
	defer s.e.Unlock()
	for _, r := range s.regions {
		if r != nil && r.shared && r.at == k.place && int64(len(r.mem)) == k.total {
			return r.mem, nil
		}
	}
	return nil, &AccessError{fault.Closed, 0, 0, k.total}
}
