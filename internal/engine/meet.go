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

// Processes without a communicator in common agree on the id of one by a
// message of their first member to each of the others, on PlaneMeet of a
// context that is named by a hash of what they all know: who meets, and for
// what. The message repeats that, so that a hash is never taken for the thing.
// Messages that come before their receiver asks wait like any others, and
// those of one meeting are received in order.

// MaxHostRuns is how many runs of hosts member 0 tells at most.
const MaxHostRuns = 1 << 14

// MeetArgs are the arguments of Meet.
type MeetArgs struct {
	Op      fault.Call
	Members wire.Members // who meets, the same on all; Self is one of them
	Key     []byte       // for what, the same on all
	// Context is what member 0 tells. Serial 0: it gives up, because of Undone; 0: for another
	// reason.
	Context wire.ContextID
	Undone  fault.Rollback
	// Block is the place of a block that member 0 offers (Offer), 0: none. Meet
	// stores there what it told.
	Block uint32
	// Hosts is where the members are, which member 0 tells if Far: the job has
	// several hosts, which is the same on all. Meet stores there what it told, nothing
	// if it does not know.
	Hosts wire.Hosts
	Far   bool
	User  context.Context // may be nil
}

var errGaveUp = errors.New("the first process of the group gave up")

// Meet returns the context id that member 0 tells. Member 0 does not wait;
// everybody else waits for it alone, but not when any member has died: member 0
// may have heard of that before it came here, and will not come. A meeting that
// one process has given up is over for it: it cannot have the same again.
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

// gaveUp is the fault of a meeting that member 0 has given up.
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

// What stands in front of its message.
const (
	meetBlock = 16 // behind the context id: the place of a block; of serial 0 the change that was rolled back
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

// meetTell sends text to all others and leaves it to the engine.
func (e *Engine) meetTell(c *Context, op fault.Call, text []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.countLost()
	e.hold(c)
	for s := range c.seats {
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
		// The message may be on its way: it must not be taken for the answer
		// to a later call.
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
