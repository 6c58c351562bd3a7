// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ending is how a process ended: by a signal, or with an exit code.
type ending struct {
	signal unix.Signal // 0: it exited
	core   bool        // a core file was written
	code   int
}

// String completes "rank 3 ...".
func (e ending) String() string {
	if e.signal == 0 {
		return fmt.Sprintf("exited with status %d", e.code)
	}
	text := "was killed by " + signalText(e.signal)
	if e.core {
		text += ", core dumped"
	}
	return text
}

// status is what a shell would show.
func (e ending) status() int {
	if e.signal != 0 {
		return exitSignal + int(e.signal)
	}
	return e.code
}

func signalText(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return fmt.Sprintf("signal %d (%s)", int(s), name)
	}
	return fmt.Sprintf("signal %d", int(s))
}

// standing is what the control plane knew of a process when it ended.
type standing struct {
	joined, finalized bool
	// othersJoined: another process of its world has called Init.
	othersJoined bool
}

// judge says whether a process ended as it should. If not, why completes
// "rank 3 ..." and code is the job's exit status on its account.
func judge(e ending, s standing) (why string, code int, ok bool) {
	switch {
	case e.signal != 0 || e.code != 0:
		return e.String(), e.status(), false
	case s.joined && !s.finalized:
		return "exited without calling Finalize", exitFailure, false
	case !s.joined && s.othersJoined:
		return "exited with status 0 without calling Init, and other ranks wait for it", exitFailure, false
	}
	return "", 0, true
}

// abortStatus is the exit status for Abort(code): never 0, as an exit status
// keeps only eight bits.
func abortStatus(code int) int {
	if code &= 0xff; code != 0 {
		return code
	}
	return exitFailure
}
