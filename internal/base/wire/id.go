// SPDX-License-Identifier: Apache-2.0

// Package wire holds the data types that cross process boundaries: process ids
// (ProcID), context ids (ContextID), lists of processes (Members), process sets (Set)
// and the message header. It knows no transport, no matching and no operating system.
package wire

import "fmt"

// JobID names a job by 64 random bits, so that jobs of different heads can connect.
type JobID uint64

// ProcID names one process for ever: a job never uses a serial twice. Serial 0 is the
// head (gompirun itself); processes count from 1.
type ProcID struct {
	Job    JobID
	Serial uint32
}

// IsZero reports whether p names no process.
func (p ProcID) IsZero() bool { return p == ProcID{} }

// String returns "job/serial", the job in hexadecimal.
func (p ProcID) String() string { return fmt.Sprintf("%x/%d", uint64(p.Job), p.Serial) }

// Before reports whether p comes before q in the order of jobs and serials.
func (p ProcID) Before(q ProcID) bool {
	return p.Job < q.Job || p.Job == q.Job && p.Serial < q.Serial
}

// Next returns the process id n serials after p.
func (p ProcID) Next(n int) ProcID { return ProcID{p.Job, p.Serial + uint32(n)} }

// ContextID names one communicator. Creator is the process, or the head, that chose
// Serial. The serials of one creator only grow.
type ContextID struct {
	Creator ProcID
	Serial  uint32
}

// Next returns the id with the next serial of the same creator.
func (c ContextID) Next() ContextID { return ContextID{c.Creator, c.Serial + 1} }

// MaxSerial is the largest serial of a communicator.
const MaxSerial = onNode - 1

// onNode is the bit of Serial that marks an id of OnNode.
const onNode = 1 << 31

// OnNode returns the id of the host-local context of a communicator, for traffic among
// its members on one host. All hosts use the same id, because they have no process in
// common.
func (c ContextID) OnNode() ContextID { return ContextID{c.Creator, c.Serial | onNode} }

// Whole returns the id of the communicator, given its id or that of OnNode.
func (c ContextID) Whole() ContextID { return ContextID{c.Creator, c.Serial &^ onNode} }

// String returns "creator:serial".
func (c ContextID) String() string { return fmt.Sprintf("%v:%d", c.Creator, c.Serial) }

// Label returns the name of the communicator for messages to users of one job.
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

// TrafficClass separates the kinds of traffic inside one context.
type TrafficClass uint8

// The traffic classes of a context.
const (
	TrafficP2P        TrafficClass = iota // MPI point-to-point
	TrafficColl                           // schedules of collectives
	TrafficPart                           // partitioned communication
	TrafficRMA                            // remote memory access
	TrafficFault                          // revocation and agreement
	TrafficCommCreate                     // creation of communicators
	TrafficPartInit                       // descriptions of partitioned sends
	TrafficCollLocal                      // schedules within the local group of an intercommunicator
	numTraffic
)

// NumTraffic is the number of traffic classes. A class from another process must be
// below it.
const NumTraffic = uint8(numTraffic)

// Header is what a transport carries in front of a payload: four words that arrive as
// they were sent. Transports do not look into it.
type Header [4]uint64

// HeaderBytes is the size of a Header.
const HeaderBytes = 32

// Contact is what a process needs to know about another one to connect to it.
type Contact struct {
	Proc ProcID
	// Host is the number of the host in the job. Equal numbers mean the same kernel.
	Host uint32
	// SameHost says that Segment and Bell are valid.
	SameHost bool
	// PID is the process id for process_vm_readv and writev. 0 forbids them: then the
	// control plane does not keep the process from being reaped, and the system might
	// use its pid again.
	PID int
	// Segment and Bell are file descriptors of the peer's shared segment and
	// eventfd, or -1. The receiver of a Contact owns them.
	Segment, Bell int
	// Addrs are "ip:port" addresses of the peer's TCP listener, best first.
	Addrs []string
}
