// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// What the heads of two jobs say to each other, whose processes have met at a port: see
// docs/design/028-process-management.md. A process is of the job that its id names.

// KeyBytes is the length of a Greet's Key.
const KeyBytes = 32

// Greet is the first frame of each end. Port, of who has made the connection, is a port of
// the other job; its name is the proof that somebody there has told it.
type Greet struct {
	Version string
	Job     wire.JobID
	Port    string
	Key     [KeyBytes]byte // of both ends together is the secret of what their processes say
}

func (*Greet) kind() Kind { return KindGreet }
func (m *Greet) put(e *enc) {
	e.str(Clip(m.Version, MaxVersion))
	e.u64(uint64(m.Job))
	e.str(m.Port)
	e.b = append(e.b, m.Key[:]...)
}
func (m *Greet) get(d *dec) {
	m.Version, m.Job, m.Port = d.str(MaxVersion), wire.JobID(d.u64()), d.str(MaxName)
	copy(m.Key[:], d.take(len(m.Key)))
}

// NeighborDo is what a Neighbor says.
type NeighborDo uint8

const (
	// NeighborCall: the group Members connects to Port; ID is its number. NeighborHangUp: it
	// does so no more; it is answered as the Call would have been.
	NeighborCall NeighborDo = iota + 1
	NeighborHangUp
	// NeighborMet answers a Call: Members have accepted it, and the ids of the
	// communicator come with the set Number of their job. From then on each end hears of the
	// ends of the other's group. NeighborRefused: Text says why not.
	NeighborMet
	NeighborRefused
	// NeighborWant: how is Proc reached? NeighborAddrs says it, when that is known.
	NeighborWant
	NeighborAddrs
	// NeighborDied, NeighborLeft: Proc takes part in its job no more; Text says how.
	NeighborDied
	NeighborLeft
	// NeighborPing, NeighborPong, NeighborCut: By tells Proc what the frames of the same
	// name tell in one job.
	NeighborPing
	NeighborPong
	NeighborCut
)

// Neighbor is anything else that one head says to the other. It has all its fields, whatever
// it says.
type Neighbor struct {
	Do      NeighborDo
	ID      uint64
	By      wire.ProcID
	Proc    wire.ProcID
	Members wire.Members
	Number  uint32
	Port    string
	Text    string
	Addrs   []string
}

func (*Neighbor) kind() Kind { return KindNeighbor }

func (m *Neighbor) put(e *enc) {
	e.u8(uint8(m.Do))
	e.u64(m.ID)
	e.proc(m.By)
	e.proc(m.Proc)
	e.members(m.Members)
	e.u32(m.Number)
	e.str(m.Port)
	e.str(Clip(m.Text, MaxText))
	e.strs(m.Addrs)
}

func (m *Neighbor) get(d *dec) {
	if m.Do = NeighborDo(d.u8()); d.err == nil && (m.Do < NeighborCall || m.Do > NeighborCut) {
		d.fail("a neighbor does %d", m.Do)
	}
	m.ID, m.By, m.Proc, m.Members = d.u64(), d.proc(), d.proc(), d.members()
	m.Number, m.Port, m.Text, m.Addrs = d.u32(), d.str(MaxName), d.str(MaxText), d.strs(MaxAddrs, MaxAddr)
}

// Abroad is the body of KindAbroad and KindReachable: another job. Who asks by the first,
// when it is told of a group of that job, is answered with a ValueBody: the secret of what
// processes of the two say to each other. It says the second when those can reach it.
type Abroad struct {
	Kind Kind
	Job  wire.JobID
}

func (m *Abroad) kind() Kind { return m.Kind }
func (m *Abroad) put(e *enc) { e.u64(uint64(m.Job)) }
func (m *Abroad) get(d *dec) { m.Job = wire.JobID(d.u64()) }
