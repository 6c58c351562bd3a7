// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"fmt"
	"time"

	"gompi/internal/control/protocol"
)

// Options say how a set is watched. All members of the set give the same ones. They
// hold for every change of that set and of the sets that follow it, whichever process
// requested the change.
type Options struct {
	// Step is by how much iterations grow at most from one Check to the next; 0
	// means 1. Lookahead is how many steps after the farthest member all members get
	// a change; 0 means 1.
	Step, Lookahead int
	// Prepare: members see a change only when each newcomer has called Ready.
	Prepare bool
	// Hold: members get a change only when each of them has called Release.
	Hold bool
	// Deadlines hold for changes whose request gave none. Whole is not used.
	Deadlines Deadlines
}

// Deadlines are how long the phases of a change may take. 0 means the job's deadline,
// which is a minute each for Ready, Accept and Commit (gompirun --resize-timeout,
// --commit-timeout). A change that misses a deadline is rolled back, and the reason
// names the processes that it waited for. Ready, Accept and Commit begin anew while data
// moves or a process reports: see Change.Progress, Change.AddBytes and Watcher.AddBytes.
type Deadlines struct {
	Ready  time.Duration // from the grant until all newcomers are ready
	Accept time.Duration // from then until the first member got the change
	Commit time.Duration // from then until all have called Commit, or one Complete
	Whole  time.Duration // from the submission to the decision, even while data moves; 0: none
}

const maxStep = protocol.MaxStep

// wire returns the options as the head takes them.
func (o *Options) wire() (protocol.Options, error) {
	if o.Step < 0 || o.Step > maxStep || o.Lookahead < 0 || o.Lookahead > maxStep {
		return protocol.Options{}, fmt.Errorf("step %d, lookahead %d, at most %d allowed", o.Step, o.Lookahead, maxStep)
	}
	if d := o.Deadlines; d.Ready < 0 || d.Accept < 0 || d.Commit < 0 {
		return protocol.Options{}, fmt.Errorf("deadlines %v, %v and %v", d.Ready, d.Accept, d.Commit)
	}
	return protocol.Options{
		Step: uint32(max(1, o.Step)), Lookahead: uint32(max(1, o.Lookahead)),
		Prepare: o.Prepare, Hold: o.Hold,
		ToReady: o.Deadlines.Ready, ToAccept: o.Deadlines.Accept, ToCommit: o.Deadlines.Commit,
	}, nil
}
