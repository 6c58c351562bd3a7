// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/mpi"

// SendBuffer is the session's space for mpi.Bsend: it serves communicators that were
// made from the session, by Comm or by mpi.CommFromGroup of a group from it, and those
// that are made from these, as long as they have no space attached of their own. Close
// detaches it, and waits until what is in it has left. Local. MPI 4.1 section 3.6.
func (s *Session) SendBuffer() mpi.SendBuffer { return s.space }
