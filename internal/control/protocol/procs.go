// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// What a process says of processes for which it has taken places (SpawnReserve).

// GiveBack tells that the sender needs nothing more of these: of those that are not
// started the places are free, the others run by themselves.
type GiveBack struct{ Members wire.Members }

func (*GiveBack) kind() Kind   { return KindGiveBack }
func (m *GiveBack) put(e *enc) { e.members(m.Members) }
func (m *GiveBack) get(d *dec) { m.Members = d.members() }

// EndBody is the answer to a request of KindEnd, when a process has ended.
type EndBody struct {
	Status int32  // as gompirun would exit with it; -1: nobody knows
	Text   string // how, for people
}

func (*EndBody) kind() Kind   { return KindReply }
func (m *EndBody) put(e *enc) { e.u32(uint32(m.Status)); e.str(Clip(m.Text, MaxText)) }
func (m *EndBody) get(d *dec) {
	if m.Status = int32(d.u32()); m.Status < -1 || m.Status > MaxStatus {
		d.fail("status %d", m.Status)
	}
	m.Text = d.str(MaxText)
}

// MaxStatus is the largest exit status.
const MaxStatus = 255

// Attach connects a group, which has who asks, with processes that members of it have
// started at places of theirs, each of which asks for that itself (KindKin). The answer,
// when all of these have joined, is a MeetBody.
type Attach struct{ Parents, Procs wire.Members }

func (*Attach) kind() Kind   { return KindAttach }
func (m *Attach) put(e *enc) { e.members(m.Parents); e.members(m.Procs) }
func (m *Attach) get(d *dec) { m.Parents, m.Procs = d.members(), d.members() }
