// SPDX-License-Identifier: Apache-2.0

//go:build race

package remote

// meet tells the race detector what it cannot see, because the words lie in shared memory.
// Locks, guards and signals order a goroutine's accesses to its region with what is served
// there for others under the engine's lock, which is not held here.
func (s *Space) meet() {
	s.e.Lock()
	defer s.e.Unlock()
}
