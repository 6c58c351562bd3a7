// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// Limits of what messages hold, in bytes where nothing else is said.
const (
	MaxText     = 4 << 10  // reasons, ends of processes
	MaxSettings = 1 << 10  // settings
	MaxSetting  = 64 << 10 // a table of rules is the longest
	// MaxAllSettings leaves room in a welcome for everything else.
	MaxAllSettings = 1 << 20
	MaxWords       = 1 << 15 // arguments in a command line
	TokenBytes     = 16
)

// Message is the body of one kind of frame; this package has them all. Put writes
// what get reads; get accepts nothing that put would not write.
type Message interface {
	kind() Kind
	put(e *enc)
	get(d *dec)
}

// Encode is the body of m; of one without a body, and of nil, it is nil.
func Encode(m Message) []byte {
	if m == nil {
		return nil
	}
	var e enc
	m.put(&e)
	return e.b
}

// Encoded is the body of a reply that was encoded before.
type Encoded []byte

func (Encoded) kind() Kind   { return KindReply }
func (m Encoded) put(e *enc) { e.b = append(e.b, m...) }
func (Encoded) get(d *dec)   { d.fail("an encoded body is not decoded into itself") }

// KindOf is the kind of frame that m is the body of.
func KindOf(m Message) Kind { return m.kind() }

// Decode reads a whole body into m.
func Decode(m Message, body []byte) error {
	d := dec{b: body}
	m.get(&d)
	if err := d.end(); err != nil {
		return fmt.Errorf("%v: %w", m.kind(), err)
	}
	return nil
}

// Clip cuts texts whose length others choose.
func Clip(s string, n int) string { return s[:min(len(s), n)] }

// Hello shows the token that a process was started with. Version, here and in Tool and
// Greet, is the sender's of gompi.
type Hello struct {
	Version string
	Token   [TokenBytes]byte
}

func (*Hello) kind() Kind   { return KindHello }
func (m *Hello) put(e *enc) { e.str(Clip(m.Version, MaxVersion)); e.b = append(e.b, m.Token[:]...) }
func (m *Hello) get(d *dec) { m.Version = d.str(MaxVersion); copy(m.Token[:], d.take(TokenBytes)) }

// Tool is the first frame of gompictl.
type Tool struct{ Version string }

func (*Tool) kind() Kind   { return KindTool }
func (m *Tool) put(e *enc) { e.str(Clip(m.Version, MaxVersion)) }
func (m *Tool) get(d *dec) { m.Version = d.str(MaxVersion) }

// Empty is the body of kinds that have none.
type Empty struct{ Kind Kind }

func (m *Empty) kind() Kind { return m.Kind }
func (*Empty) put(*enc)     {}
func (*Empty) get(*dec)     {}

// Proc is the body of KindContact and KindDead.
type Proc struct {
	Kind Kind
	Proc wire.ProcID
}

func (m *Proc) kind() Kind { return m.Kind }
func (m *Proc) put(e *enc) { e.proc(m.Proc) }
func (m *Proc) get(d *dec) { m.Proc = d.proc() }

// Members is the body of KindWatch, KindDefine and KindFence.
type Members struct {
	Kind    Kind
	Members wire.Members
}

func (m *Members) kind() Kind { return m.Kind }
func (m *Members) put(e *enc) { e.members(m.Members) }
func (m *Members) get(d *dec) { m.Members = d.members() }

// Announce tells at which addresses a process can be reached.
type Announce struct{ Addrs []string }

func (*Announce) kind() Kind   { return KindAnnounce }
func (m *Announce) put(e *enc) { e.strs(m.Addrs) }
func (m *Announce) get(d *dec) { m.Addrs = d.strs(MaxAddrs, MaxAddr) }

// MaxAddr is the longest address, in bytes.
const MaxAddr = 200

// Text is the body of KindLookup, KindDelete and KindBye.
type Text struct {
	Kind Kind
	Text string
}

func (m *Text) kind() Kind { return m.Kind }
func (m *Text) put(e *enc) { e.str(Clip(m.Text, MaxText)) }
func (m *Text) get(d *dec) { m.Text = d.str(MaxText) }

// Put stores a value.
type Put struct {
	Key string
	Val []byte
}

func (*Put) kind() Kind   { return KindPut }
func (m *Put) put(e *enc) { e.str(m.Key); e.bytes(m.Val) }
func (m *Put) get(d *dec) { m.Key = d.str(MaxKey); m.Val = d.bytes(MaxValue) }

// Get asks for a value, or waits for it.
type Get struct {
	Key  string
	Wait bool
}

func (*Get) kind() Kind   { return KindGet }
func (m *Get) put(e *enc) { e.str(m.Key); e.flag(m.Wait) }
func (m *Get) get(d *dec) { m.Key = d.str(MaxKey); m.Wait = d.flag() }

// Abort asks for the end of the job.
type Abort struct {
	Code int
	Text string
}

func (*Abort) kind() Kind   { return KindAbort }
func (m *Abort) put(e *enc) { e.i64(int64(m.Code)); e.str(Clip(m.Text, MaxText)) }
func (m *Abort) get(d *dec) { m.Code = int(d.i64()); m.Text = d.str(MaxText) }

// Stacks answers an EvStacks.
type Stacks struct {
	ID             uint64
	Calls          []callreg.Entry // what it waits in, and what it is at work in
	Queues, Stacks []byte
}

func (*Stacks) kind() Kind { return KindStacks }
func (m *Stacks) put(e *enc) {
	e.u64(m.ID)
	putCalls(e, m.Calls)
	e.bytes(m.Queues)
	e.bytes(m.Stacks)
}
func (m *Stacks) get(d *dec) {
	m.ID, m.Calls = d.u64(), getCalls(d)
	m.Queues, m.Stacks = d.bytes(MaxReport), d.bytes(MaxReport)
}

// Cut tells that its sender cannot talk to proc, and why.
type Cut struct {
	Proc wire.ProcID
	Text string
}

func (*Cut) kind() Kind   { return KindCut }
func (m *Cut) put(e *enc) { e.proc(m.Proc); e.str(Clip(m.Text, MaxText)) }
func (m *Cut) get(d *dec) { m.Proc, m.Text = d.proc(), d.str(MaxText) }

// Common asks for memory that the members of a communicator have in common. All
// of them say the same, but for Have.
type Common struct {
	ID      wire.ContextID
	Members wire.Members
	Bytes   int64
	First   int64  // so many have pages when the answer comes
	Have    uint64 // the arenas of which the process needs no descriptor, as bits
}

func (*Common) kind() Kind { return KindCommon }
func (m *Common) put(e *enc) {
	e.u64(m.Have)
	e.proc(m.ID.Creator)
	e.u32(m.ID.Serial)
	e.members(m.Members)
	e.i64(m.Bytes)
	e.i64(m.First)
}
func (m *Common) get(d *dec) {
	m.Have = d.u64()
	m.ID.Creator, m.ID.Serial = d.proc(), d.u32()
	m.Members = d.members()
	m.Bytes = int64(d.num(maxCommon))
	m.First = int64(d.num(maxCommon))
}

// CommonKey is the part of an encoded Common that is the same of all who ask.
func CommonKey(body []byte) []byte { return body[8:] }

// Uncommon tells that a process does not touch an Extent any more.
type Uncommon struct {
	Arena uint32
	Off   int64
}

func (*Uncommon) kind() Kind   { return KindUncommon }
func (m *Uncommon) put(e *enc) { e.u32(m.Arena); e.i64(m.Off) }
func (m *Uncommon) get(d *dec) { m.Arena, m.Off = d.u32(), d.i64() }

// maxCommon bounds the common memory of a communicator.
const maxCommon = 1 << 30

// Ping is the body of KindPing and KindPong: the other process, and the number that
// who asks has given the question.
type Ping struct {
	Kind Kind
	Proc wire.ProcID
	ID   uint64
}

func (m *Ping) kind() Kind { return m.Kind }
func (m *Ping) put(e *enc) { e.proc(m.Proc); e.u64(m.ID) }
func (m *Ping) get(d *dec) { m.Proc, m.ID = d.proc(), d.u64() }

// Cancel withdraws the request with this number.
type Cancel struct{ ID uint32 }

func (*Cancel) kind() Kind   { return KindCancel }
func (m *Cancel) put(e *enc) { e.u32(m.ID) }
func (m *Cancel) get(d *dec) { m.ID = d.u32() }

// Release gives one hold of a set back. Had is what its sender has had of the set, if
// it holds it in no other way.
type Release struct {
	Number uint32
	Had    Had
}

// Had is what a member has had of a set whose members count alike: communicators, and
// collective calls on its store. Who looks the set up again goes on from there.
type Had struct {
	Opened uint32
	Calls  uint64
}

func (e *enc) had(h Had) { e.u32(h.Opened); e.u64(h.Calls) }
func (d *dec) had() Had  { return Had{d.u32(), d.u64()} }

func (*Release) kind() Kind   { return KindRelease }
func (m *Release) put(e *enc) { e.u32(m.Number); e.had(m.Had) }
func (m *Release) get(d *dec) { m.Number, m.Had = d.u32(), d.had() }

// Collect asks for stack reports; processes get wait to answer.
type Collect struct{ Wait time.Duration }

func (*Collect) kind() Kind   { return KindCollect }
func (m *Collect) put(e *enc) { e.i64(int64(m.Wait)) }
func (m *Collect) get(d *dec) { m.Wait = time.Duration(d.num(int(MaxCollect))) }

// MaxCollect is how long processes get at most.
const MaxCollect = time.Minute

// A Welcome travels without its descriptors, and without what the agent says: see
// Welcomed.

func (*Welcome) kind() Kind { return KindWelcome }

func (w *Welcome) put(e *enc) {
	e.proc(w.Self)
	e.b = append(e.b, w.Secret[:]...)
	e.set(w.World)
	e.set(w.Parent)
	e.flag(w.Family)
	e.flag(w.Late)
	e.i64(int64(w.LocalProcs))
	e.i64(int64(w.UsableCPUs))
	e.i64(int64(w.MaxProcs))
	e.u32(uint32(w.Hosts))
	e.flag(w.FaultTolerant)
	e.i64(int64(w.KillGrace))
	if e.flag(w.Change != nil); w.Change != nil {
		w.Change.put(e)
	}
	names := make([]string, 0, len(w.Settings))
	for k := range w.Settings {
		names = append(names, k)
	}
	slices.Sort(names)
	e.u32(uint32(len(names)))
	for _, k := range names {
		e.str(k)
		e.str(w.Settings[k])
	}
}

func (w *Welcome) get(d *dec) {
	w.Segment, w.Bell, w.Arena = -1, -1, wire.Extent{File: -1}
	w.Self = d.proc()
	copy(w.Secret[:], d.take(len(w.Secret)))
	w.World = d.set()
	w.Parent = d.set()
	w.Family = d.flag()
	w.Late = d.flag()
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
		k := d.str(MaxSetting)
		if i > 0 && k <= last {
			d.fail("setting %q comes after %q", k, last)
		}
		last = k
		w.Settings[k] = d.str(MaxSetting)
	}
}

// Welcomed is the body of KindWelcome: a Welcome as the head has it, and what the agent
// says beside it.
type Welcomed struct {
	Welcome []byte
	Arena   wire.Extent // of which there is a third descriptor; Total 0: of none
	Given   []Given
}

// maxGiven bounds what is given to one process: its world's memory, and that of what
// this becomes.
const maxGiven = 16

func (*Welcomed) kind() Kind { return KindWelcome }

func (m *Welcomed) put(e *enc) {
	e.bytes(m.Welcome)
	e.u32(m.Arena.Arena)
	e.i64(m.Arena.Total)
	e.u32(uint32(len(m.Given)))
	for i := range m.Given {
		e.given(&m.Given[i])
	}
}

func (m *Welcomed) get(d *dec) {
	m.Welcome = d.bytes(MaxBody)
	m.Arena = wire.Extent{Arena: d.u32(), Total: d.i64(), File: -1}
	n := d.count(maxGiven, 36)
	for range n {
		m.Given = append(m.Given, d.given())
	}
}

func (e *enc) given(g *Given) {
	e.u32(g.Set)
	e.u32(uint32(g.Ranks))
	(&CommonBody{g.X}).put(e)
}

func (d *dec) given() Given {
	g := Given{Set: d.u32(), Ranks: int(d.u32())}
	var b CommonBody
	b.get(d)
	g.X = b.X
	return g
}

func (*Event) kind() Kind { return KindEvent }

func (ev *Event) put(e *enc) {
	e.u8(uint8(ev.Kind))
	e.proc(ev.Proc)
	e.str(Clip(ev.Text, MaxText))
	e.u64(ev.ID)
	e.i64(int64(ev.LocalProcs))
	e.i64(int64(ev.MaxProcs))
}

func (ev *Event) get(d *dec) {
	ev.Kind = EventKind(d.u8())
	if d.err == nil && (ev.Kind < EvDied || ev.Kind > EvJobOver) {
		d.fail("unknown event %d", ev.Kind)
	}
	ev.Proc = d.proc()
	ev.Text = d.str(MaxText)
	ev.ID = d.u64()
	ev.LocalProcs = d.num(MaxMembers)
	ev.MaxProcs = d.num(MaxMembers)
}
