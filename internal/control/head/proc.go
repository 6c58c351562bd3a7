// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// What is known of single processes.

// proc returns the process with this id; nil if there was none, or nothing is
// known of it any more.
func (h *Head) proc(id wire.ProcID) *proc {
	if id.Job == h.cfg.Job {
		return h.procs[id.Serial]
	}
	if s := h.strangers[id]; s != nil {
		return s.proc
	}
	return nil
}

func (h *Head) bySerial(n uint32) *proc { return h.procs[n] }

// past reports whether a process has ended so long ago that nothing is known of
// it but that.
func (h *Head) past(id wire.ProcID) bool {
	if id.Job != h.cfg.Job {
		return h.strangers[id] == nil && h.neighborOf(id.Job) != nil
	}
	return id.Serial > 0 && id.Serial <= h.lastProc && h.procs[id.Serial] == nil
}

// howPast is how such a process has ended. Whether in order is forgotten; who
// asks means to work with it, which fails for certain if it has died.
const howPast = "has ended, and no process set has it any more"

// forget drops the record of a process of which nothing is left, when nobody has
// a set that names it.
func (h *Head) forget(p *proc) {
	switch {
	case !p.freed || p.named > 0:
	case p.via != nil:
		delete(h.strangers, p.id)
	default:
		delete(h.procs, p.id.Serial)
		if p.owner != nil {
			delete(p.owner.owns, p.id.Serial)
		}
	}
}

// all lists the processes of which there are records, by serial.
func (h *Head) all() []*proc {
	list := make([]*proc, 0, len(h.procs))
	for _, serial := range slices.Sorted(maps.Keys(h.procs)) {
		list = append(list, h.procs[serial])
	}
	return list
}

// takesPart reports whether a process is one that has neither died nor left.
func (h *Head) takesPart(id wire.ProcID) bool {
	p := h.proc(id)
	return p != nil && p.state <= protocol.Joined
}

// Snapshot lists the processes of which there are records, by serial.
func (h *Head) Snapshot() []protocol.ProcInfo {
	all := h.all()
	list := make([]protocol.ProcInfo, len(all))
	for i, p := range all {
		list[i] = h.info(p)
	}
	return list
}

func (h *Head) info(p *proc) protocol.ProcInfo {
	in := protocol.ProcInfo{
		Proc: p.id, Rank: p.rank, Size: p.size, World: p.world,
		PID: p.pid, State: p.standing(), How: p.how,
	}
	if main := h.sets[h.main]; main != nil {
		switch r := main.members.Index(p.id); {
		case r >= 0:
			in.Rank, in.Size = r, main.members.Len()
		case p.comes != nil:
			in.Name = fmt.Sprintf("new.%d", p.rank)
		case p.owner != nil && p.world == 0:
			in.Name = fmt.Sprintf("place %d of process %d", p.id.Serial, p.owner.id.Serial)
		case p.parent != 0 && p.world != 0:
			in.Name = fmt.Sprintf("spawned process %d (rank %d of %d)", p.id.Serial, p.rank, p.size)
		case p.parent == 0:
			in.Name = fmt.Sprintf("process %d", p.id.Serial)
		}
	}
	return in
}

// standing is how far p is: who is idle may end as if it had left.
func (p *proc) standing() protocol.ProcState {
	if p.idle && p.state == protocol.Joined {
		return protocol.Finalized
	}
	return p.state
}

// On tells whether this is a process of a host of which there is a record.
func (h *Head) On(host, serial uint32) bool {
	p := h.bySerial(serial)
	return p != nil && p.host == host
}

// State is how far a process is; Exited, too, of one that nothing is known of any
// more.
func (h *Head) State(p wire.ProcID) protocol.ProcState {
	if q := h.proc(p); q != nil {
		return q.standing()
	}
	return protocol.Exited
}
