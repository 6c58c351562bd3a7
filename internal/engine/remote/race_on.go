// SPDX-License-Identifier: Apache-2.0

//go:build race

package remote

// meet tells the race detector what it does not see, because the words lie in
// shared memory: locks, guards and signals order what a goroutine does with a
// region of its process and what is served there for others, under the engine's
// lock, which is not held here.
func (s *Space) meet() {
	s.e.Lock()
	defer s.e.Unlock()
}
