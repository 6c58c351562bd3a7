// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"time"

	"gompi/internal/base/wire"
)

// Values of Entry.Peer that are not ranks.
const (
	AnyPeer = -1 // any source
	NoPeer  = -2 // a collective, or a wait for no particular process
)

// NoTag is the Entry.Tag of a call without a tag and a length.
const NoTag = -2

// firstPersistent is the first Tag of collectives that have no number of their own.
const firstPersistent = 1 << 30

// Bounds on the texts of an Entry. Longer texts are cut.
const (
	MaxOp     = 24
	MaxCaller = 120
	// MaxUnmatched bounds Unmatched where it is sent.
	MaxUnmatched = 200
)

// Entry is one blocking call.
type Entry struct {
	Op       string // "Recv", "Allreduce": at most MaxOp bytes
	Comm     wire.ContextID
	CommSize int
	Rank     int // the caller's rank in the communicator
	// Peer is a rank of the communicator, AnyPeer or NoPeer. PeerProc is the process of that
	// rank, or zero if Peer is not a rank.
	Peer     int
	PeerProc wire.ProcID
	// Holder is the process that keeps the call waiting, if that is not PeerProc. It holds the
	// lock that the call wants. If HolderWaits is set, it waits for the lock, too, and comes
	// first. Zero means that only PeerProc is known.
	Holder      wire.ProcID
	HolderWaits bool
	// Running says that the call does not wait but works. Then Since is not known. A Registry
	// has no such calls: the process reports them when it is asked.
	Running bool
	// Unmatched describes, for a receive or probe, a message that is there and does not match:
	// "a message with tag 98 of 32 bytes from rank 1". The process reports it when it is asked.
	Unmatched string
	// Tag is the tag of a message. For a collective it is the number of the call on its
	// communicator, from 0 on; for one with an Init it is the number of that Init, from
	// firstPersistent on.
	Tag    int
	Bytes  int64
	Since  time.Time
	Caller string // "file.go:123 func": at most MaxCaller bytes, its end is kept
}

// waitsFor returns the process that the call waits for, or zero if there is no particular one.
func (e *Entry) waitsFor() wire.ProcID {
	if e.Holder != (wire.ProcID{}) {
		return e.Holder
	}
	return e.PeerProc
}

// ProcEntries is what Report knows about one process.
type ProcEntries struct {
	Proc       wire.ProcID
	Rank, Size int // in its world
	// Name, if not empty, replaces the rank in texts.
	Name string
	// Note, if not empty, says why a process has no entries: "exited", "not started".
	Note    string
	Entries []Entry
}
