// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/spawn"
)

// Messages about operations that change process sets: docs/design/034-head-records.md.

// Limits of operations.
const (
	MaxInputs = change.MaxInputs
	MaxParts  = 1 << 8    // parts of a Multi
	MaxCOL    = 64 << 10  // bytes for the resource manager
	MaxReason = 1 << 10   // bytes of why a process declines a change
	MaxStep   = 1 << 20   // of Options.Step and Options.Lookahead
	maxOut    = MaxRanges // processes that a request names
)

// Submit asks for an operation. The answer is an OpBody. The head keeps the operation for its
// sender until a KindForget.
type Submit struct {
	Request change.Request
	Parts   []SubmitPart // as many as the request has; one if it is no Multi
	COL     []byte
}

// SubmitPart is what a part has beside its request.
type SubmitPart struct {
	Names []string // preferred names of its outputs, by position
	Argv  []string // of joining processes; nil: that of the sender, or of the job's first program
	Hosts []string // where joining processes start; nil: anywhere
}

func (*Submit) kind() Kind { return KindSubmit }

func (m *Submit) put(e *enc) {
	e.request(&m.Request)
	e.count(len(m.Parts), MaxParts)
	for i := range m.Parts {
		p := &m.Parts[i]
		e.strs(p.Names, MaxNames, MaxName)
		e.strs(p.Argv, MaxWords, MaxArgs)
		e.strs(p.Hosts, MaxNames, MaxName)
	}
	e.bytes(m.COL, MaxCOL)
}

func (m *Submit) get(d *dec) {
	d.request(&m.Request, true)
	if n := d.count(MaxParts, 12); n > 0 {
		m.Parts = make([]SubmitPart, n)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Names = d.strs(MaxNames, MaxName)
		p.Argv = d.strs(MaxWords, MaxArgs)
		p.Hosts = d.strs(MaxNames, MaxName)
	}
	m.COL = d.bytes(MaxCOL)
	n := len(m.Request.Parts)
	if m.Request.Kind != change.Multi {
		n++ // it is one itself, and has none
	}
	if d.err == nil && (n != len(m.Parts) || n == 0 || m.Request.Kind != change.Multi && n != 1) {
		d.fail("%d parts beside a request %v of %d", len(m.Parts), m.Request.Kind, n)
	}
}

// ints appends a list of numbers that fit into four bytes.
func (e *enc) ints(list []int, limit int) {
	e.count(len(list), limit)
	for _, n := range list {
		e.u32(uint32(n))
	}
}

func (d *dec) ints(limit int) []int {
	n := d.count(limit, 4)
	if n == 0 {
		return nil
	}
	list := make([]int, n)
	for i := range list {
		list[i] = int(d.u32())
	}
	return list
}

func (e *enc) request(r *change.Request) {
	e.u8(uint8(r.Kind))
	e.numbers(r.In, MaxInputs)
	e.ints(r.Join, MaxInputs)
	e.num(r.Leave, MaxMembers)
	e.count(len(r.Out), maxOut)
	for _, p := range r.Out {
		e.proc(p)
	}
	for _, n := range []int{r.To, r.Min, r.Max, r.Pref} {
		e.num(n, MaxMembers)
	}
	e.ints(r.Sizes, change.MaxSizes)
	e.u8(uint8(r.Start))
	e.u8(uint8(r.Place))
	e.flag(r.NoQueue)
	e.flag(r.Prepare)
	for _, t := range []time.Duration{r.ToReady, r.ToAccept, r.ToCommit, r.Whole} {
		e.duration(t)
	}
	e.count(len(r.Parts), MaxParts)
	for i := range r.Parts {
		e.request(&r.Parts[i])
	}
}

// leastRequest is the bytes of an empty request.
const leastRequest = 97

// request takes a request, with parts if it may have some.
func (d *dec) request(r *change.Request, parts bool) {
	r.Kind = change.Kind(d.u8())
	r.In = d.numbers(MaxInputs)
	r.Join = d.ints(MaxInputs)
	r.Leave = d.num(MaxMembers)
	if n := d.count(maxOut, 12); n > 0 {
		r.Out = make([]wire.ProcID, n)
	}
	for i := range r.Out {
		r.Out[i] = d.proc()
	}
	for _, n := range []*int{&r.To, &r.Min, &r.Max, &r.Pref} {
		*n = d.num(MaxMembers)
	}
	r.Sizes = d.ints(change.MaxSizes)
	r.Start, r.Place = spawn.Strategy(d.u8()), spawn.Placement(d.u8()) // package change checks them
	r.NoQueue, r.Prepare = d.flag(), d.flag()
	for _, t := range []*time.Duration{&r.ToReady, &r.ToAccept, &r.ToCommit, &r.Whole} {
		*t = d.duration()
	}
	n := d.count(MaxParts, leastRequest)
	if n > 0 && !parts {
		d.fail("a part of %d parts", n)
		return
	}
	if n > 0 {
		r.Parts = make([]change.Request, n)
	}
	for i := range r.Parts {
		d.request(&r.Parts[i], false)
	}
}

// Await asks for an OpBody of an operation when that has reached the state Until, or is over.
type Await struct {
	Op    uint32
	Until change.State
}

func (*Await) kind() Kind { return KindAwait }

func (m *Await) put(e *enc) {
	e.u32(m.Op)
	e.u8(uint8(m.Until))
}

func (m *Await) get(d *dec) {
	m.Op = d.u32()
	m.Until = d.state()
}

func (d *dec) state() change.State {
	s := change.State(d.u8())
	if d.err == nil && !s.Known() {
		d.fail("unknown state %d", s)
	}
	return s
}

// Op is the message of kinds that name one operation by its number:
//
//   - KindWithdraw asks to withdraw it. The answer is an OpBody: how it ended, or that it is
//     Adopting, and so too late to withdraw.
//   - KindBreak of a tool withdraws it even then. The answer is an OpReport of how it ended.
//   - KindForget says that its sender asks for nothing more of it.
//   - KindReleased says that the layer above no longer holds its change back.
//   - KindReadied says that the sender, which joins by it, is ready.
//   - KindProgress says that the sender, which joins by it, is closer to being ready.
//   - KindVoted is a vote for its change, of a process that has no page to vote on.
//   - KindCompleted is the vote of all.
type Op struct {
	Kind Kind
	Op   uint32
}

func (m *Op) kind() Kind { return m.Kind }
func (m *Op) put(e *enc) { e.u32(m.Op) }
func (m *Op) get(d *dec) { m.Op = d.u32() }

// Decline says that its sender, a member that sees a change or a process that joins by it, takes
// no part. The change is rolled back unless it is committed.
type Decline struct {
	Op     uint32
	Reason string // the first MaxReason bytes are sent
}

func (*Decline) kind() Kind { return KindDecline }

func (m *Decline) put(e *enc) {
	e.u32(m.Op)
	e.str(Clip(m.Reason, MaxReason), MaxReason)
}

func (m *Decline) get(d *dec) {
	m.Op = d.u32()
	m.Reason = d.str(MaxReason)
}

// Update replaces what an operation has for the resource manager. The answer is empty.
type Update struct {
	Op  uint32
	COL []byte
}

func (*Update) kind() Kind { return KindUpdate }

func (m *Update) put(e *enc) {
	e.u32(m.Op)
	e.bytes(m.COL, MaxCOL)
}

func (m *Update) get(d *dec) {
	m.Op = d.u32()
	m.COL = d.bytes(MaxCOL)
}

// Why is the reason for which an operation was refused or did not happen.
type Why uint8

// The reasons are those of package change, in its order; the last one was added.
const (
	WhyNot Why = iota // none: it may still happen, or has happened
	WhyMalformed
	WhyNoSet
	WhySetGone
	WhyNoWatch
	WhyUnwatched
	WhyLeaves
	WhyNotMember
	WhyTooMany
	WhyBusy
	WhySuperseded
	WhyDeadline
	WhyDied
	WhyCancelled
	WhyEnding
	WhyReplaced // Set was replaced by Success
	WhyName     // a name is taken, or is no name
	WhyOther
	WhyDeclined
)

// OpBody is the state of an operation.
type OpBody struct {
	Op      uint32 // 0: it was refused at once
	State   change.State
	Why     Why // of an operation that did not happen
	Text    string
	Set     uint32           // WhyReplaced
	Success uint32           // WhyReplaced: the successor of Set
	Outputs []change.Outputs // of each part, once the operation is granted
	Names   []SetName        // of outputs that have a name of their own
	// Iteration is that in which all members adopt the change, + 1; 0: it is not known, or there
	// is none.
	Iteration uint64
	Times     OpTimes
}

// OpTimes is when an operation reached its states, as the head saw it: as a span since Asked, more
// than 0 once the operation has come that far.
type OpTimes struct {
	Asked   time.Time     // by the wall clock
	Granted time.Duration // slots, members and names are there
	Ordered time.Duration // the first start, or the first removal, was ordered
	Ready   time.Duration // all joining processes are there
	Adopted time.Duration // the change was delivered to the first member
	Decided time.Duration // it is committed, or over without
	Gone    time.Duration // the pid of the last leaving process is free
}

func (e *enc) times(t *OpTimes) {
	var at int64
	if !t.Asked.IsZero() {
		at = t.Asked.UnixNano()
	}
	e.i64(at)
	for _, d := range []time.Duration{t.Granted, t.Ordered, t.Ready, t.Adopted, t.Decided, t.Gone} {
		e.duration(d)
	}
}

func (d *dec) times() (t OpTimes) {
	if at := d.i64(); at != 0 {
		t.Asked = time.Unix(0, at)
	}
	for _, p := range []*time.Duration{&t.Granted, &t.Ordered, &t.Ready, &t.Adopted, &t.Decided, &t.Gone} {
		*p = d.duration()
	}
	return t
}

func (*OpBody) kind() Kind { return KindReply }

func (m *OpBody) put(e *enc) {
	e.u32(m.Op)
	e.u8(uint8(m.State))
	e.u8(uint8(m.Why))
	e.text(m.Text)
	e.u32(m.Set)
	e.u32(m.Success)
	e.count(len(m.Outputs), MaxParts)
	for _, o := range m.Outputs {
		e.outputs(o)
	}
	e.setNames(m.Names, MaxParts*MaxNames)
	e.u64(m.Iteration)
	e.times(&m.Times)
}

func (m *OpBody) get(d *dec) {
	if m.any(d); d.err != nil {
		return
	}
	if !m.State.Known() {
		d.fail("unknown state %d", m.State)
	}
	if m.Why > WhyDeclined {
		d.fail("unknown reason %d", m.Why)
	}
}

// any is get without a check of the state and the reason, for a tool, which shows those of a newer
// head by number.
func (m *OpBody) any(d *dec) {
	m.Op = d.u32()
	m.State = change.State(d.u8())
	m.Why = Why(d.u8())
	m.Text = d.text()
	m.Set = d.u32()
	m.Success = d.u32()
	if n := d.count(MaxParts, 12); n > 0 {
		m.Outputs = make([]change.Outputs, n)
	}
	for i := range m.Outputs {
		m.Outputs[i] = d.outputs()
	}
	m.Names = d.setNames(MaxParts * MaxNames)
	m.Iteration = d.u64()
	m.Times = d.times()
}

func (e *enc) outputs(o change.Outputs) {
	e.numbers(o.Joining, MaxInputs)
	e.u32(o.Leaving)
	e.u32(o.Result)
}

func (d *dec) outputs() change.Outputs {
	return change.Outputs{Joining: d.numbers(MaxInputs), Leaving: d.u32(), Result: d.u32()}
}

// QueryPage is a bit in the number of a page on which the members of one set query the changes of
// another.
const QueryPage = 1 << 31

// Subscribe asks for the page of a set, on which the sender learns of its changes from now on. The
// answer is a PageBody, which the agent makes. All members use the same options. With In it asks
// for the page on which the members of Set query the changes of In; then the PageBody has a
// QueryBody.
type Subscribe struct {
	Set     uint32
	In      uint32 // 0: the changes of Set itself
	Options Options
	Have    uint64 // arenas of which the sender needs no descriptor, as bits
}

// Options are what the members of a set want of its changes.
type Options struct {
	Step, Lookahead uint32
	Prepare, Hold   bool
	Stay            bool // the members stay subscribed to the set, beside the results of its changes
	// Deadlines of the phases of a change; 0: those of the job.
	ToReady, ToAccept, ToCommit time.Duration
}

func (*Subscribe) kind() Kind { return KindSubscribe }

func (m *Subscribe) put(e *enc) {
	e.u64(m.Have)
	e.u32(m.Set)
	e.u32(m.In)
	e.options(m.Options)
}

func (m *Subscribe) get(d *dec) {
	m.Have = d.u64()
	m.Set = d.u32()
	m.In = d.u32()
	m.Options = d.options()
}

// QueryBody is what the head adds to a page that was asked for with In.
type QueryBody struct {
	Page      uint32 // its number, which stands for that of a set
	Successor uint32 // not 0: there is no page, since this set has replaced In
}

func (*QueryBody) kind() Kind { return KindReply }

func (m *QueryBody) put(e *enc) {
	e.u32(m.Page)
	e.u32(m.Successor)
}

func (m *QueryBody) get(d *dec) {
	m.Page = d.u32()
	m.Successor = d.u32()
}

func (e *enc) options(o Options) {
	e.u32(o.Step)
	e.u32(o.Lookahead)
	e.flag(o.Prepare)
	e.flag(o.Hold)
	e.flag(o.Stay)
	e.duration(o.ToReady)
	e.duration(o.ToAccept)
	e.duration(o.ToCommit)
}

func (d *dec) options() Options {
	o := Options{
		Step:      d.u32(),
		Lookahead: d.u32(),
		Prepare:   d.flag(),
		Hold:      d.flag(),
		Stay:      d.flag(),
		ToReady:   d.duration(),
		ToAccept:  d.duration(),
		ToCommit:  d.duration(),
	}
	if o.Step > MaxStep || o.Lookahead > MaxStep {
		d.fail("step %d, lookahead %d, at most %d allowed", o.Step, o.Lookahead, MaxStep)
	}
	return o
}

// GetChange asks for the change that the page of a set has delivered to the sender, and for the
// page of its result, if the sender is in that. The answer is a PageBody with a ChangeBody. A
// joining process names the operation instead, and gets the page alone.
type GetChange struct {
	Set, Change uint32
	Op          uint32 // of a joining process; then Set and Change are 0
	Have        uint64 // as in Subscribe
}

func (*GetChange) kind() Kind { return KindGetChange }

func (m *GetChange) put(e *enc) {
	e.u64(m.Have)
	e.u32(m.Set)
	e.u32(m.Change)
	e.u32(m.Op)
}

func (m *GetChange) get(d *dec) {
	m.Have = d.u64()
	m.Set = d.u32()
	m.Change = d.u32()
	m.Op = d.u32()
}

// PageBody is a page of a set. Its frame has two descriptors: that of the arena, and the bell of
// all members that wait for something on the page.
type PageBody struct {
	X       wire.ArenaRange // Bytes 0: there is no page, and there are no descriptors
	Members int             // lines of the page
	Place   int             // the line of the process that asks
	Area    Preallocated
	Rest    []byte // what the head adds
}

func (*PageBody) kind() Kind { return KindReply }

func (m *PageBody) put(e *enc) {
	e.arenaRange(m.X)
	e.u32(uint32(m.Members))
	e.u32(uint32(m.Place))
	e.preallocated(&m.Area)
	e.bytes(m.Rest, MaxBody)
}

func (m *PageBody) get(d *dec) {
	m.X = d.arenaRange()
	m.Members = int(d.u32())
	m.Place = int(d.u32())
	m.Area = d.preallocated()
	m.Rest = d.bytes(MaxBody)
	if d.err == nil && m.X.Bytes != 0 && (m.Members < 1 || m.Members > MaxMembers || m.Place >= m.Members) {
		d.fail("line %d of %d", m.Place, m.Members)
	}
}

// ChangeRole is what a change makes of a process.
type ChangeRole uint8

const (
	RoleJoining ChangeRole = iota + 1
	RoleStaying
	RoleLeaving
	RoleBystander // the process is in none of the sets, and has queried the change
)

// ChangeBody is a change as a process sees it. A set with number 0 stands for no set.
type ChangeBody struct {
	Op      uint32
	Kind    change.Kind
	Role    ChangeRole
	State   change.State // when the head sent this; RolledBack: the process joined too late
	Votes   bool         // the process votes on the page; else by KindVoted
	Inputs  []wire.Set
	Joining []wire.Set
	Leaving wire.Set
	Result  wire.Set
	Options Options // of the subscription
}

// maxChangeSets bounds the sets in each list of a ChangeBody.
const maxChangeSets = MaxInputs

func (*ChangeBody) kind() Kind { return KindReply }

func (m *ChangeBody) put(e *enc) {
	e.u32(m.Op)
	e.u8(uint8(m.Kind))
	e.u8(uint8(m.Role))
	e.u8(uint8(m.State))
	e.flag(m.Votes)
	for _, list := range [][]wire.Set{m.Inputs, m.Joining} {
		e.count(len(list), maxChangeSets)
		for _, s := range list {
			e.set(s)
		}
	}
	e.set(m.Leaving)
	e.set(m.Result)
	e.options(m.Options)
}

func (m *ChangeBody) get(d *dec) {
	m.Op = d.u32()
	m.Kind = change.Kind(d.u8())
	m.Role = ChangeRole(d.u8())
	m.State = d.state()
	m.Votes = d.flag()
	if d.err == nil && (m.Role < RoleJoining || m.Role > RoleBystander) {
		d.fail("unknown role %d", m.Role)
	}
	for _, list := range []*[]wire.Set{&m.Inputs, &m.Joining} {
		n := d.count(maxChangeSets, 16)
		for range n {
			*list = append(*list, d.set())
		}
	}
	m.Leaving = d.set()
	m.Result = d.set()
	m.Options = d.options()
}

// Provide names the set that replaces an input which is the main set, once a change without a
// Result is committed. One process sends it for a change. The answer is empty.
type Provide struct{ Op, Set uint32 }

func (*Provide) kind() Kind { return KindProvide }

func (m *Provide) put(e *enc) {
	e.u32(m.Op)
	e.u32(m.Set)
}

func (m *Provide) get(d *dec) {
	m.Op = d.u32()
	m.Set = d.u32()
}

// Undecided says that its sender makes communicators over a set of an operation that is not
// decided, as far as the sender knows. The head sends an EvCommitted or an EvUndone.
type Undecided struct{ Op, Set uint32 }

func (*Undecided) kind() Kind { return KindUndecided }

func (m *Undecided) put(e *enc) {
	e.u32(m.Op)
	e.u32(m.Set)
}

func (m *Undecided) get(d *dec) {
	m.Op = d.u32()
	m.Set = d.u32()
}

// StatusWord tells the agent that its sender has changed something on a page of which the agent
// has to know: the status word of the change, to accepted or to committed; that the sender is no
// longer behind; or that it waits for the head. The agent reads the page and does not pass the
// message on.
type StatusWord struct{ Set, Change uint32 }

func (*StatusWord) kind() Kind { return KindStatusWord }

func (m *StatusWord) put(e *enc) {
	e.u32(m.Set)
	e.u32(m.Change)
}

func (m *StatusWord) get(d *dec) {
	m.Set = d.u32()
	m.Change = d.u32()
}
