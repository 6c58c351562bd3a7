// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// This file is the table of the control protocol. One row describes one kind of message: its
// name, who may send it and to whom, whether it is a request, how long its body may be, and
// the constructor of its Go type. All that depends on the kind follows from the row:
//
//   - ParseHead and AppendFrame bound a frame by the limit of its kind.
//   - Frame.Check refuses a kind that the sender may not send, and a request number that is
//     missing or out of place.
//   - Frame.Message decodes a body into a new message of the right type.
//   - String names the kind in errors ("lookup: 5000 bytes, at most 4096 allowed").
//   - Tests require a sample, a fuzz seed and a handler for each row.
//
// To add a message:
//
//  1. Add a constant at the end of its group, and the row.
//  2. Write the type with its methods kind, put and get, in the file of its subject.
//  3. Write the handler and add it to the receiver's table of handlers: head/handlers.go,
//     agent/handlers.go or server/tool.go. A link has link.On instead.
//  4. For a request of a process, say in client/cancellation.go what becomes of one whose
//     caller no longer waits.
//  5. Add a sample to control/controltest.
//
// The constants are on the wire. They change only together with wire.Protocol; those of the
// first and the last frame of a connection never change (opening.go).

// Kind is the type of a frame.
type Kind uint8

// From a new connection, a process or a tool.
const (
	KindHello Kind = iota + 1
	KindTool
	KindContact
	KindAnnounce
	KindWatch
	KindLookup
	KindDefine
	KindPut
	KindGet
	KindFence
	KindSpawn
	KindAbort
	KindFinalize
	KindDead
	KindStacks
	KindCancel
	KindList
	KindCollect
	KindDisconnected
	KindPing
	KindPong
	KindRelease
	KindDelete
	KindCommon
	KindLeaveCommon
	KindSubmit
	KindAwait
	KindWithdraw
	KindUpdate
	KindSubscribe
	KindGetChange
	KindDescribe
	KindNews
	KindAlgebra
	KindSetPut
	KindSetGet
	KindUnsubscribe
	KindMain
	KindReleased
	KindReadied
	KindVoted
	KindCompleted
	KindForget
	KindStatusWord
	KindResize
	KindOps
	KindSets
	KindIdle
	KindBusy
	KindNextEvent
	KindUndecided
	KindProvide
	KindPort
	KindConnect
	KindService
	KindSignal
	KindGiveBack
	KindEnd
	KindAttach
	KindAttachment
	KindUsed
	KindForeignJob
	KindReachable
	KindForsake
	KindMemory
	KindLeaveMemory
	KindProgress
	KindBreak
	KindDecline
)

// From an agent to a process or a tool.
const (
	KindWelcome Kind = iota + 96
	KindReply
	KindPart
	KindEvent
	KindBye
)

// Between the head and the agent of another host.
const (
	KindCommand Kind = iota + 128
	KindReport
	KindLaunchCommand
	KindLaunchEvent
)

// Between the heads of two jobs.
const (
	KindGreet Kind = iota + 192
	KindJobMessage
)

// Party is who sends a frame, or who handles it. A row may name several.
type Party uint8

const (
	Caller      Party = 1 << iota // a new connection, which has not said who it is
	Process                       // a process that has joined the job
	Gompictl                      // a tool
	Agent                         // the agent of a host
	Head                          // the head of the job
	ForeignHead                   // the head of another job
)

// partyNames has a name for each bit of a Party, in order.
var partyNames = [...]string{"a new connection", "a process", "a tool", "an agent", "the head", "the head of another job"}

// String names the parties, for errors.
func (p Party) String() string {
	var text string
	for i, name := range partyNames {
		switch {
		case p>>i&1 == 0:
		case text == "":
			text = name
		default:
			text += " or " + name
		}
	}
	return text
}

// form says how a kind uses the request number of its frame.
type form uint8

const (
	oneWay  form = iota // the number is 0
	request             // the number is not 0; the answer has the same
	either              // a request if the number is not 0
	answer              // the number is that of the request
)

// row is what the protocol says of one kind.
type row struct {
	name     string
	from, to Party
	form     form
	limit    int                // longest body in bytes; 0: the kind does not exist
	blank    func(Kind) Message // makes an empty message
}

// MaxBody is the longest body of any frame, in bytes.
const MaxBody = 4 << 20

// Limits that several rows share, in bytes.
const (
	numbersLimit    = 32               // a few numbers
	textLimit       = 16 << 10         // a text, or a list of addresses
	openingLimit    = MaxVersion + 64  // a version and a few numbers
	nameLimit       = MaxName + 64     // a name and a few numbers
	rangesLimit     = 24*MaxRanges + 4 // a list of processes
	namesLimit      = MaxNames*(MaxName+16) + 64
	keyValueLimit   = MaxKey + MaxValue + 64
	reportLimit     = 2*MaxReport + maxCalls*maxCall + 64
	jobMessageLimit = MaxName + MaxText + MaxAddrs*(MaxAddr+4) + 24*MaxRanges + 128
)

// rows is the table, by kind. A kind without a row does not exist.
var rows = [256]row{
	// First frames of a connection.
	KindHello: {"hello", Caller, Agent, oneWay, openingLimit, single[Hello]},
	KindTool:  {"tool", Caller, Agent, oneWay, openingLimit, single[Tool]},
	KindGreet: {"greeting", Caller | ForeignHead, Head, oneWay, MaxName + openingLimit, single[Greet]},

	// Processes: how they are reached, how they end, what they report.
	KindContact:      {"contact", Process, Head, request, numbersLimit, ofProc},
	KindAnnounce:     {"announce", Process, Head, oneWay, textLimit, single[Announce]},
	KindWatch:        {"watch", Process, Head, oneWay, rangesLimit, ofMembers},
	KindDead:         {"dead", Process, Agent, oneWay, numbersLimit, ofProc},
	KindDisconnected: {"disconnected", Process, Head, oneWay, textLimit, single[Disconnected]},
	KindPing:         {"ping", Process, Head, oneWay, numbersLimit, ofPing},
	KindPong:         {"pong", Process, Head, oneWay, numbersLimit, ofPing},
	KindStacks:       {"stacks", Process, Head, oneWay, reportLimit, single[Stacks]},
	KindIdle:         {"idle", Process, Head, oneWay, numbersLimit, ofNothing},
	KindBusy:         {"busy", Process, Head, oneWay, numbersLimit, ofNothing},
	KindAbort:        {"abort", Process, Head, request, textLimit, single[Abort]},
	KindFinalize:     {"finalize", Process, Head, either, numbersLimit, ofNothing},
	KindCancel:       {"cancel", Process, Head, oneWay, numbersLimit, single[Cancel]},

	// The store of the job, and fences.
	KindPut:    {"put", Process, Head, request, keyValueLimit, single[Put]},
	KindGet:    {"get", Process, Head, request, keyValueLimit, single[Get]},
	KindDelete: {"delete", Process, Head, request, textLimit, ofText},
	KindFence:  {"fence", Process, Head, request, rangesLimit, ofMembers},

	// Process sets and their stores.
	KindLookup:    {"lookup", Process, Head, request, textLimit, ofText},
	KindDefine:    {"define", Process, Head, request, rangesLimit, ofMembers},
	KindRelease:   {"release", Process, Head, oneWay, numbersLimit, single[Release]},
	KindForsake:   {"forsake", Process, Head, oneWay, numbersLimit, ofSet},
	KindDescribe:  {"describe", Process, Head, request, numbersLimit, ofSet},
	KindMain:      {"main", Process, Head, request, numbersLimit, ofSet},
	KindNews:      {"news", Process, Head, request, numbersLimit, single[News]},
	KindAlgebra:   {"algebra", Process, Head, request, namesLimit, single[Algebra]},
	KindSetPut:    {"set-put", Process, Head, request, keyValueLimit, single[SetPut]},
	KindSetGet:    {"set-get", Process, Head, request, namesLimit, single[SetGet]},
	KindNextEvent: {"next-event", Process, Head, request, namesLimit, single[NextEvent]},

	// Operations that change process sets.
	KindSubmit:      {"submit", Process, Head, request, MaxBody, single[Submit]},
	KindAwait:       {"await", Process, Head, request, numbersLimit, single[Await]},
	KindWithdraw:    {"withdraw", Process, Head, request, numbersLimit, ofOp},
	KindUpdate:      {"update", Process, Head, request, MaxCOL + 64, single[Update]},
	KindForget:      {"forget", Process, Head, oneWay, numbersLimit, ofOp},
	KindSubscribe:   {"subscribe", Process, Head, request, 64, single[Subscribe]},
	KindUnsubscribe: {"unsubscribe", Process, Head, oneWay, numbersLimit, ofSet},
	KindGetChange:   {"get-change", Process, Head, request, numbersLimit, single[GetChange]},
	KindReleased:    {"released", Process, Head, oneWay, numbersLimit, ofOp},
	KindReadied:     {"readied", Process, Head, oneWay, numbersLimit, ofOp},
	KindProgress:    {"progress", Process, Head, oneWay, numbersLimit, ofOp},
	KindVoted:       {"voted", Process, Head, oneWay, numbersLimit, ofOp},
	KindCompleted:   {"completed", Process, Head, oneWay, numbersLimit, ofOp},
	KindDecline:     {"decline", Process, Head, oneWay, MaxReason + 64, single[Decline]},
	KindStatusWord:  {"status-word", Process, Agent, oneWay, numbersLimit, single[StatusWord]},
	KindUndecided:   {"undecided", Process, Head, oneWay, numbersLimit, single[Undecided]},
	KindProvide:     {"provide", Process, Head, request, numbersLimit, single[Provide]},

	// Processes that start others, and groups that connect.
	KindSpawn:      {"spawn", Process, Head, request, MaxBody, single[Spawn]},
	KindSignal:     {"signal", Process, Head, request, rangesLimit + 4, single[Signal]},
	KindGiveBack:   {"give-back", Process, Head, oneWay, rangesLimit + 4, single[GiveBack]},
	KindEnd:        {"end", Process, Head, request, numbersLimit, ofProc},
	KindAttach:     {"attach", Process, Head, request, 48*MaxRanges + 8, single[Attach]},
	KindAttachment: {"attachment", Process, Head, request, numbersLimit, ofNothing},
	KindPort:       {"port", Process, Head, request, MaxName + openingLimit, single[Port]},
	KindConnect:    {"connect", Process, Head, request, nameLimit + 24*MaxRanges, single[Connect]},
	KindService:    {"service", Process, Head, request, MaxName + nameLimit, single[Service]},
	KindForeignJob: {"foreign-job", Process, Head, request, numbersLimit, ofJob},
	KindReachable:  {"reachable", Process, Head, oneWay, numbersLimit, ofJob},

	// Memory of a host.
	KindCommon:      {"common", Process, Agent, request, rangesLimit + 64, single[Common]},
	KindLeaveCommon: {"leave-common", Process, Agent, oneWay, numbersLimit, single[LeaveCommon]},
	KindMemory:      {"memory", Process, Agent, request, MaxMemoryName + 64, single[Memory]},
	KindLeaveMemory: {"leave-memory", Process, Agent, oneWay, MaxMemoryName + 64, single[LeaveMemory]},

	// Requests of tools. The answer is any number of parts, and then a reply.
	KindList:    {"list", Gompictl, Head, request, numbersLimit, ofNothing},
	KindUsed:    {"used", Gompictl, Head, request, numbersLimit, ofNothing},
	KindCollect: {"collect", Gompictl, Head, request, numbersLimit, single[Collect]},
	KindOps:     {"ops", Gompictl, Head, request, numbersLimit, ofNothing},
	KindSets:    {"sets", Gompictl, Head, request, numbersLimit, ofNothing},
	KindResize:  {"resize", Gompictl, Head, request, nameLimit, single[Resize]},
	KindBreak:   {"break", Gompictl, Head, request, numbersLimit, ofOp},

	// From an agent to its processes and tools. Bye is the last frame of a connection.
	KindWelcome: {"welcome", Agent, Process, oneWay, MaxBody, single[Welcomed]},
	KindReply:   {"reply", Agent, Process | Gompictl, answer, MaxBody, single[Reply]},
	KindPart:    {"part", Agent, Gompictl, answer, MaxBody, nil},
	KindEvent:   {"event", Agent, Process, oneWay, MaxBody, single[Event]},
	KindBye:     {"bye", Agent | ForeignHead, Caller | Process | Gompictl, oneWay, textLimit, ofText},

	// Between the head and the agents of other hosts, and between their launchers.
	KindCommand:       {"command", Head, Agent, oneWay, MaxBody + 64, single[Command]},
	KindReport:        {"report", Agent, Head, oneWay, MaxBody + 64, single[Report]},
	KindLaunchCommand: {"launch-command", Head, Agent, oneWay, MaxBody + 64, single[LaunchCommand]},
	KindLaunchEvent:   {"launch-event", Agent, Head, oneWay, MaxChunk + MaxText + 64, single[LaunchEvent]},

	// Between the heads of two jobs.
	KindJobMessage: {"job-message", ForeignHead, Head, oneWay, jobMessageLimit, single[JobMessage]},
}

// single makes a message of a type that has one kind.
func single[T any, M interface {
	*T
	Message
}](Kind) Message {
	return M(new(T))
}

// The following make messages of types that several kinds share.

func ofNothing(k Kind) Message { return &Empty{Kind: k} }
func ofProc(k Kind) Message    { return &Proc{Kind: k} }
func ofMembers(k Kind) Message { return &Members{Kind: k} }
func ofText(k Kind) Message    { return &Text{Kind: k} }
func ofPing(k Kind) Message    { return &Ping{Kind: k} }
func ofSet(k Kind) Message     { return &Set{Kind: k} }
func ofOp(k Kind) Message      { return &Op{Kind: k} }
func ofJob(k Kind) Message     { return &Job{Kind: k} }

// Kinds returns the kinds that the first party may send to the second, in order.
func Kinds(from, to Party) []Kind {
	var list []Kind
	for k := range rows {
		if r := &rows[k]; r.from&from != 0 && r.to&to != 0 {
			list = append(list, Kind(k))
		}
	}
	return list
}

// String returns the name of the kind.
func (k Kind) String() string {
	if name := rows[k].name; name != "" {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// BodyLimit returns the longest body of a frame of this kind, in bytes; 0 for a kind that does
// not exist.
func (k Kind) BodyLimit() int { return rows[k].limit }

// For reports whether frames of this kind are handled by p.
func (k Kind) For(p Party) bool { return rows[k].to&p != 0 }

// Asks reports whether every frame of this kind is a request.
func (k Kind) Asks() bool { return rows[k].form == request }

// New returns an empty message of this kind; nil if the type depends on more than the kind.
func (k Kind) New() Message {
	if blank := rows[k].blank; blank != nil {
		return blank(k)
	}
	return nil
}

// Misplaced returns the error of a frame of this kind that came from a party that may not send
// it, or may not send it now.
func (k Kind) Misplaced(from Party) error {
	return fmt.Errorf("%v frame does not belong here: it comes from %v", k, from)
}

// Check refuses a frame of a kind that a party may not send, and a request number that is
// missing or out of place.
func (f *Frame) Check(from Party) error {
	r := &rows[f.Kind]
	switch {
	case r.from&from == 0:
		return f.Kind.Misplaced(from)
	case r.form == oneWay && f.ID != 0:
		return fmt.Errorf("%v frame is one way and has the request number %d", f.Kind, f.ID)
	case r.form == request && f.ID == 0:
		return fmt.Errorf("%v frame is a request and has no number", f.Kind)
	}
	return nil
}

// Message decodes the body into a new message of the frame's kind. The message may keep parts
// of the body.
func (f *Frame) Message() (Message, error) {
	m := f.Kind.New()
	if m == nil {
		return nil, fmt.Errorf("%v frame has no message of its own", f.Kind)
	}
	return m, Decode(m, f.Body)
}
