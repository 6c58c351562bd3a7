// SPDX-License-Identifier: Apache-2.0

// Package wire holds the names that cross process boundaries: process ids,
// context ids, process sets and the message header. It knows no transport, no
// matching and no operating system.
package wire

import "fmt"

// JobID is a job's name: 64 random bits, so that two heads may meet.
type JobID uint64

// ProcID names one process for ever: a serial is never used twice in a job.
// Serial 0 is the head (gompirun itself); processes count from 1.
type ProcID struct {
	Job    JobID
	Serial uint32
}

// IsZero reports whether p names nobody.
func (p ProcID) IsZero() bool { return p == ProcID{} }

// String gives "job/serial", the job in hexadecimal.
func (p ProcID) String() string { return fmt.Sprintf("%x/%d", uint64(p.Job), p.Serial) }

// Before orders processes.
func (p ProcID) Before(q ProcID) bool {
	return p.Job < q.Job || p.Job == q.Job && p.Serial < q.Serial
}

// Next is the process id n serials after p.
func (p ProcID) Next(n int) ProcID { return ProcID{p.Job, p.Serial + uint32(n)} }

// ContextID names one communicator. Creator is the process (or head) that
// chose Serial; serials of one creator only grow.
type ContextID struct {
	Creator ProcID
	Serial  uint32
}

// Next is the id with the serial after that of c.
func (c ContextID) Next() ContextID { return ContextID{c.Creator, c.Serial + 1} }

// MaxSerial is the largest serial of a communicator.
const MaxSerial = onNode - 1

// onNode marks the ids of OnNode.
const onNode = 1 << 31

// OnNode is the id under which the members of one host have a context of their
// own: those of several hosts share it, as they have no process in common.
func (c ContextID) OnNode() ContextID { return ContextID{c.Creator, c.Serial | onNode} }

// Whole is the communicator of which c may be OnNode.
func (c ContextID) Whole() ContextID { return ContextID{c.Creator, c.Serial &^ onNode} }

// String gives "creator:serial".
func (c ContextID) String() string { return fmt.Sprintf("%v:%d", c.Creator, c.Serial) }

// Label is what people call the communicator within one job.
func (c ContextID) Label() string {
	set, k := c.Whole().Serial>>setBits, c.Serial%SetSerials
	switch {
	case c.Creator.Serial == 0 && set == 1 && k == 0:
		return "WORLD"
	case c.Creator.Serial == 0:
		return fmt.Sprintf("communicator %d of set %d", k, set)
	case c.Serial == 0:
		return "SELF"
	}
	return fmt.Sprintf("communicator %d:%d", c.Creator.Serial, c.Serial)
}

// Plane separates the kinds of traffic inside one context.
type TrafficClass uint8

// The planes of a context.
const (
	TrafficP2P        TrafficClass = iota // MPI point-to-point
	TrafficColl                           // collective schedules
	TrafficPart                           // partitioned communication
	TrafficRMA                            // remote memory
	TrafficFault                          // revocation and agreement
	TrafficCommCreate                     // creation of communicators
	TrafficPartInit                       // descriptions of partitioned sends
	TrafficCollLocal                      // collective schedules, within the local group of an intercommunicator
	numTraffic
)

// NumPlanes is the number of planes; a plane read from another process must
// be below it.
const NumTraffic = uint8(numTraffic)

// Header is what a transport carries in front of a payload. It is opaque to
// transports: four words that arrive as they were sent.
type Header [4]uint64

// HeaderBytes is the size of a Header.
const HeaderBytes = 32

// Contact is what one process needs to know to reach another.
type Contact struct {
	Proc ProcID
	// Host numbers hosts inside the job. Same number, same kernel.
	Host uint32
	// SameHost: segment and bell are valid.
	SameHost bool
	// PID for process_vm_*; 0 forbids it (the control plane does not hold
	// the process unreaped, so its pid might be reused).
	PID int
	// Segment and Bell are file descriptors of the peer's shared segment and
	// eventfd, or -1. Whoever receives a Contact owns them.
	Segment, Bell int
	// Addrs are "ip:port" addresses of the peer's TCP listener, best first.
	Addrs []string
}
