// SPDX-License-Identifier: Apache-2.0

package launch

import "fmt"

// Label is what people know a process by.
type Label struct {
	First      bool // started by the command line; else by a process of the job
	Serial     uint32
	Rank, Size int // in its world
}

// Name is how messages call a process.
func (l Label) Name() string {
	if l.First {
		return fmt.Sprintf("rank %d", l.Rank)
	}
	return fmt.Sprintf("spawned process %d (rank %d of %d)", l.Serial, l.Rank, l.Size)
}

// Tag is what --tag puts before its lines.
func (l Label) Tag() string {
	if l.First {
		return fmt.Sprintf("[%d] ", l.Rank)
	}
	return fmt.Sprintf("[p%d.%d] ", l.Serial, l.Rank)
}

// OutputFile is the name under --output DIR; stream is stdout or stderr.
func (l Label) OutputFile(stream string) string {
	if l.First {
		return fmt.Sprintf("rank.%d.%s", l.Rank, stream)
	}
	return fmt.Sprintf("proc.%d.%s", l.Serial, stream)
}
