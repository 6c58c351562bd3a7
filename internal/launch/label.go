// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"gompi/internal/base/wire"
)

// Role is what a process is in its job at the moment, as far as its name goes.
type Role uint8

// Roles.
const (
	Member  Role = iota // of the main set; until that is said, of the command line's world
	Spawned             // started by a process of the job, and in no main set
	New                 // comes by a change that is not decided, or has not happened
	Leaver              // left the main set by a change; its rank is that which it had
	Outside             // not in the main set
	Spare               // waits for a change to take it
)

// Label is what people know a process by. It changes when its job does.
type Label struct {
	Role       Role
	Serial     uint32
	Rank, Size int // in the main set (Member, Leaver), else in its world
}

// Named is a process by both its names.
type Named struct {
	Proc  wire.ProcID
	Label Label
}

// Name is how messages call a process.
func (l Label) Name() string {
	switch l.Role {
	case Spawned:
		return fmt.Sprintf("spawned process %d (rank %d of %d)", l.Serial, l.Rank, l.Size)
	case New:
		return fmt.Sprintf("new.%d", l.Rank)
	case Leaver:
		return fmt.Sprintf("left.%d", l.Rank)
	case Spare:
		return fmt.Sprintf("spare.%d", l.Serial)
	case Outside:
		return fmt.Sprintf("process %d (rank %d of %d)", l.Serial, l.Rank, l.Size)
	}
	return fmt.Sprintf("rank %d", l.Rank)
}

// Tag is what --tag puts before its lines.
func (l Label) Tag() string {
	switch l.Role {
	case Spawned, Outside:
		return fmt.Sprintf("[p%d.%d] ", l.Serial, l.Rank)
	case New, Leaver, Spare:
		return fmt.Sprintf("[%s] ", l.Name())
	}
	return fmt.Sprintf("[%d] ", l.Rank)
}
