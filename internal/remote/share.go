// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/fault"
	"gompi/internal/shmem"
)

// mapShared makes the shared memory of a target usable here, until Close. It may
// block.
func (s *Space) mapShared(t *Target) (mem []byte, err error) {
	if t.shared.Owner == s.self {
		return s.ownShared(&t.shared)
	}
	t.mapping, mem, err = s.cache.Map(&t.shared)
	if err == nil && s.gone(t.shared.Owner) != nil {
		s.cache.Gone(t.shared.Owner) // it may have died before this was mapped
	}
	return mem, err
}

// ownShared finds memory that this process has shared itself.
func (s *Space) ownShared(n *shmem.Name) ([]byte, error) {
	if mem := s.stock.own(n.Place, n.Total); n.Kept && mem != nil {
		return mem[n.Off:][:n.Bytes:n.Bytes], nil
	}
	s.e.Lock()
	defer s.e.Unlock()
	for _, r := range s.regions {
		if r != nil && r.shared && r.at == n.Place && int64(len(r.mem)) == n.Total {
			return r.mem[n.Off:][:n.Bytes:n.Bytes], nil
		}
	}
	return nil, &AccessError{fault.Closed, 0, 0, n.Total}
}
