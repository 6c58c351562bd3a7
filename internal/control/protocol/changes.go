// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/spawn"
)

// What processes, and tools in their name, say of operations that change process
// sets: docs/design/034-head-records.md.

// Limits of operations.
const (
	MaxName   = 1<<10 - 1 // bytes in the name of a set, with its scheme
	MaxInputs = change.MaxInputs
	MaxParts  = 1 << 8    // of a Multi
	MaxNames  = 1 << 10   // sets that an answer names, and names of a set
	MaxCOL    = 64 << 10  // bytes of what is said for the resource manager
	MaxKeys   = 1 << 10   // keys of one Get of a set
	MaxNews   = 1 << 12   // sets in one answer to News
	maxOut    = MaxRanges // processes that a request names
	MaxStep   = 1 << 20   // of a Follow, and its Lookahead
)

// SetName is a process set and what it is called.
type SetName struct {
	Number uint32
	Name   string
}

func (e *enc) setName(s SetName) { e.u32(s.Number); e.str(s.Name) }

func (d *dec) setName() SetName { return SetName{d.u32(), d.str(MaxName)} }

func (e *enc) setNames(list []SetName) {
	e.u32(uint32(len(list)))
	for _, s := range list {
		e.setName(s)
	}
}

func (d *dec) setNames(limit int) []SetName {
	n := d.count(limit, 8)
	if n == 0 {
		return nil
	}
	list := make([]SetName, n)
	for i := range list {
		list[i] = d.setName()
	}
	return list
}

func (e *enc) numbers(list []uint32) {
	e.u32(uint32(len(list)))
	for _, n := range list {
		e.u32(n)
	}
}

func (d *dec) numbers(limit int) []uint32 {
	n := d.count(limit, 4)
	if n == 0 {
		return nil
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = d.u32()
	}
	return list
}

// duration is a span of time that is not negative.
func (d *dec) duration() time.Duration { return time.Duration(d.num(1<<63 - 1)) }

// Submit asks for an operation; the answer is an OpBody. Its sender is kept posted
// until Forget.
type Submit struct {
	Request change.Request
	Parts   []SubmitPart // as many as the request has, one if it is no Multi
	COL     []byte
}

// SubmitPart is what a part has beside its request.
type SubmitPart struct {
	Names []string // preferred ones of its outputs, by position
	Argv  []string // of newcomers; nil: that of who asks, or of the job's first program
	Hosts []string // where newcomers start; nil: anywhere
}

func (*Submit) kind() Kind { return KindSubmit }

func (m *Submit) put(e *enc) {
	putRequest(e, &m.Request)
	e.u32(uint32(len(m.Parts)))
	for i := range m.Parts {
		p := &m.Parts[i]
		e.strs(p.Names)
		e.strs(p.Argv)
		e.strs(p.Hosts)
	}
	e.bytes(m.COL)
}

func (m *Submit) get(d *dec) {
	getRequest(d, &m.Request, true)
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

func putRequest(e *enc, r *change.Request) {
	e.u8(uint8(r.Kind))
	e.numbers(r.In)
	e.u32(uint32(len(r.Join)))
	for _, n := range r.Join {
		e.u32(uint32(n))
	}
	e.i64(int64(r.Leave))
	e.u32(uint32(len(r.Out)))
	for _, p := range r.Out {
		e.proc(p)
	}
	e.i64(int64(r.To))
	for _, n := range []int{r.Min, r.Max, r.Pref} {
		e.i64(int64(n))
	}
	e.u32(uint32(len(r.Sizes)))
	for _, n := range r.Sizes {
		e.u32(uint32(n))
	}
	e.u8(uint8(r.Start))
	e.u8(uint8(r.Place))
	e.flag(r.NoQueue)
	e.flag(r.Prepare)
	e.i64(int64(r.ToReady))
	e.i64(int64(r.ToAccept))
	e.i64(int64(r.ToCommit))
	e.i64(int64(r.Whole))
	e.u32(uint32(len(r.Parts)))
	for i := range r.Parts {
		putRequest(e, &r.Parts[i])
	}
}

// leastRequest is the bytes of an empty request.
const leastRequest = 97

func getRequest(d *dec, r *change.Request, parts bool) {
	r.Kind = change.Kind(d.u8())
	r.In = d.numbers(MaxInputs)
	if n := d.count(MaxInputs, 4); n > 0 {
		r.Join = make([]int, n)
	}
	for i := range r.Join {
		r.Join[i] = int(d.u32())
	}
	r.Leave = d.num(MaxMembers)
	if n := d.count(maxOut, 12); n > 0 {
		r.Out = make([]wire.ProcID, n)
	}
	for i := range r.Out {
		r.Out[i] = d.proc()
	}
	r.To = d.num(MaxMembers)
	r.Min, r.Max, r.Pref = d.num(MaxMembers), d.num(MaxMembers), d.num(MaxMembers)
	if n := d.count(change.MaxSizes, 4); n > 0 {
		r.Sizes = make([]int, n)
	}
	for i := range r.Sizes {
		r.Sizes[i] = int(d.u32())
	}
	r.Start, r.Place = spawn.Strategy(d.u8()), spawn.Placement(d.u8()) // checked with the request
	r.NoQueue, r.Prepare = d.flag(), d.flag()
	r.ToReady, r.ToAccept, r.ToCommit, r.Whole = d.duration(), d.duration(), d.duration(), d.duration()
	n := d.count(MaxParts, leastRequest)
	if n > 0 && !parts {
		d.fail("a part of %d parts", n)
		return
	}
	if n > 0 {
		r.Parts = make([]change.Request, n)
	}
	for i := range r.Parts {
		getRequest(d, &r.Parts[i], false)
	}
}

// Await asks how far an operation is, when it is as far as Until, or over: OpBody.
type Await struct {
	Op    uint32
	Until change.State
}

func (*Await) kind() Kind   { return KindAwait }
func (m *Await) put(e *enc) { e.u32(m.Op); e.u8(uint8(m.Until)) }
func (m *Await) get(d *dec) { m.Op, m.Until = d.u32(), d.state() }

func (d *dec) state() change.State {
	s := change.State(d.u8())
	if d.err == nil && !s.Known() {
		d.fail("unknown state %d", s)
	}
	return s
}

// Op is the body of what is said of an operation by its number: KindWithdraw, whose
// answer is an OpBody of how it ended, or that it is Adopting and so too late;
// KindReleased, KindReadied, KindProgress, KindVoted, KindCompleted and KindForget, one way;
// KindBreak, of a tool, whose answer is an OpReport of how it ended.
type Op struct {
	Kind Kind
	Op   uint32
}

func (m *Op) kind() Kind { return m.Kind }
func (m *Op) put(e *enc) { e.u32(m.Op) }
func (m *Op) get(d *dec) { m.Op = d.u32() }

// Update gives the resource manager something else to know of an operation.
type Update struct {
	Op  uint32
	COL []byte
}

func (*Update) kind() Kind   { return KindUpdate }
func (m *Update) put(e *enc) { e.u32(m.Op); e.bytes(m.COL) }
func (m *Update) get(d *dec) { m.Op, m.COL = d.u32(), d.bytes(MaxCOL) }

// Why says why an operation was refused or has not happened.
type Why uint8

// The reasons are those of package change, in its order.
const (
	WhyNot Why = iota // it was not, or has
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
	WhyReplaced // Set by Successor
	WhyName     // a name is taken, or none
	WhyOther
)

// OpBody is how far an operation is. A refusal to take it has no number.
type OpBody struct {
	Op      uint32
	State   change.State
	Why     Why // of one that has not happened
	Text    string
	Set     uint32 // WhyReplaced
	Success uint32
	Outputs []change.Outputs // a value for each part, once granted
	Names   []SetName        // of outputs that have one of their own
	// Iteration at which all are handed the change, + 1; 0: not known, or none.
	Iteration uint64
	Times     OpTimes
}

// OpTimes is when an operation came so far, as the head saw it: as spans since it
// was asked for, more than 0 once it is that far.
type OpTimes struct {
	Asked   time.Time     // of the wall's clock
	Granted time.Duration // places, members and names are there
	Ordered time.Duration // the first start, or the news of a removal, was ordered
	Ready   time.Duration // all newcomers are there
	Adopted time.Duration // somebody was handed it
	Decided time.Duration // committed, or over without
	Gone    time.Duration // the last leaver's pid is free
}

func (e *enc) times(t *OpTimes) {
	var at int64
	if !t.Asked.IsZero() {
		at = t.Asked.UnixNano()
	}
	e.i64(at)
	for _, d := range []time.Duration{t.Granted, t.Ordered, t.Ready, t.Adopted, t.Decided, t.Gone} {
		e.i64(int64(d))
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
	e.str(Clip(m.Text, MaxText))
	e.u32(m.Set)
	e.u32(m.Success)
	e.u32(uint32(len(m.Outputs)))
	for _, o := range m.Outputs {
		e.outputs(o)
	}
	e.setNames(m.Names)
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
	if m.Why > WhyOther {
		d.fail("unknown reason %d", m.Why)
	}
}

// any is get of what a head of another version may say, for who only shows it.
func (m *OpBody) any(d *dec) {
	m.Op, m.State, m.Why = d.u32(), change.State(d.u8()), Why(d.u8())
	m.Text = d.str(MaxText)
	m.Set, m.Success = d.u32(), d.u32()
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
	e.numbers(o.Joining)
	e.u32(o.Leaving)
	e.u32(o.Result)
}

func (d *dec) outputs() change.Outputs {
	return change.Outputs{Joining: d.numbers(MaxInputs), Leaving: d.u32(), Result: d.u32()}
}

// AskPage is in the number of a page on which the members of one set ask for the
// changes of another.
const AskPage = 1 << 31

// Follow asks for the page of a set, whose changes its sender watches from now on:
// FollowBody, made by the agent. All members say the same. With In it asks for the
// page on which the members of Set ask for the changes of In: FollowBody with an
// AskBody.
type Follow struct {
	Set     uint32
	In      uint32 // 0: Set is watched
	Options Options
	Have    uint64 // the arenas of which the process needs no descriptor, as bits
}

// Options are what the members of a set want of its changes.
type Options struct {
	Step, Lookahead             uint32
	Prepare, Hold               bool
	Stay                        bool          // they follow the set on, beside the Result of a change of it
	ToReady, ToAccept, ToCommit time.Duration // 0: as the job has it
}

func (*Follow) kind() Kind { return KindFollow }

func (m *Follow) put(e *enc) {
	e.u64(m.Have)
	e.u32(m.Set)
	e.u32(m.In)
	e.options(m.Options)
}

func (m *Follow) get(d *dec) {
	m.Have = d.u64()
	m.Set, m.In = d.u32(), d.u32()
	m.Options = d.options()
}

// AskBody is what the head says beside the page that was asked for with In.
type AskBody struct {
	Page      uint32 // its number, which stands for that of a set
	Successor uint32 // there is none: In was replaced by this
}

func (*AskBody) kind() Kind   { return KindReply }
func (m *AskBody) put(e *enc) { e.u32(m.Page); e.u32(m.Successor) }
func (m *AskBody) get(d *dec) { m.Page, m.Successor = d.u32(), d.u32() }

func (e *enc) options(o Options) {
	e.u32(o.Step)
	e.u32(o.Lookahead)
	e.flag(o.Prepare)
	e.flag(o.Hold)
	e.flag(o.Stay)
	e.i64(int64(o.ToReady))
	e.i64(int64(o.ToAccept))
	e.i64(int64(o.ToCommit))
}

func (d *dec) options() Options {
	o := Options{d.u32(), d.u32(), d.flag(), d.flag(), d.flag(), d.duration(), d.duration(), d.duration()}
	if o.Step > MaxStep || o.Lookahead > MaxStep {
		d.fail("step %d, lookahead %d, at most %d allowed", o.Step, o.Lookahead, MaxStep)
	}
	return o
}

// Handed asks for the change that its sender was handed by the page of a set, and
// for the page of its Result, if there is one that has the sender: FollowBody with a
// ChangeBody. A newcomer names its operation, and gets the page alone.
type Handed struct {
	Set, Change uint32
	Op          uint32 // of a newcomer; then the others are 0
	Have        uint64
}

func (*Handed) kind() Kind   { return KindHanded }
func (m *Handed) put(e *enc) { e.u64(m.Have); e.u32(m.Set); e.u32(m.Change); e.u32(m.Op) }
func (m *Handed) get(d *dec) { m.Have, m.Set, m.Change, m.Op = d.u64(), d.u32(), d.u32(), d.u32() }

// FollowBody is a page of a set. Its frame has two descriptors: the arena's, and the
// bell of all that wait for something on the page.
type FollowBody struct {
	X       wire.Extent // Bytes 0: there is no page, nor descriptors
	Members int         // lines on it
	Place   int         // the line of who asks
	Board   Given       // of the set
	Rest    []byte      // what the head says beside it
}

func (*FollowBody) kind() Kind { return KindReply }

func (m *FollowBody) put(e *enc) {
	(&CommonBody{m.X}).put(e)
	e.u32(uint32(m.Members))
	e.u32(uint32(m.Place))
	e.given(&m.Board)
	e.bytes(m.Rest)
}

func (m *FollowBody) get(d *dec) {
	var b CommonBody
	b.get(d)
	m.X = b.X
	m.Members, m.Place = int(d.u32()), int(d.u32())
	m.Board = d.given()
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
	RoleBeside // it is in none of the sets, and has asked
)

// ChangeBody is a change as those see it whom it concerns. Set fields without a
// number stand for none.
type ChangeBody struct {
	Op      uint32
	Kind    change.Kind
	Role    ChangeRole
	State   change.State // how far it was when this was said; RolledBack: a newcomer came too late
	Votes   bool         // on the page; else by KindVoted
	Inputs  []wire.Set
	Joining []wire.Set
	Leaving wire.Set
	Result  wire.Set
	Options Options // of the watch
}

// maxChangeSets bounds the sets that are named whole.
const maxChangeSets = MaxInputs

func (*ChangeBody) kind() Kind { return KindReply }

func (m *ChangeBody) put(e *enc) {
	e.u32(m.Op)
	e.u8(uint8(m.Kind))
	e.u8(uint8(m.Role))
	e.u8(uint8(m.State))
	e.flag(m.Votes)
	for _, list := range [][]wire.Set{m.Inputs, m.Joining} {
		e.u32(uint32(len(list)))
		for _, s := range list {
			e.set(s)
		}
	}
	e.set(m.Leaving)
	e.set(m.Result)
	e.options(m.Options)
}

func (m *ChangeBody) get(d *dec) {
	m.Op, m.Kind, m.Role, m.State, m.Votes = d.u32(), change.Kind(d.u8()), ChangeRole(d.u8()), d.state(), d.flag()
	if d.err == nil && (m.Role < RoleJoining || m.Role > RoleBeside) {
		d.fail("unknown role %d", m.Role)
	}
	for _, list := range []*[]wire.Set{&m.Inputs, &m.Joining} {
		n := d.count(maxChangeSets, 16)
		for range n {
			*list = append(*list, d.set())
		}
	}
	m.Leaving, m.Result = d.set(), d.set()
	m.Options = d.options()
}

// Provide names the set that a change without a Result leaves in the place of an input
// that is the main set, once it is committed. One process says it of a change.
type Provide struct{ Op, Set uint32 }

func (*Provide) kind() Kind   { return KindProvide }
func (m *Provide) put(e *enc) { e.u32(m.Op); e.u32(m.Set) }
func (m *Provide) get(d *dec) { m.Op, m.Set = d.u32(), d.u32() }

// Undecided says that its sender makes communicators over a set of an operation that
// is not decided, as far as it knows, and so is to be told what comes of that.
type Undecided struct{ Op, Set uint32 }

func (*Undecided) kind() Kind   { return KindUndecided }
func (m *Undecided) put(e *enc) { e.u32(m.Op); e.u32(m.Set) }
func (m *Undecided) get(d *dec) { m.Op, m.Set = d.u32(), d.u32() }

// Word tells the agent that its sender has swapped the word of a change: to accepted,
// or to committed. One way, and not passed on: the agent reads the page.
type Word struct{ Set, Change uint32 }

func (*Word) kind() Kind   { return KindWord }
func (m *Word) put(e *enc) { e.u32(m.Set); e.u32(m.Change) }
func (m *Word) get(d *dec) { m.Set, m.Change = d.u32(), d.u32() }
