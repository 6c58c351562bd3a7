// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// Messages between a process and its agent or the head that concern the process itself, or other
// processes one by one.

// Limits of these messages.
const (
	TokenBytes     = 16
	MaxAddrs       = 64       // addresses that a process announces
	MaxAddr        = 200      // bytes of an address
	MaxReport      = 1 << 20  // bytes of each text of a Stacks
	MaxSettings    = 1 << 10  // settings of a welcome
	MaxSetting     = 64 << 10 // bytes of one; the longest is a table of rules
	MaxAllSettings = 1 << 20  // bytes of all together, which leaves room for the rest of a welcome
)

// Hello is the first frame of a process. It shows the token that the process was started with.
type Hello struct {
	Version string // of gompi
	Token   [TokenBytes]byte
}

func (*Hello) kind() Kind { return KindHello }

func (m *Hello) put(e *enc) {
	e.str(Clip(m.Version, MaxVersion), MaxVersion)
	e.b = append(e.b, m.Token[:]...)
}

func (m *Hello) get(d *dec) {
	m.Version = d.str(MaxVersion)
	copy(m.Token[:], d.take(TokenBytes))
}

// Welcome is what a process learns when it joins. It travels inside a Welcomed, without its
// descriptors and without what the agent adds.
type Welcome struct {
	Self   wire.ProcID
	Secret [32]byte

	// World is mpi://WORLD of this process: the processes that were started together with it, in
	// rank order. Number is that of the set itself.
	World wire.Set
	// Parent is mpi://PARENT: the set of the processes that spawned this one. Number 0 and no
	// members if there is none.
	Parent wire.Set
	// Intercomm: the parents make a communicator with the world, whose context ids come with
	// Parent.
	Intercomm bool
	// MayAttach: a group may attach this process, which asks for that (KindAttachment).
	MayAttach bool
	// Change is the change that this process joins by; nil: it joins by none.
	Change *ChangeBody

	// Segment and Bell are this process's own memfd and eventfd. The caller owns them.
	Segment, Bell int

	// LocalProcs is the number of processes of the job on this host, UsableCPUs the number of
	// processors that they may use together, MaxProcs the GOMAXPROCS to set (0: leave it alone).
	LocalProcs, UsableCPUs, MaxProcs int
	// Hosts is the number of hosts of the job.
	Hosts int
	// FaultTolerant: a death does not end the job.
	FaultTolerant bool
	// KillGrace is the time between SIGTERM and SIGKILL when the job ends.
	KillGrace time.Duration
	// Settings are the settings (GOMPI_*) that were flags of gompirun.
	Settings map[string]string

	// Arena is the file in which the agent preallocates memory, which the caller owns; File is -1
	// if there is none. Preallocated is what the process has of it. The agent adds both.
	Arena        wire.ArenaRange
	Preallocated []Preallocated
}

func (*Welcome) kind() Kind { return KindWelcome }

func (w *Welcome) put(e *enc) {
	e.proc(w.Self)
	e.b = append(e.b, w.Secret[:]...)
	e.set(w.World)
	e.set(w.Parent)
	e.flag(w.Intercomm)
	e.flag(w.MayAttach)
	e.num(w.LocalProcs, MaxMembers)
	e.num(w.UsableCPUs, MaxMembers)
	e.num(w.MaxProcs, MaxMembers)
	e.u32(uint32(w.Hosts))
	e.flag(w.FaultTolerant)
	e.i64(int64(w.KillGrace))
	if e.flag(w.Change != nil); w.Change != nil {
		w.Change.put(e)
	}
	names := make([]string, 0, len(w.Settings))
	for name := range w.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	e.count(len(names), MaxSettings)
	for _, name := range names {
		e.str(name, MaxSetting)
		e.str(w.Settings[name], MaxSetting)
	}
}

func (w *Welcome) get(d *dec) {
	w.Segment, w.Bell, w.Arena = -1, -1, wire.ArenaRange{File: -1}
	w.Self = d.proc()
	copy(w.Secret[:], d.take(len(w.Secret)))
	w.World = d.set()
	w.Parent = d.set()
	w.Intercomm = d.flag()
	w.MayAttach = d.flag()
	w.LocalProcs = d.num(MaxMembers)
	w.UsableCPUs = d.num(MaxMembers)
	w.MaxProcs = d.num(MaxMembers)
	w.Hosts = int(d.u32())
	w.FaultTolerant = d.flag()
	w.KillGrace = time.Duration(d.i64())
	if w.Change = nil; d.flag() {
		w.Change = new(ChangeBody)
		w.Change.get(d)
	}
	n := d.count(MaxSettings, 8)
	w.Settings = make(map[string]string, n)
	last := ""
	for i := range n {
		name := d.str(MaxSetting)
		if i > 0 && name <= last {
			d.fail("setting %q comes after %q", name, last)
		}
		last = name
		w.Settings[name] = d.str(MaxSetting)
	}
}

// Welcomed answers a Hello: an encoded Welcome of the head, and what the agent adds.
type Welcomed struct {
	Welcome      []byte
	Arena        wire.ArenaRange // its file is the third descriptor; Total 0: there is none
	Preallocated []Preallocated
}

// maxPreallocated bounds the preallocated memory of one process: that of its world, and of the
// sets that this becomes.
const maxPreallocated = 16

func (*Welcomed) kind() Kind { return KindWelcome }

func (m *Welcomed) put(e *enc) {
	e.bytes(m.Welcome, MaxBody)
	e.u32(m.Arena.Arena)
	e.i64(m.Arena.Total)
	e.count(len(m.Preallocated), maxPreallocated)
	for i := range m.Preallocated {
		e.preallocated(&m.Preallocated[i])
	}
}

func (m *Welcomed) get(d *dec) {
	m.Welcome = d.bytes(MaxBody)
	m.Arena = wire.ArenaRange{Arena: d.u32(), Total: d.i64(), File: -1}
	n := d.count(maxPreallocated, 36)
	for range n {
		m.Preallocated = append(m.Preallocated, d.preallocated())
	}
}

// Proc is the message of kinds that name one process:
//
//   - KindContact asks how to reach it. The answer is a ContactBody, when that is known.
//   - KindDead says that the sender, which heard of its end, does not use its memory or its pid
//     any more.
//   - KindEnd asks how it ends, of a process that the sender has started. The answer is an EndBody.
type Proc struct {
	Kind Kind
	Proc wire.ProcID
}

func (m *Proc) kind() Kind { return m.Kind }
func (m *Proc) put(e *enc) { e.proc(m.Proc) }
func (m *Proc) get(d *dec) { m.Proc = d.proc() }

// ContactBody answers a KindContact: a wire.Contact without its descriptors, which come with the
// frame.
type ContactBody struct{ C wire.Contact }

func (*ContactBody) kind() Kind { return KindReply }

func (m *ContactBody) put(e *enc) {
	e.proc(m.C.Proc)
	e.u32(m.C.Host)
	e.flag(m.C.SameHost)
	e.num(m.C.PID, maxPID)
	e.strs(m.C.Addrs, MaxAddrs, MaxAddr)
}

func (m *ContactBody) get(d *dec) {
	m.C = wire.Contact{
		Proc:     d.proc(),
		Host:     d.u32(),
		SameHost: d.flag(),
		PID:      d.num(maxPID),
		Segment:  -1,
		Bell:     -1,
	}
	m.C.Addrs = d.strs(MaxAddrs, MaxAddr)
}

// maxPID is more than any pid.
const maxPID = 1 << 30

// Members is the message of kinds that name a list of processes:
//
//   - KindWatch asks for an event at the end of each.
//   - KindDefine makes a set of them. The answer is a SetBody.
//   - KindFence waits until all of them have sent the same. The answer is empty.
type Members struct {
	Kind    Kind
	Members wire.Members
}

func (m *Members) kind() Kind { return m.Kind }
func (m *Members) put(e *enc) { e.members(m.Members) }
func (m *Members) get(d *dec) { m.Members = d.members() }

// Announce tells the addresses at which the sender can be reached.
type Announce struct{ Addrs []string }

func (*Announce) kind() Kind   { return KindAnnounce }
func (m *Announce) put(e *enc) { e.strs(m.Addrs, MaxAddrs, MaxAddr) }
func (m *Announce) get(d *dec) { m.Addrs = d.strs(MaxAddrs, MaxAddr) }

// Text is the message of kinds that are one text:
//
//   - KindLookup asks for the set of a name. The answer is a DescribeBody, and the sender holds
//     the set.
//   - KindDelete removes a key from the store of the job.
//   - KindBye says why the connection ends.
type Text struct {
	Kind Kind
	Text string
}

func (m *Text) kind() Kind { return m.Kind }
func (m *Text) put(e *enc) { e.text(m.Text) }
func (m *Text) get(d *dec) { m.Text = d.text() }

// Abort asks for the end of the job.
type Abort struct {
	Code int // exit status
	Text string
}

func (*Abort) kind() Kind { return KindAbort }

func (m *Abort) put(e *enc) {
	e.i64(int64(m.Code))
	e.text(m.Text)
}

func (m *Abort) get(d *dec) {
	m.Code = int(d.i64())
	m.Text = d.text()
}

// Stacks answers an EvStacks.
type Stacks struct {
	ID     uint64          // of the event
	Calls  []callreg.Entry // blocking calls of the process
	Queues []byte          // the engine's text about unmatched messages
	Stacks []byte          // a dump of all goroutines
}

func (*Stacks) kind() Kind { return KindStacks }

func (m *Stacks) put(e *enc) {
	e.u64(m.ID)
	e.calls(m.Calls)
	e.bytes(m.Queues, MaxReport)
	e.bytes(m.Stacks, MaxReport)
}

func (m *Stacks) get(d *dec) {
	m.ID = d.u64()
	m.Calls = d.calls()
	m.Queues = d.bytes(MaxReport)
	m.Stacks = d.bytes(MaxReport)
}

// Disconnected tells that its sender cannot communicate with a process, and why.
type Disconnected struct {
	Proc wire.ProcID
	Text string
}

func (*Disconnected) kind() Kind { return KindDisconnected }

func (m *Disconnected) put(e *enc) {
	e.proc(m.Proc)
	e.text(m.Text)
}

func (m *Disconnected) get(d *dec) {
	m.Proc = d.proc()
	m.Text = d.text()
}

// Ping is the message of KindPing, which asks whether a process takes part in the job, and of
// KindPong, its answer.
type Ping struct {
	Kind Kind
	Proc wire.ProcID // the other process
	ID   uint64      // the number that the asking process has chosen
}

func (m *Ping) kind() Kind { return m.Kind }

func (m *Ping) put(e *enc) {
	e.proc(m.Proc)
	e.u64(m.ID)
}

func (m *Ping) get(d *dec) {
	m.Proc = d.proc()
	m.ID = d.u64()
}

// Cancel withdraws the request with this number, which may still be answered.
type Cancel struct{ ID uint32 }

func (*Cancel) kind() Kind   { return KindCancel }
func (m *Cancel) put(e *enc) { e.u32(m.ID) }
func (m *Cancel) get(d *dec) { m.ID = d.u32() }
