// SPDX-License-Identifier: Apache-2.0

package supervisor

import "gompi/internal/launch"

// controlState is the control plane's knowledge of a process when it ended.
type controlState struct {
	joined, finalized bool
	// othersJoined: another process of its world has called Init.
	othersJoined bool
}

// judge tells whether a process ended as it should. If not, why completes "rank 3 ..." and
// code is the exit status of the job for this end.
func judge(e launch.Ending, s controlState) (why string, code int, ok bool) {
	switch {
	case e.Signal != 0 || e.Code != 0:
		return e.String(), e.Status(), false
	case s.joined && !s.finalized:
		return "exited without calling Finalize", launch.ExitFailure, false
	case !s.joined && s.othersJoined:
		return "exited with status 0 without calling Init, and other ranks wait for it", launch.ExitFailure, false
	}
	return "", 0, true
}

// abortStatus returns the exit status for Abort(code). It is never 0, as an exit status
// keeps only eight bits.
func abortStatus(code int) int {
	if code &= 0xff; code != 0 {
		return code
	}
	return launch.ExitFailure
}
