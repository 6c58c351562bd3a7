// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Ending tells how a process ended: by a signal, or with an exit code.
type Ending struct {
	Signal unix.Signal // 0: the process exited
	Core   bool        // a core file was written
	Code   int
}

// String completes a sentence such as "rank 3 ...".
func (e Ending) String() string {
	if e.Signal == 0 {
		return fmt.Sprintf("exited with status %d", e.Code)
	}
	text := "was killed by " + signalText(e.Signal)
	if e.Core {
		text += ", core dumped"
	}
	return text
}

// Status returns the exit status that a shell would show.
func (e Ending) Status() int {
	if e.Signal != 0 {
		return ExitSignal + int(e.Signal)
	}
	return e.Code
}

func signalText(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return fmt.Sprintf("signal %d (%s)", int(s), name)
	}
	return fmt.Sprintf("signal %d", int(s))
}
