// SPDX-License-Identifier: Apache-2.0

package sessions

import "gompi/mpi"

// SendBuffer returns the session's space for mpi.Bsend. It serves the communicators that
// were made from the session, by Comm or by mpi.CommFromGroup of a group from it, and the
// communicators made from these, while they have no space of their own. Local. Close
// detaches the space, and waits until its messages have left. MPI 4.1 section 3.6.
func (s *Session) SendBuffer() mpi.SendBuffer { return s.space }
