// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"time"

	"gompi/internal/wire"
)

const (
	maxURI      = 256
	maxText     = 4 << 10 // reasons, ends of processes
	maxSettings = 1 << 10
	maxSetting  = 64 << 10 // a table of rules is the longest
	// maxAllSettings leaves room in a welcome for everything else.
	maxAllSettings = 1 << 20
	maxArgs        = 1 << 15 // arguments in a command line
	tokenBytes     = 16
)

// message is the body of one kind of frame. put writes what get reads; get
// accepts nothing that put would not write.
type message interface {
	kind() kind
	put(e *enc)
	get(d *dec)
}

// decode reads a whole body into m.
func decode(m message, body []byte) error {
	d := dec{b: body}
	m.get(&d)
	if err := d.end(); err != nil {
		return fmt.Errorf("frame of kind %d: %w", m.kind(), err)
	}
	return nil
}

// clip cuts texts whose length others choose.
func clip(s string, n int) string { return s[:min(len(s), n)] }

type helloMsg struct{ token [tokenBytes]byte }

func (*helloMsg) kind() kind   { return kHello }
func (m *helloMsg) put(e *enc) { e.b = append(e.b, m.token[:]...) }
func (m *helloMsg) get(d *dec) { copy(m.token[:], d.take(tokenBytes)) }

// emptyMsg is the body of kinds that have none.
type emptyMsg struct{ k kind }

func (m *emptyMsg) kind() kind { return m.k }
func (*emptyMsg) put(*enc)     {}
func (*emptyMsg) get(*dec)     {}

// procMsg is the body of kContact and kDead.
type procMsg struct {
	k    kind
	proc wire.ProcID
}

func (m *procMsg) kind() kind { return m.k }
func (m *procMsg) put(e *enc) { e.proc(m.proc) }
func (m *procMsg) get(d *dec) { m.proc = d.proc() }

// membersMsg is the body of kWatch, kDefine and kFence.
type membersMsg struct {
	k       kind
	members wire.Members
}

func (m *membersMsg) kind() kind { return m.k }
func (m *membersMsg) put(e *enc) { e.members(m.members) }
func (m *membersMsg) get(d *dec) { m.members = d.members() }

type announceMsg struct{ addrs []string }

func (*announceMsg) kind() kind   { return kAnnounce }
func (m *announceMsg) put(e *enc) { e.strs(m.addrs) }
func (m *announceMsg) get(d *dec) { m.addrs = d.strs(MaxAddrs, maxAddr) }

const maxAddr = 200

// textMsg is the body of kLookup, kDelete and kBye.
type textMsg struct {
	k    kind
	text string
}

func (m *textMsg) kind() kind { return m.k }
func (m *textMsg) put(e *enc) { e.str(clip(m.text, maxText)) }
func (m *textMsg) get(d *dec) { m.text = d.str(maxText) }

type putMsg struct {
	key string
	val []byte
}

func (*putMsg) kind() kind   { return kPut }
func (m *putMsg) put(e *enc) { e.str(m.key); e.bytes(m.val) }
func (m *putMsg) get(d *dec) { m.key = d.str(MaxKey); m.val = d.bytes(MaxValue) }

type getMsg struct {
	key  string
	wait bool
}

func (*getMsg) kind() kind   { return kGet }
func (m *getMsg) put(e *enc) { e.str(m.key); e.flag(m.wait) }
func (m *getMsg) get(d *dec) { m.key = d.str(MaxKey); m.wait = d.flag() }

type spawnMsg struct {
	n    int
	argv []string // nil: the caller's
}

func (*spawnMsg) kind() kind   { return kSpawn }
func (m *spawnMsg) put(e *enc) { e.i64(int64(m.n)); e.strs(m.argv) }
func (m *spawnMsg) get(d *dec) { m.n = d.num(MaxSpawn); m.argv = d.strs(maxArgs, MaxArgs) }

type abortMsg struct {
	code int
	text string
}

func (*abortMsg) kind() kind   { return kAbort }
func (m *abortMsg) put(e *enc) { e.i64(int64(m.code)); e.str(clip(m.text, maxText)) }
func (m *abortMsg) get(d *dec) { m.code = int(d.i64()); m.text = d.str(maxText) }

type stacksMsg struct {
	id             uint64
	queues, stacks []byte
}

func (*stacksMsg) kind() kind   { return kStacks }
func (m *stacksMsg) put(e *enc) { e.u64(m.id); e.bytes(m.queues); e.bytes(m.stacks) }
func (m *stacksMsg) get(d *dec) {
	m.id, m.queues, m.stacks = d.u64(), d.bytes(MaxReport), d.bytes(MaxReport)
}

// cutMsg tells that its sender cannot talk to proc, and why.
type cutMsg struct {
	proc wire.ProcID
	text string
}

func (*cutMsg) kind() kind   { return kCut }
func (m *cutMsg) put(e *enc) { e.proc(m.proc); e.str(clip(m.text, maxText)) }
func (m *cutMsg) get(d *dec) { m.proc, m.text = d.proc(), d.str(maxText) }

// commonMsg is the body of kCommon and kUncommon.
type commonMsg struct {
	k       kind
	id      wire.ContextID
	members wire.Members
	bytes   int64
}

func (m *commonMsg) kind() kind { return m.k }
func (m *commonMsg) put(e *enc) {
	e.proc(m.id.Creator)
	e.u32(m.id.Serial)
	e.members(m.members)
	e.i64(m.bytes)
}
func (m *commonMsg) get(d *dec) {
	m.id.Creator, m.id.Serial = d.proc(), d.u32()
	m.members = d.members()
	m.bytes = int64(d.num(maxCommon))
}

// maxCommon bounds the common memory of a communicator.
const maxCommon = 1 << 30

// pingMsg is the body of kPing and kPong: the other process, and the number that
// who asks has given the question.
type pingMsg struct {
	k    kind
	proc wire.ProcID
	id   uint64
}

func (m *pingMsg) kind() kind { return m.k }
func (m *pingMsg) put(e *enc) { e.proc(m.proc); e.u64(m.id) }
func (m *pingMsg) get(d *dec) { m.proc, m.id = d.proc(), d.u64() }

type cancelMsg struct{ id uint32 }

func (*cancelMsg) kind() kind   { return kCancel }
func (m *cancelMsg) put(e *enc) { e.u32(m.id) }
func (m *cancelMsg) get(d *dec) { m.id = d.u32() }

// releaseMsg gives one hold of a set back.
type releaseMsg struct{ number uint32 }

func (*releaseMsg) kind() kind   { return kRelease }
func (m *releaseMsg) put(e *enc) { e.u32(m.number) }
func (m *releaseMsg) get(d *dec) { m.number = d.u32() }

// collectMsg asks for stack reports; processes get wait to answer.
type collectMsg struct{ wait time.Duration }

func (*collectMsg) kind() kind   { return kCollect }
func (m *collectMsg) put(e *enc) { e.i64(int64(m.wait)) }
func (m *collectMsg) get(d *dec) { m.wait = time.Duration(d.num(int(maxCollect))) }

const maxCollect = time.Minute

// welcomeMsg is a Welcome without its descriptors.
type welcomeMsg struct{ w Welcome }

func (*welcomeMsg) kind() kind { return kWelcome }

func (m *welcomeMsg) put(e *enc) {
	w := &m.w
	e.proc(w.Self)
	e.b = append(e.b, w.Secret[:]...)
	e.set(w.World)
	e.set(w.Parent)
	e.i64(int64(w.LocalProcs))
	e.i64(int64(w.UsableCPUs))
	e.i64(int64(w.MaxProcs))
	e.flag(w.FaultTolerant)
	e.i64(int64(w.KillGrace))
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

func (m *welcomeMsg) get(d *dec) {
	w := &m.w
	w.Segment, w.Bell = -1, -1
	w.Self = d.proc()
	copy(w.Secret[:], d.take(len(w.Secret)))
	w.World = d.set()
	w.Parent = d.set()
	w.LocalProcs = d.num(maxMembers)
	w.UsableCPUs = d.num(maxMembers)
	w.MaxProcs = d.num(maxMembers)
	w.FaultTolerant = d.flag()
	w.KillGrace = time.Duration(d.i64())
	n := d.count(maxSettings, 8)
	w.Settings = make(map[string]string, n)
	last := ""
	for i := range n {
		k := d.str(maxSetting)
		if i > 0 && k <= last {
			d.fail("setting %q comes after %q", k, last)
		}
		last = k
		w.Settings[k] = d.str(maxSetting)
	}
}

type eventMsg struct{ ev Event }

func (*eventMsg) kind() kind { return kEvent }

func (m *eventMsg) put(e *enc) {
	e.u8(uint8(m.ev.Kind))
	e.proc(m.ev.Proc)
	e.str(clip(m.ev.Text, maxText))
	e.u64(m.ev.ID)
	e.i64(int64(m.ev.LocalProcs))
	e.i64(int64(m.ev.MaxProcs))
}

func (m *eventMsg) get(d *dec) {
	m.ev.Kind = EventKind(d.u8())
	if d.err == nil && (m.ev.Kind < EvDied || m.ev.Kind > EvNone) {
		d.fail("unknown event %d", m.ev.Kind)
	}
	m.ev.Proc = d.proc()
	m.ev.Text = d.str(maxText)
	m.ev.ID = d.u64()
	m.ev.LocalProcs = d.num(maxMembers)
	m.ev.MaxProcs = d.num(maxMembers)
}
