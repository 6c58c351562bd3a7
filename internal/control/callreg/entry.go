// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"time"

	"gompi/internal/base/wire"
)

// Values of Entry.Peer that are no rank.
const (
	AnyPeer = -1 // any source
	NoPeer  = -2 // a collective, or a wait for nobody in particular
)

// NoTag as Entry.Tag: the call has neither tag nor length.
const NoTag = -2

// firstPersistent is the first Tag of a collective that has no number of its own.
const firstPersistent = 1 << 30

// Limits of the texts in an Entry; longer ones are cut.
const (
	MaxOp     = 24
	MaxCaller = 120
	// MaxInstead bounds Instead where it is sent.
	MaxUnmatched = 200
)

// Entry is one blocking call.
type Entry struct {
	Op       string // "Recv", "Allreduce": at most MaxOp bytes
	Comm     wire.ContextID
	CommSize int
	Rank     int // the caller's rank in the communicator
	// Peer is a rank of the communicator, AnyPeer or NoPeer; PeerProc the
	// process behind it, zero if Peer is no rank.
	Peer     int
	PeerProc wire.ProcID
	// Holder is the process that keeps the call waiting where that is not
	// PeerProc: it holds the lock that the call wants, or, if InLine, waits for
	// it, too, and comes first. Zero: PeerProc is all that is known.
	Holder      wire.ProcID
	HolderWaits bool
	// Running: the call waits for nobody, it is at work. Since is not known then.
	// A Book has no such calls: the process says so itself, when it is asked.
	Running bool
	// Instead is, of a receive or probe, what is there and does not match it: "a
	// message with tag 98 of 32 bytes from rank 1". As Running, it is said when asked.
	Unmatched string
	// Tag is a message's. Of a collective it is the number of the call, from 0
	// on, on its communicator, or from firstPersistent on that of an Init.
	Tag    int
	Bytes  int64
	Since  time.Time
	Caller string // "file.go:123 func": at most MaxCaller bytes, its end is kept
}

// waitsFor is the process that the call waits for; zero: none in particular.
func (e *Entry) waitsFor() wire.ProcID {
	if e.Holder != (wire.ProcID{}) {
		return e.Holder
	}
	return e.PeerProc
}

// ProcEntries is what is known of one process, for Report.
type ProcEntries struct {
	Proc       wire.ProcID
	Rank, Size int // in its world
	// Name, if not empty, is what it is called in place of its rank.
	Name string
	// Note replaces the entries of a process that is in no state to have
	// any: "exited", "not started"; else "".
	Note    string
	Entries []Entry
}
