// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Messages about groups of processes that connect: at a port, by the name of a service, or because
// one has started the other.

// Port opens a port, or closes the port Close. The answer is a ValueBody: the name of the port.
type Port struct{ Close string }

func (*Port) kind() Kind   { return KindPort }
func (m *Port) put(e *enc) { e.str(m.Close, MaxName) }
func (m *Port) get(d *dec) { m.Close = d.str(MaxName) }

// Connect lets a group accept a group that connects to a port, or connect to one that accepts
// there. The answer is a ConnectBody, when both groups are there.
type Connect struct {
	Port    string
	Accepts bool
	Members wire.Members // the group, which has the sender
}

func (*Connect) kind() Kind { return KindConnect }

func (m *Connect) put(e *enc) {
	e.str(m.Port, MaxName)
	e.flag(m.Accepts)
	e.members(m.Members)
}

func (m *Connect) get(d *dec) {
	m.Port = d.str(MaxName)
	m.Accepts = d.flag()
	m.Members = d.members()
}

// ConnectBody is two groups that are connected. All members of each hold the set of the other.
type ConnectBody struct {
	Mine, Theirs wire.Set
	Job          wire.JobID // the job of the set IDs
	IDs          uint32     // the set whose context ids their communicator uses
}

func (*ConnectBody) kind() Kind { return KindReply }

func (m *ConnectBody) put(e *enc) {
	e.set(m.Mine)
	e.set(m.Theirs)
	e.u64(uint64(m.Job))
	e.u32(m.IDs)
}

func (m *ConnectBody) get(d *dec) {
	m.Mine = d.set()
	m.Theirs = d.set()
	m.Job = wire.JobID(d.u64())
	m.IDs = d.u32()
}

// ServiceDo says what a Service does with a name.
type ServiceDo uint8

const (
	Publish ServiceDo = iota + 1
	Unpublish
	LookUp
	AwaitName // LookUp, once the name is published
)

// Service publishes the name of a service for a port, unpublishes it, or asks for its port. The
// answer is a ValueBody: the port.
type Service struct {
	Do   ServiceDo
	Name string
	Port string // Publish: the port; Unpublish: the port it was published for, or "" for any
}

func (*Service) kind() Kind { return KindService }

func (m *Service) put(e *enc) {
	e.u8(uint8(m.Do))
	e.str(m.Name, MaxName)
	e.str(m.Port, MaxName)
}

func (m *Service) get(d *dec) {
	m.Do = ServiceDo(d.u8())
	m.Name = d.str(MaxName)
	m.Port = d.str(MaxName)
	if d.err == nil && (m.Do < Publish || m.Do > AwaitName) {
		d.fail("unknown action %d on a service", m.Do)
	}
}

// Attach connects a group, which has the sender, with processes that its members have started in
// reserved slots. Each of these asks for its side by KindAttachment. The answer is a ConnectBody,
// when all of them have joined.
type Attach struct{ Parents, Procs wire.Members }

func (*Attach) kind() Kind { return KindAttach }

func (m *Attach) put(e *enc) {
	e.members(m.Parents)
	e.members(m.Procs)
}

func (m *Attach) get(d *dec) {
	m.Parents = d.members()
	m.Procs = d.members()
}
