// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"gompi/internal/base/wire"
)

// Role is the part that a process has in its job at the moment. It decides its name.
type Role uint8

// Roles.
const (
	Member  Role = iota // in the main set; until one is announced, started by the command line
	Spawned             // started by a process of the job, and not in the main set
	New                 // newcomer of a change that is not committed
	Leaver              // left the main set by a change; it keeps its last rank
	Outside             // not in the main set
	Spare               // waits until a change takes it
)

// Label is the name of a process for people. It changes when the job does.
type Label struct {
	Role       Role
	Serial     uint32
	Rank, Size int // in the main set (Member, Leaver), else in the world it was started with
}

// Named is a process id with its label.
type Named struct {
	Proc  wire.ProcID
	Label Label
}

// Name returns the name of the process in messages.
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

// Tag returns the prefix of its lines with --tag.
func (l Label) Tag() string {
	switch l.Role {
	case Spawned, Outside:
		return fmt.Sprintf("[p%d.%d] ", l.Serial, l.Rank)
	case New, Leaver, Spare:
		return fmt.Sprintf("[%s] ", l.Name())
	}
	return fmt.Sprintf("[%d] ", l.Rank)
}
