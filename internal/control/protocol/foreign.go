// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Messages between the heads of two jobs whose processes connect at a port, and messages of a
// process about another job: docs/design/028-process-management.md. A process id names the job of
// the process.

// KeyBytes is the length of Greet.Key.
const KeyBytes = 32

// Greet is the first frame of each head. The head that has made the connection names a port of the
// other job: it knows the name only if a process of that job has told it to somebody.
type Greet struct {
	Version string // of gompi
	Job     wire.JobID
	Port    string
	Key     [KeyBytes]byte // both keys together make the secret of connections between processes
}

func (*Greet) kind() Kind { return KindGreet }

func (m *Greet) put(e *enc) {
	e.str(Clip(m.Version, MaxVersion), MaxVersion)
	e.u64(uint64(m.Job))
	e.str(m.Port, MaxName)
	e.b = append(e.b, m.Key[:]...)
}

func (m *Greet) get(d *dec) {
	m.Version = d.str(MaxVersion)
	m.Job = wire.JobID(d.u64())
	m.Port = d.str(MaxName)
	copy(m.Key[:], d.take(len(m.Key)))
}

// JobMessageKind says what a JobMessage tells.
type JobMessageKind uint8

const (
	// JobConnect: the group Members connects to Port; ID is the number of the attempt.
	JobConnect JobMessageKind = iota + 1
	// JobHangUp: the group gives up the attempt ID. The answer is that to its JobConnect.
	JobHangUp
	// JobAccepted: Members have accepted the attempt ID, and the set Number of their job has the
	// context ids of the communicator. From then on each head hears of the ends of the processes
	// of the other's group.
	JobAccepted
	// JobRefused: the attempt ID is refused; Text says why.
	JobRefused
	// JobWantAddrs: asks for the addresses of Proc.
	JobWantAddrs
	// JobAddrs: the addresses of Proc, once they are known.
	JobAddrs
	// JobDied, JobFinalized: Proc takes part in its job no more; Text says how it ended.
	JobDied
	JobFinalized
	// JobPing, JobPong, JobDisconnected: By tells Proc what the message of the same name tells
	// inside a job.
	JobPing
	JobPong
	JobDisconnected
)

// JobMessage is any other message between two heads. It has all its fields, whatever its kind.
type JobMessage struct {
	Kind    JobMessageKind
	ID      uint64
	By      wire.ProcID
	Proc    wire.ProcID
	Members wire.Members
	Number  uint32
	Port    string
	Text    string
	Addrs   []string
}

func (*JobMessage) kind() Kind { return KindJobMessage }

func (m *JobMessage) put(e *enc) {
	e.u8(uint8(m.Kind))
	e.u64(m.ID)
	e.proc(m.By)
	e.proc(m.Proc)
	e.members(m.Members)
	e.u32(m.Number)
	e.str(m.Port, MaxName)
	e.text(m.Text)
	e.strs(m.Addrs, MaxAddrs, MaxAddr)
}

func (m *JobMessage) get(d *dec) {
	m.Kind = JobMessageKind(d.u8())
	if d.err == nil && (m.Kind < JobConnect || m.Kind > JobDisconnected) {
		d.fail("unknown message %d of another job", m.Kind)
	}
	m.ID = d.u64()
	m.By = d.proc()
	m.Proc = d.proc()
	m.Members = d.members()
	m.Number = d.u32()
	m.Port = d.str(MaxName)
	m.Text = d.text()
	m.Addrs = d.strs(MaxAddrs, MaxAddr)
}

// Job is the message of kinds that name another job:
//
//   - KindForeignJob asks for the secret of connections to its processes, after a group of that
//     job has connected with one of the sender. The answer is a ValueBody.
//   - KindReachable tells that its processes can reach the sender.
type Job struct {
	Kind Kind
	Job  wire.JobID
}

func (m *Job) kind() Kind { return m.Kind }
func (m *Job) put(e *enc) { e.u64(uint64(m.Job)) }
func (m *Job) get(d *dec) { m.Job = wire.JobID(d.u64()) }
