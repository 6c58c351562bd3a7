// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// Processes that share no communicator agree on the id of a new one
// (MPI_Comm_create_from_group). Their first member sends the id to each of the others, on
// TrafficCommCreate of a context whose id is a hash of what all of them know: the members and the
// key. The message repeats members and key, so that a collision of hashes is found.
// Messages that arrive before their receiver asks wait like any others. Those of one
// meeting are received in order.

// MaxHostRuns is the largest number of runs of hosts that member 0 sends.
const MaxHostRuns = 1 << 14

// MeetArgs are the arguments of Meet.
type MeetArgs struct {
	Op      fault.Call
	Members wire.Members // the group, the same on all members; Self is one of them
	Key     []byte       // the purpose, the same on all members
	// Context is the id that member 0 sends. Serial 0 means that it gives up, because of
	// Undone or, if that is 0, for another reason.
	Context wire.ContextID
	Undone  fault.Rollback
	// Block is the place of a block that member 0 offers (Offer); 0 means none. On the
	// other members Meet stores the received place there.
	Block uint32
	// Hosts tells where the members are. Member 0 sends it if Far is set. On the other
	// members Meet stores the received value there, or nothing if member 0 does not know
	// it.
	Hosts wire.Hosts
	Far   bool
	User  context.Context // may be nil
}

var errGaveUp = errors.New("the first process of the group gave up")

// Meet returns the context id that member 0 sends. Member 0 does not wait. All others wait
// for it alone, but not when any member has died: member 0 may have learnt of the death
// before it came here, and will not come. A process that has given up a meeting cannot have
// the same one again.
func (e *Engine) Meet(a *MeetArgs) (wire.ContextID, *fault.Fault) {
	text := meetText(a)
	c, err := e.meetContext(a, text)
	if err != nil {
		return wire.ContextID{}, &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
	}
	if c.Rank == 0 {
		if a.Far {
			text = wire.AppendHosts(text, a.Hosts)
		}
		e.meetTell(c, a.Op, text)
		if a.Context.Serial == 0 {
			return a.Context, gaveUp(a.Undone)
		}
		return a.Context, nil
	}
	return e.meetWait(c, a, text)
}

// gaveUp returns the fault of a meeting that member 0 has given up.
func gaveUp(why fault.Rollback) *fault.Fault {
	if why != 0 {
		return &fault.Fault{Class: fault.RolledBack, Peer: -1, Err: why}
	}
	return &fault.Fault{Class: fault.Aborted, Peer: 0, Err: errGaveUp}
}

func (e *Engine) meetContext(a *MeetArgs, text []byte) (*Context, error) {
	h := fnv.New128a()
	h.Write(text[meetHead:])
	return e.newContext(contextAt(h.Sum(nil)), a.Members, nil)
}

// contextAt reads a context id.
func contextAt(b []byte) wire.ContextID {
	return wire.ContextID{
		Creator: wire.ProcID{Job: wire.JobID(binary.LittleEndian.Uint64(b)), Serial: binary.LittleEndian.Uint32(b[8:])},
		Serial:  binary.LittleEndian.Uint32(b[12:]),
	}
}

// The header of its message.
const (
	meetBlock = 16 // after the context id: the place of a block or, with serial 0, the change that was rolled back
	meetHead  = 20 // the length of both
)

func meetText(a *MeetArgs) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, uint64(a.Context.Creator.Job))
	b = binary.LittleEndian.AppendUint32(b, a.Context.Creator.Serial)
	b = binary.LittleEndian.AppendUint32(b, a.Context.Serial)
	if a.Context.Serial == 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(a.Undone))
	} else {
		b = binary.LittleEndian.AppendUint32(b, a.Block)
	}
	b = wire.AppendMembers(b, a.Members)
	return append(b, a.Key...)
}

// meetTell sends text to all others. The engine finishes the sends.
func (e *Engine) meetTell(c *Context, op fault.Call, text []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.countLost()
	e.hold(c)
	for s := range c.others {
		p, f := c.reach(s)
		if f != nil {
			continue
		}
		a := SendArgs{Op: op, Buf: buffer.Of(text), Dest: s.rank(), Plane: wire.TrafficCommCreate}
		if e.sendNow(c, p, &a) {
			continue
		}
		if r := e.startSend(c, p, &a, nil); r.done {
			e.freeRequest(r)
		} else {
			r.detach = true
		}
	}
}

func (e *Engine) meetWait(c *Context, a *MeetArgs, text []byte) (wire.ContextID, *fault.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.freed.Has(c.ID) {
		return wire.ContextID{}, &fault.Fault{Class: fault.Comm, Peer: -1, Err: errors.New("this process has given up such a communicator before")}
	}
	c.countLost()
	e.hold(c)
	e.meetings = append(e.meetings, c)
	most := len(text)
	if a.Far {
		most += wire.HostsBytes(min(a.Members.Len(), MaxHostRuns))
	}
	got := make([]byte, most)
	r := e.startRecv(c, &RecvArgs{Op: a.Op, Buf: buffer.Of(got), Plane: wire.TrafficCommCreate, User: a.User}, nil)
	if t := c.faults; t != nil && t.failed > 0 {
		e.cancelRecv(r, c.lastDeath())
	}
	f := e.waitOne(r)
	n := r.status.Bytes
	e.freeRequest(r)
	e.meetings = slices.DeleteFunc(e.meetings, func(b *Context) bool { return b == c })
	id := contextAt(got)
	switch {
	case f != nil && (f.Class == fault.Cancelled || f.Class == fault.ProcFailed):
		// The message may be on its way. It must not be taken for the answer to a later
		// call.
		e.freed.Add(c.ID)
		e.dropArrived(c.ID)
	case f != nil:
	case n < int64(len(text)) || !a.Far && n > int64(len(text)) || !bytes.Equal(got[meetHead:len(text)], text[meetHead:]):
		f = &fault.Fault{Class: fault.Mismatch, Got: n, Want: int64(len(text)), Peer: 0}
	case id.Serial == 0:
		f = gaveUp(fault.Rollback(binary.LittleEndian.Uint32(got[meetBlock:])))
	default:
		a.Block = binary.LittleEndian.Uint32(got[meetBlock:])
		if a.Far {
			var err error
			if a.Hosts, _, err = wire.ReadHosts(got[len(text):n], a.Members.Len(), MaxHostRuns); err != nil {
				f = &fault.Fault{Class: fault.Mismatch, Got: n, Want: int64(len(text)), Peer: 0, Err: err}
			}
		}
	}
	return id, f
}
