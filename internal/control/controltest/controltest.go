// SPDX-License-Identifier: Apache-2.0

// Package controltest is what the tests of the control plane's packages share.
package controltest

import (
	"bytes"
	"reflect"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/control/spawn"
)

// Samples is one message of each kind and body.
func Samples(job wire.JobID) []protocol.Message {
	p := wire.ProcID{Job: job, Serial: 1}
	m := wire.NewMembers(wire.Range{First: p, Count: 2}, wire.Range{First: p.Next(9), Count: 1})
	set := wire.Set{URI: protocol.WorldURI, Number: 4, Members: m, Hosts: wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}}}
	options := protocol.Options{Step: 1, Lookahead: 2, Prepare: true, Stay: true, ToReady: time.Second, ToAccept: time.Minute, ToCommit: time.Hour}
	names := []protocol.SetName{{Number: 7, Name: "app://a"}}
	outputs := []change.Outputs{{Joining: []uint32{5, 6}, Leaving: 7, Result: 8}}
	request := change.Request{Kind: change.Grow, In: []uint32{4}, Join: []int{3}, Min: 2, Max: 7, Pref: 5, Sizes: []int{2, 5, 7}, Start: spawn.Parallel, Place: spawn.Spread, NoQueue: true, ToReady: time.Second, ToCommit: time.Hour, Whole: time.Minute}
	handed := protocol.ChangeBody{Op: 3, Kind: change.Grow, Role: protocol.RoleStaying, State: change.Adopting, Votes: true, Inputs: []wire.Set{set}, Joining: []wire.Set{set}, Result: set, Options: options}
	page := protocol.PageOrder{Do: protocol.PageFix, Set: 4, Change: 2, Votes: 9, Options: options, Have: 5, Agreed: 6, Call: 8, Next: 7, Body: []byte("body"), Members: m}
	call := callreg.Entry{Op: "Recv", Peer: callreg.AnyPeer, Since: time.Unix(1, 2), Tag: -1, Caller: "a.go:1 b", Holder: p, InLine: true, Running: true, Instead: "a message"}
	used := protocol.Used{At: time.Hour, CPU: time.Second, Memory: 1 << 20, Tally: callreg.Tally{Sent: 1, SentBytes: 2, Received: 3, ReceivedBytes: 4, Collectives: 1 << 63}}
	op := protocol.OpBody{Op: 3, State: change.Refused, Why: protocol.WhyReplaced, Text: "t", Set: 4, Success: 5, Outputs: outputs, Names: names, Iteration: 8,
		Times: protocol.OpTimes{Asked: time.Unix(7, 8), Granted: 1, Ordered: 2, Ready: 3, Adopted: 4, Decided: 5, Gone: 6}}
	given := protocol.Given{Set: 4, Ranks: 3, X: wire.Extent{Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}}
	return []protocol.Message{
		&protocol.Hello{Version: "v1", Token: [protocol.TokenBytes]byte{1, 2}},
		&protocol.Tool{Version: "v1"}, &protocol.Empty{Kind: protocol.KindFinalize}, &protocol.Empty{Kind: protocol.KindIdle}, &protocol.Empty{Kind: protocol.KindBusy}, &protocol.Empty{Kind: protocol.KindList},
		&protocol.Proc{Kind: protocol.KindContact, Proc: p}, &protocol.Proc{Kind: protocol.KindDead, Proc: p},
		&protocol.Members{Kind: protocol.KindWatch, Members: m}, &protocol.Members{Kind: protocol.KindDefine, Members: m}, &protocol.Members{Kind: protocol.KindFence, Members: m},
		&protocol.Announce{Addrs: []string{"1.2.3.4:5", "[::1]:6"}},
		&protocol.Text{Kind: protocol.KindLookup, Text: protocol.WorldURI}, &protocol.Text{Kind: protocol.KindBye, Text: "why"},
		&protocol.Put{Key: "key", Val: []byte("value")}, &protocol.Get{Key: "key", Wait: true},
		&protocol.Spawn{Parts: []protocol.SpawnPart{{N: 3, Argv: []string{"prog", ""}}}},
		&protocol.Spawn{Parts: []protocol.SpawnPart{{N: 4, Will: []protocol.Counts{{From: 1, To: 3, Step: 2}}, Hosts: []string{"h"}, Around: protocol.Around{Dir: "d", Path: "p", Env: []string{"A=1"}}}, {N: 1}}, Parents: m, Joins: true},
		&protocol.Signal{Signal: 15, Members: m}, &protocol.Port{}, &protocol.Port{Close: "p"}, &protocol.Meet{Port: "p", Accepts: true, Members: m}, &protocol.MeetBody{Mine: set, Theirs: set, Job: job, IDs: 4}, &protocol.Service{Do: protocol.Publish, Name: "n", Port: "p"},
		&protocol.Spawn{Parts: []protocol.SpawnPart{{N: 2, Will: []protocol.Counts{{From: 1, To: 2, Step: 1}}, Hosts: []string{"h*"}}}, Do: protocol.SpawnReserve, Wait: time.Second},
		&protocol.Spawn{Parts: []protocol.SpawnPart{{N: 2, Argv: []string{"prog"}}}, Do: protocol.SpawnStart, At: m},
		&protocol.GiveBack{Members: m}, &protocol.EndBody{Status: -1, Text: "how"}, &protocol.EndBody{Status: 143}, &protocol.Attach{Parents: m, Procs: m},
		&protocol.Proc{Kind: protocol.KindEnd, Proc: p}, &protocol.Empty{Kind: protocol.KindKin},
		&protocol.Greet{Version: "v1", Job: job, Port: "p", Key: [protocol.KeyBytes]byte{1, 2}}, &protocol.Neighbor{Do: protocol.NeighborMet, ID: 1 << 40, By: p, Proc: p.Next(1), Members: m, Number: 4, Port: "p", Text: "t", Addrs: []string{"a:1"}},
		&protocol.Abroad{Kind: protocol.KindAbroad, Job: job}, &protocol.Abroad{Kind: protocol.KindReachable, Job: job},
		&protocol.SpawnBody{World: set, Parent: set, Counts: []uint32{2, 1}, Nodes: []string{"h"}}, &protocol.SpawnBody{Text: "t", Part: 1},
		&protocol.Abort{Code: -5, Text: "text"},
		&protocol.Stacks{ID: 7, Calls: []callreg.Entry{call}, Queues: []byte("q"), Stacks: []byte("s")},
		&protocol.Cancel{ID: 9}, &protocol.Collect{Wait: time.Second},
		&protocol.Welcome{Self: p, Secret: [32]byte{5}, World: set, Parent: set, Segment: -1, Bell: -1, Arena: wire.Extent{File: -1}, LocalProcs: 3, UsableCPUs: 2, Hosts: 2,
			MaxProcs: 1, FaultTolerant: true, KillGrace: time.Second, Settings: map[string]string{"B": "2", "A": ""}},
		&protocol.Welcome{Self: p, World: set, Parent: set, Family: true, Late: true, Change: &handed, Segment: -1, Bell: -1, Arena: wire.Extent{File: -1}, Settings: map[string]string{}},
		&protocol.Submit{Request: request, Parts: []protocol.SubmitPart{{Names: []string{"app://a"}, Argv: []string{"prog", ""}, Hosts: []string{"h"}}}, COL: []byte("{}")},
		&protocol.Submit{Request: change.Request{Kind: change.Multi, Parts: []change.Request{request, {Kind: change.Shrink, In: []uint32{0}, Out: []wire.ProcID{p}, To: 3}}}, Parts: make([]protocol.SubmitPart, 2), COL: []byte{}},
		&protocol.Await{Op: 3, Until: change.Ready}, &protocol.Update{Op: 3, COL: []byte("{}")}, &protocol.Undecided{Op: 3, Set: 9}, &protocol.Provide{Op: 3, Set: 9},
		&protocol.Op{Kind: protocol.KindWithdraw, Op: 3}, &protocol.Op{Kind: protocol.KindReleased, Op: 3}, &protocol.Op{Kind: protocol.KindReadied, Op: 3}, &protocol.Op{Kind: protocol.KindProgress, Op: 3},
		&protocol.Op{Kind: protocol.KindVoted, Op: 3}, &protocol.Op{Kind: protocol.KindCompleted, Op: 3}, &protocol.Op{Kind: protocol.KindForget, Op: 3},
		&op,
		&protocol.Resize{Set: "app://a", By: -4, Detach: true}, &protocol.Resize{To: 8}, &protocol.Op{Kind: protocol.KindBreak, Op: 3}, &protocol.Empty{Kind: protocol.KindOps}, &protocol.Empty{Kind: protocol.KindSets}, &protocol.Empty{Kind: protocol.KindUsed},
		&protocol.OpReport{Op: op, Kind: change.Grow, Inputs: names, Before: 4, After: 6, Joins: 2, Leaves: 1, COL: 9, Waits: "w", For: time.Second},
		&protocol.SetReport{Set: names[0], Names: []string{"app://b"}, Size: 4, Living: 3, Watched: 2, Main: true, Op: 3, Made: "grow", Of: []uint32{4, 5}, Pending: true},
		&protocol.Follow{Set: 4, Options: options, Have: 5}, &protocol.Follow{Set: 4, In: 3, Have: 5}, &protocol.AskBody{Page: protocol.AskPage | 1}, &protocol.AskBody{Successor: 6}, &protocol.Handed{Set: 4, Change: 2, Have: 5}, &protocol.Handed{Op: 3, Have: 5},
		&protocol.FollowBody{X: wire.Extent{Arena: 3, Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}, Members: 3, Place: 2, Board: given, Rest: []byte("r")},
		&protocol.Welcomed{Welcome: []byte("w"), Arena: wire.Extent{Total: 1 << 40, File: -1}, Given: []protocol.Given{given, given}},
		&handed, &protocol.Word{Set: 4, Change: 2},
		&protocol.Set{Kind: protocol.KindDescribe, Number: 4}, &protocol.Set{Kind: protocol.KindUnfollow, Number: 4}, &protocol.Set{Kind: protocol.KindMain, Number: 4}, &protocol.Set{Kind: protocol.KindForsake, Number: 4},
		&protocol.DescribeBody{Set: set, Names: []string{"app://a"}, Died: wire.MembersOf(p), Left: wire.MembersOf(p.Next(1)), Dynamic: true, Had: protocol.Had{Opened: 3, Calls: 1 << 40}},
		&protocol.Happen{Number: 3, On: true, Sets: []uint32{0, 4}}, &protocol.HappenBody{What: protocol.HappenDied, Set: 4, Proc: p, Rank: 2, Missed: 1},
		&protocol.News{Since: 9}, &protocol.NewsBody{Next: 10, More: true, Sets: names},
		&protocol.Algebra{Do: protocol.Split, In: []uint32{4}, Sizes: []uint32{1, 2}, Names: []string{"app://a", ""}}, &protocol.SetsBody{Sets: names},
		&protocol.SetPut{Set: 4, Put: protocol.Put{Key: "key", Val: []byte("value")}}, &protocol.SetGet{Set: 4, Coll: 7, Keys: []string{"a", "b"}, Wait: true, Call: 3},
		&protocol.ValuesBody{Values: []protocol.Value{{There: true, Val: []byte("v")}, {Val: []byte{}}}},
		&protocol.Order{Kind: protocol.OrderFollow, Serial: 3, ID: 7, Members: m, Page: page, Frame: []byte("f")}, &protocol.Order{Kind: protocol.OrderPage, Page: page},
		&protocol.Order{Kind: protocol.OrderGive, ID: 7, Members: m}, &protocol.Order{Kind: protocol.OrderUngive, ID: 7},
		&protocol.Report{Kind: protocol.ReportWord, Set: 4, Change: 2, Word: change.IsCommitted, Iteration: 8, Late: protocol.Late{At: 4, Behind: protocol.Some{N: 2, First: []uint32{5, 9}}, Silent: protocol.Some{N: 1, First: []uint32{8}}}},
		&protocol.Report{Kind: protocol.ReportLook, Set: 4, Change: 3, Look: protocol.Look{Of: protocol.PageAsk, Least: 1, Most: 1 << 40, Begun: 3, Mean: time.Millisecond, Bytes: 9, Reports: 5}, Late: protocol.Late{Behind: protocol.Some{N: 1, First: []uint32{7}}}},
		&protocol.Cut{Proc: p, Text: "no room"}, &protocol.Ping{Kind: protocol.KindPing, Proc: p, ID: 7}, &protocol.Ping{Kind: protocol.KindPong, Proc: p, ID: 1 << 60}, &protocol.Release{Number: 7, Had: protocol.Had{Opened: 2, Calls: 9}}, &protocol.Text{Kind: protocol.KindDelete, Text: "key"},
		&protocol.Common{ID: wire.ContextID{Creator: p, Serial: 3}, Members: m, Bytes: 1 << 20, First: 4096, Have: 5}, &protocol.Uncommon{Arena: 3, Off: 1 << 40},
		&protocol.CommonBody{X: wire.Extent{Arena: 3, Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}},
		&protocol.Memory{Name: "m", Bytes: 1 << 40}, &protocol.MemoryBody{Name: "m", Bytes: 1 << 40, Host: 3}, &protocol.LeaveMemory{Name: "m"},
		&protocol.Event{Kind: protocol.EvDied, Proc: p, Text: "signal: killed", ID: 1, LocalProcs: 2, MaxProcs: 3},
		&protocol.Reply{Body: []byte("body")},
		&protocol.Order{Kind: protocol.OrderBind, Serial: 3, ID: 4, Count: 5}, &protocol.Order{Kind: protocol.OrderUnbind, ID: 4},
		&protocol.Order{Kind: protocol.OrderSend, Serial: 3, Frame: []byte("f")}, &protocol.Order{Kind: protocol.OrderWelcome, Serial: 3, Frame: []byte("f")},
		&protocol.Order{Kind: protocol.OrderLate, Serial: 3, Late: time.Second, Frame: []byte("f")}, &protocol.Order{Kind: protocol.OrderHost, Frame: []byte("f")},
		&protocol.Order{Kind: protocol.OrderContact, Serial: 3, ID: 7, Contact: &wire.Contact{Proc: p, Host: 1, Segment: -1, Bell: -1}},
		&protocol.Order{Kind: protocol.OrderOver, Serial: 3, State: protocol.Exited}, &protocol.Order{Kind: protocol.OrderAbandon, Serial: 3},
		&protocol.Order{Kind: protocol.OrderShut, Serial: 3, Text: "why"}, &protocol.Order{Kind: protocol.OrderEnding, Text: "why"},
		&protocol.Report{Kind: protocol.ReportHello, Serial: 3}, &protocol.Report{Kind: protocol.ReportFrame, Serial: 3, Frame: protocol.Frame{Kind: protocol.KindGet, ID: 9, Body: []byte("b")}},
		&protocol.Report{Kind: protocol.ReportHungUp, Serial: 3}, &protocol.Report{Kind: protocol.ReportStarted, Serial: 3, PID: 10},
		&protocol.Report{Kind: protocol.ReportExited, Serial: 3, Text: "how", Clean: true}, &protocol.Report{Kind: protocol.ReportLost, Serial: 3, Text: "how"},
		&protocol.Report{Kind: protocol.ReportFreed, Serial: 3},
		&protocol.Errand{Kind: 2, Proc: p, Signal: 9, Stream: 1, Count: 3, Clean: true, Text: "how", Data: []byte("d"),
			Starts: []protocol.ErrandStart{{StartProc: protocol.StartProc{Proc: p, Argv: []string{"prog", ""}, Rank: 1, Size: 2}, First: true, App: 1}}},
		&protocol.Seen{Kind: 2, Proc: p, Signal: 9, Core: true, Code: 255, PID: 7, Stream: 2, Closed: true, Text: "how", Data: []byte("d")},
		&protocol.Order{Kind: protocol.OrderReserve, ID: 7, Count: 3}, &protocol.Order{Kind: protocol.OrderCalls, ID: 7}, &protocol.Order{Kind: protocol.OrderTaken, Serial: 3, Count: 4096}, &protocol.Order{Kind: protocol.OrderTool, ID: 7, Frame: []byte("f")},
		&protocol.Report{Kind: protocol.ReportReserved, ID: 7, Count: 9, Text: "why"}, &protocol.Report{Kind: protocol.ReportCalls, ID: 7, Serial: 3, Used: used, Calls: []callreg.Entry{call}},
		&protocol.Report{Kind: protocol.ReportTool, ID: 7, Frame: protocol.Frame{Kind: protocol.KindList, ID: 9, Body: []byte("b")}}, &protocol.Report{Kind: protocol.ReportMore, ID: 7}, &protocol.Report{Kind: protocol.ReportNoMore, ID: 7},
		&protocol.Reply{Status: protocol.StatusGone, Proc: p, Text: "t"}, &protocol.Reply{Status: protocol.StatusNotFound, Text: "t"}, &protocol.Reply{Status: protocol.StatusSetGone, Text: "t"}, &protocol.Reply{Status: protocol.StatusUndecided, Text: "t"}, &protocol.Reply{Status: protocol.StatusTooMany, Text: "t"},
		&protocol.ContactBody{C: wire.Contact{Proc: p, Host: 1, SameHost: true, PID: 7, Segment: -1, Bell: -1, Addrs: []string{"a:1"}}},
		&protocol.SetBody{S: set}, &protocol.SetBody{S: wire.Set{URI: protocol.SelfURI, Number: 5, Members: wire.MembersOf(p)}}, &protocol.ValueBody{Val: []byte("v")},
		&protocol.StackReport{ProcInfo: protocol.ProcInfo{Proc: p, Rank: 1, Size: 2, World: 3, PID: 4, State: protocol.Exited, How: "h"},
			Answered: true, Silent: "why", Host: "h1", Sets: []uint32{4, 1}, Used: used, Calls: []callreg.Entry{call}, Queues: []byte("q"), Stacks: []byte("s")},
	}
}

// Blank returns an empty message of the same type and kind.
func Blank(m protocol.Message) protocol.Message {
	if n := protocol.KindOf(m).New(); reflect.TypeOf(n) == reflect.TypeOf(m) {
		return n
	}
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(protocol.Message) // a body of a reply
}

// OverWire makes of a message what arrives of it on another machine.
func OverWire(m protocol.Message) protocol.Message {
	n := Blank(m)
	if err := protocol.Decode(n, bytes.Clone(protocol.Encode(m))); err != nil {
		panic(err)
	}
	return n
}
