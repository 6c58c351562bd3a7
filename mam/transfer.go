// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"

	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
)

// transfer is what happens to one array in a reconfiguration.
type transfer struct {
	*array
	tag int // its index among the transfers

	// The plan: the layout after the change.
	nextSplit layout.Split
	nextRule  layout.Layout

	// Memory of this process. have is its part before the change, where that is not what the
	// program's variable says: constant data that moves early, and snapshots. target is its
	// part after the change, nil on a leaver, and block the memory of which target is.
	have   []byte
	target []byte
	block  block

	// Progress. received counts bytes that have come from other processes.
	done     bool
	received int64

	// Pre-copied variable data. preCopied says that a method with messages or windows has
	// moved copies of it. preCopiedFrom has the sources, by ranks before the change, whose
	// snapshots were read. earlyBytes are the bytes of received that came in the background,
	// deltaBytes those that came again at the commit.
	preCopied              bool
	preCopiedFrom          map[int]bool
	earlyBytes, deltaBytes int64

	// Deltas at the commit: what was written since the snapshot, by this source and, as far
	// as they were read, by others. nil: nobody knows, and all of it is read.
	ownDelta *dirty.Set
	deltas   map[int]*dirty.Set
}

// memory returns what this process has of the data, and its memory for what it is to have.
func (rc *reconfiguration) memory(x *transfer) (old, target []byte) {
	switch {
	case x.have != nil:
		old = x.have
	case rc.old >= 0:
		old = x.memory()
	}
	return old, x.target
}

// sourceBytes returns how many bytes of the data this source has.
func (rc *reconfiguration) sourceBytes(x *transfer) int64 {
	if x.Replicated {
		return x.Rule.N * x.Bytes
	}
	return x.split.Count(rc.old) * x.Bytes
}

// transferError names the array and the change of an error. It returns nil for nil.
func transferError(x *transfer, rc *reconfiguration, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mam: %q, from %d to %d ranks: %w", x.Name, rc.times.NS, rc.times.ND, err)
}
