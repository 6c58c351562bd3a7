// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Port opens a port, or closes the one with this name. The answer is a ValueBody: its
// name.
type Port struct{ Close string }

func (*Port) kind() Kind   { return KindPort }
func (m *Port) put(e *enc) { e.str(m.Close) }
func (m *Port) get(d *dec) { m.Close = d.str(MaxName) }

// Meet has a group accept one that connects to a port, or connect to one that accepts
// there. It is answered when both are there.
type Meet struct {
	Port    string
	Accepts bool
	Members wire.Members // which has who asks
}

func (*Meet) kind() Kind   { return KindMeet }
func (m *Meet) put(e *enc) { e.str(m.Port); e.flag(m.Accepts); e.members(m.Members) }
func (m *Meet) get(d *dec) { m.Port, m.Accepts, m.Members = d.str(MaxName), d.flag(), d.members() }

// MeetBody is the answer: both groups, of which all members of the one have been given
// the other, and the set, of which job, whose ids their communicator uses.
type MeetBody struct {
	Mine, Theirs wire.Set
	Job          wire.JobID
	IDs          uint32
}

func (*MeetBody) kind() Kind   { return KindReply }
func (m *MeetBody) put(e *enc) { e.set(m.Mine); e.set(m.Theirs); e.u64(uint64(m.Job)); e.u32(m.IDs) }
func (m *MeetBody) get(d *dec) {
	m.Mine, m.Theirs, m.Job, m.IDs = d.set(), d.set(), wire.JobID(d.u64()), d.u32()
}

// ServiceDo is what is to become of the name of a service.
type ServiceDo uint8

const (
	Publish ServiceDo = iota + 1
	Unpublish
	LookUp
	AwaitName // LookUp, when somebody has published it
)

// Service publishes the name of a service for a port, takes it back, asks for its port, or
// waits for it. The answer is a ValueBody: the port.
type Service struct {
	Do   ServiceDo
	Name string
	Port string // Publish; Unpublish: what it was published for, "": whatever that was
}

func (*Service) kind() Kind   { return KindService }
func (m *Service) put(e *enc) { e.u8(uint8(m.Do)); e.str(m.Name); e.str(m.Port) }
func (m *Service) get(d *dec) {
	m.Do, m.Name, m.Port = ServiceDo(d.u8()), d.str(MaxName), d.str(MaxName)
	if d.err == nil && (m.Do < Publish || m.Do > AwaitName) {
		d.fail("unknown deed %d on a service", m.Do)
	}
}
