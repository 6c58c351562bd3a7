// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/mpi"

// WithInfo opens a session with hints, which Open copies. This library knows only
// thread_level; it keeps the others for the program. MPI 4.1 section 11.3.1.
func WithInfo(info *mpi.Info) Option { return func(s *Session) { s.hints = info.Dup() } }

// Hints returns a copy of the session's hints. thread_level is always
// MPI_THREAD_MULTIPLE. Local. MPI 4.1 section 11.3.1.
func (s *Session) Hints() *mpi.Info {
	info := s.hints.Dup()
	info.Set("thread_level", "MPI_THREAD_MULTIPLE")
	return info
}
