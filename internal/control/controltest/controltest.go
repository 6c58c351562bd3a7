// SPDX-License-Identifier: Apache-2.0

// Package controltest is what the tests of the control plane's packages share.
package controltest

import (
	"bytes"
	"reflect"
	"time"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/rollcall"
	"gompi/internal/spawn"
	"gompi/internal/wire"
)

// Samples is one message of each kind and body.
func Samples(job wire.JobID) []control.Message {
	p := wire.ProcID{Job: job, Serial: 1}
	m := wire.NewMembers(wire.Range{First: p, Count: 2}, wire.Range{First: p.Next(9), Count: 1})
	set := wire.Set{URI: control.WorldURI, Number: 4, Members: m, Hosts: wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}}}
	options := control.Options{Step: 1, Lookahead: 2, Prepare: true, Stay: true, ToReady: time.Second, ToAccept: time.Minute, ToCommit: time.Hour}
	names := []control.SetName{{Number: 7, Name: "app://a"}}
	outputs := []change.Outputs{{Joining: []uint32{5, 6}, Leaving: 7, Result: 8}}
	request := change.Request{Kind: change.Grow, In: []uint32{4}, Join: []int{3}, Min: 2, Max: 7, Pref: 5, Sizes: []int{2, 5, 7}, Start: spawn.Parallel, Place: spawn.Spread, NoQueue: true, ToReady: time.Second, ToCommit: time.Hour, Whole: time.Minute}
	handed := control.ChangeBody{Op: 3, Kind: change.Grow, Role: control.RoleStaying, State: change.Adopting, Votes: true, Inputs: []wire.Set{set}, Joining: []wire.Set{set}, Result: set, Options: options}
	page := control.PageOrder{Do: control.PageFix, Set: 4, Change: 2, Votes: 9, Options: options, Have: 5, Agreed: 6, Call: 8, Next: 7, Body: []byte("body"), Members: m}
	call := rollcall.Entry{Op: "Recv", Peer: rollcall.AnyPeer, Since: time.Unix(1, 2), Tag: -1, Caller: "a.go:1 b", Holder: p, InLine: true, Running: true, Instead: "a message"}
	used := control.Used{At: time.Hour, CPU: time.Second, Memory: 1 << 20, Tally: rollcall.Tally{Sent: 1, SentBytes: 2, Received: 3, ReceivedBytes: 4, Collectives: 1 << 63}}
	op := control.OpBody{Op: 3, State: change.Refused, Why: control.WhyReplaced, Text: "t", Set: 4, Success: 5, Outputs: outputs, Names: names, Iteration: 8,
		Times: control.OpTimes{Asked: time.Unix(7, 8), Granted: 1, Ordered: 2, Ready: 3, Adopted: 4, Decided: 5, Gone: 6}}
	given := control.Given{Set: 4, Ranks: 3, X: wire.Extent{Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}}
	return []control.Message{
		&control.Hello{Version: "v1", Token: [control.TokenBytes]byte{1, 2}},
		&control.Tool{Version: "v1"}, &control.Empty{Kind: control.KindFinalize}, &control.Empty{Kind: control.KindIdle}, &control.Empty{Kind: control.KindBusy}, &control.Empty{Kind: control.KindList},
		&control.Proc{Kind: control.KindContact, Proc: p}, &control.Proc{Kind: control.KindDead, Proc: p},
		&control.Members{Kind: control.KindWatch, Members: m}, &control.Members{Kind: control.KindDefine, Members: m}, &control.Members{Kind: control.KindFence, Members: m},
		&control.Announce{Addrs: []string{"1.2.3.4:5", "[::1]:6"}},
		&control.Text{Kind: control.KindLookup, Text: control.WorldURI}, &control.Text{Kind: control.KindBye, Text: "why"},
		&control.Put{Key: "key", Val: []byte("value")}, &control.Get{Key: "key", Wait: true},
		&control.Spawn{Parts: []control.SpawnPart{{N: 3, Argv: []string{"prog", ""}}}},
		&control.Spawn{Parts: []control.SpawnPart{{N: 4, Will: []control.Counts{{From: 1, To: 3, Step: 2}}, Hosts: []string{"h"}, Around: control.Around{Dir: "d", Path: "p", Env: []string{"A=1"}}}, {N: 1}}, Parents: m, Joins: true},
		&control.Signal{Signal: 15, Members: m}, &control.Port{}, &control.Port{Close: "p"}, &control.Meet{Port: "p", Accepts: true, Members: m}, &control.MeetBody{Mine: set, Theirs: set, Job: job, IDs: 4}, &control.Service{Do: control.Publish, Name: "n", Port: "p"},
		&control.Spawn{Parts: []control.SpawnPart{{N: 2, Will: []control.Counts{{From: 1, To: 2, Step: 1}}, Hosts: []string{"h*"}}}, Do: control.SpawnReserve, Wait: time.Second},
		&control.Spawn{Parts: []control.SpawnPart{{N: 2, Argv: []string{"prog"}}}, Do: control.SpawnStart, At: m},
		&control.GiveBack{Members: m}, &control.EndBody{Status: -1, Text: "how"}, &control.EndBody{Status: 143}, &control.Attach{Parents: m, Procs: m},
		&control.Proc{Kind: control.KindEnd, Proc: p}, &control.Empty{Kind: control.KindKin},
		&control.Greet{Version: "v1", Job: job, Port: "p", Key: [control.KeyBytes]byte{1, 2}}, &control.Neighbor{Do: control.NeighborMet, ID: 1 << 40, By: p, Proc: p.Next(1), Members: m, Number: 4, Port: "p", Text: "t", Addrs: []string{"a:1"}},
		&control.Abroad{Kind: control.KindAbroad, Job: job}, &control.Abroad{Kind: control.KindReachable, Job: job},
		&control.SpawnBody{World: set, Parent: set, Counts: []uint32{2, 1}, Nodes: []string{"h"}}, &control.SpawnBody{Text: "t", Part: 1},
		&control.Abort{Code: -5, Text: "text"},
		&control.Stacks{ID: 7, Calls: []rollcall.Entry{call}, Queues: []byte("q"), Stacks: []byte("s")},
		&control.Cancel{ID: 9}, &control.Collect{Wait: time.Second},
		&control.Welcome{Self: p, Secret: [32]byte{5}, World: set, Parent: set, Segment: -1, Bell: -1, Arena: wire.Extent{File: -1}, LocalProcs: 3, UsableCPUs: 2, Hosts: 2,
			MaxProcs: 1, FaultTolerant: true, KillGrace: time.Second, Settings: map[string]string{"B": "2", "A": ""}},
		&control.Welcome{Self: p, World: set, Parent: set, Family: true, Late: true, Change: &handed, Segment: -1, Bell: -1, Arena: wire.Extent{File: -1}, Settings: map[string]string{}},
		&control.Submit{Request: request, Parts: []control.SubmitPart{{Names: []string{"app://a"}, Argv: []string{"prog", ""}, Hosts: []string{"h"}}}, COL: []byte("{}")},
		&control.Submit{Request: change.Request{Kind: change.Multi, Parts: []change.Request{request, {Kind: change.Shrink, In: []uint32{0}, Out: []wire.ProcID{p}, To: 3}}}, Parts: make([]control.SubmitPart, 2), COL: []byte{}},
		&control.Await{Op: 3, Until: change.Ready}, &control.Update{Op: 3, COL: []byte("{}")}, &control.Undecided{Op: 3, Set: 9}, &control.Provide{Op: 3, Set: 9},
		&control.Op{Kind: control.KindWithdraw, Op: 3}, &control.Op{Kind: control.KindReleased, Op: 3}, &control.Op{Kind: control.KindReadied, Op: 3}, &control.Op{Kind: control.KindProgress, Op: 3},
		&control.Op{Kind: control.KindVoted, Op: 3}, &control.Op{Kind: control.KindCompleted, Op: 3}, &control.Op{Kind: control.KindForget, Op: 3},
		&op,
		&control.Resize{Set: "app://a", By: -4, Detach: true}, &control.Resize{To: 8}, &control.Op{Kind: control.KindBreak, Op: 3}, &control.Empty{Kind: control.KindOps}, &control.Empty{Kind: control.KindSets}, &control.Empty{Kind: control.KindUsed},
		&control.OpReport{Op: op, Kind: change.Grow, Inputs: names, Before: 4, After: 6, Joins: 2, Leaves: 1, COL: 9, Waits: "w", For: time.Second},
		&control.SetReport{Set: names[0], Names: []string{"app://b"}, Size: 4, Living: 3, Watched: 2, Main: true, Op: 3, Made: "grow", Of: []uint32{4, 5}, Pending: true},
		&control.Follow{Set: 4, Options: options, Have: 5}, &control.Follow{Set: 4, In: 3, Have: 5}, &control.AskBody{Page: control.AskPage | 1}, &control.AskBody{Successor: 6}, &control.Handed{Set: 4, Change: 2, Have: 5}, &control.Handed{Op: 3, Have: 5},
		&control.FollowBody{X: wire.Extent{Arena: 3, Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}, Members: 3, Place: 2, Board: given, Rest: []byte("r")},
		&control.Welcomed{Welcome: []byte("w"), Arena: wire.Extent{Total: 1 << 40, File: -1}, Given: []control.Given{given, given}},
		&handed, &control.Word{Set: 4, Change: 2},
		&control.Set{Kind: control.KindDescribe, Number: 4}, &control.Set{Kind: control.KindUnfollow, Number: 4}, &control.Set{Kind: control.KindMain, Number: 4}, &control.Set{Kind: control.KindForsake, Number: 4},
		&control.DescribeBody{Set: set, Names: []string{"app://a"}, Died: wire.MembersOf(p), Left: wire.MembersOf(p.Next(1)), Dynamic: true, Had: control.Had{Opened: 3, Calls: 1 << 40}},
		&control.Happen{Number: 3, On: true, Sets: []uint32{0, 4}}, &control.HappenBody{What: control.HappenDied, Set: 4, Proc: p, Rank: 2, Missed: 1},
		&control.News{Since: 9}, &control.NewsBody{Next: 10, More: true, Sets: names},
		&control.Algebra{Do: control.Split, In: []uint32{4}, Sizes: []uint32{1, 2}, Names: []string{"app://a", ""}}, &control.SetsBody{Sets: names},
		&control.SetPut{Set: 4, Put: control.Put{Key: "key", Val: []byte("value")}}, &control.SetGet{Set: 4, Coll: 7, Keys: []string{"a", "b"}, Wait: true, Call: 3},
		&control.ValuesBody{Values: []control.Value{{There: true, Val: []byte("v")}, {Val: []byte{}}}},
		&control.Order{Kind: control.OrderFollow, Serial: 3, ID: 7, Members: m, Page: page, Frame: []byte("f")}, &control.Order{Kind: control.OrderPage, Page: page},
		&control.Order{Kind: control.OrderGive, ID: 7, Members: m}, &control.Order{Kind: control.OrderUngive, ID: 7},
		&control.Report{Kind: control.ReportWord, Set: 4, Change: 2, Word: change.IsCommitted, Iteration: 8, Late: control.Late{At: 4, Behind: control.Some{N: 2, First: []uint32{5, 9}}, Silent: control.Some{N: 1, First: []uint32{8}}}},
		&control.Report{Kind: control.ReportLook, Set: 4, Change: 3, Look: control.Look{Of: control.PageAsk, Least: 1, Most: 1 << 40, Begun: 3, Mean: time.Millisecond, Bytes: 9, Reports: 5}, Late: control.Late{Behind: control.Some{N: 1, First: []uint32{7}}}},
		&control.Cut{Proc: p, Text: "no room"}, &control.Ping{Kind: control.KindPing, Proc: p, ID: 7}, &control.Ping{Kind: control.KindPong, Proc: p, ID: 1 << 60}, &control.Release{Number: 7, Had: control.Had{Opened: 2, Calls: 9}}, &control.Text{Kind: control.KindDelete, Text: "key"},
		&control.Common{ID: wire.ContextID{Creator: p, Serial: 3}, Members: m, Bytes: 1 << 20, First: 4096, Have: 5}, &control.Uncommon{Arena: 3, Off: 1 << 40},
		&control.CommonBody{X: wire.Extent{Arena: 3, Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1}},
		&control.Memory{Name: "m", Bytes: 1 << 40}, &control.MemoryBody{Name: "m", Bytes: 1 << 40, Host: 3}, &control.LeaveMemory{Name: "m"},
		&control.Event{Kind: control.EvDied, Proc: p, Text: "signal: killed", ID: 1, LocalProcs: 2, MaxProcs: 3},
		&control.Reply{Body: []byte("body")},
		&control.Order{Kind: control.OrderBind, Serial: 3, ID: 4, Count: 5}, &control.Order{Kind: control.OrderUnbind, ID: 4},
		&control.Order{Kind: control.OrderSend, Serial: 3, Frame: []byte("f")}, &control.Order{Kind: control.OrderWelcome, Serial: 3, Frame: []byte("f")},
		&control.Order{Kind: control.OrderLate, Serial: 3, Late: time.Second, Frame: []byte("f")}, &control.Order{Kind: control.OrderHost, Frame: []byte("f")},
		&control.Order{Kind: control.OrderContact, Serial: 3, ID: 7, Contact: &wire.Contact{Proc: p, Host: 1, Segment: -1, Bell: -1}},
		&control.Order{Kind: control.OrderOver, Serial: 3, State: control.Exited}, &control.Order{Kind: control.OrderAbandon, Serial: 3},
		&control.Order{Kind: control.OrderShut, Serial: 3, Text: "why"}, &control.Order{Kind: control.OrderEnding, Text: "why"},
		&control.Report{Kind: control.ReportHello, Serial: 3}, &control.Report{Kind: control.ReportFrame, Serial: 3, Frame: control.Frame{Kind: control.KindGet, ID: 9, Body: []byte("b")}},
		&control.Report{Kind: control.ReportHungUp, Serial: 3}, &control.Report{Kind: control.ReportStarted, Serial: 3, PID: 10},
		&control.Report{Kind: control.ReportExited, Serial: 3, Text: "how", Clean: true}, &control.Report{Kind: control.ReportLost, Serial: 3, Text: "how"},
		&control.Report{Kind: control.ReportFreed, Serial: 3},
		&control.Errand{Kind: 2, Proc: p, Signal: 9, Stream: 1, Count: 3, Clean: true, Text: "how", Data: []byte("d"),
			Starts: []control.ErrandStart{{StartProc: control.StartProc{Proc: p, Argv: []string{"prog", ""}, Rank: 1, Size: 2}, First: true, App: 1}}},
		&control.Seen{Kind: 2, Proc: p, Signal: 9, Core: true, Code: 255, PID: 7, Stream: 2, Closed: true, Text: "how", Data: []byte("d")},
		&control.Order{Kind: control.OrderReserve, ID: 7, Count: 3}, &control.Order{Kind: control.OrderCalls, ID: 7}, &control.Order{Kind: control.OrderTaken, Serial: 3, Count: 4096}, &control.Order{Kind: control.OrderTool, ID: 7, Frame: []byte("f")},
		&control.Report{Kind: control.ReportReserved, ID: 7, Count: 9, Text: "why"}, &control.Report{Kind: control.ReportCalls, ID: 7, Serial: 3, Used: used, Calls: []rollcall.Entry{call}},
		&control.Report{Kind: control.ReportTool, ID: 7, Frame: control.Frame{Kind: control.KindList, ID: 9, Body: []byte("b")}}, &control.Report{Kind: control.ReportMore, ID: 7}, &control.Report{Kind: control.ReportNoMore, ID: 7},
		&control.Reply{Status: control.StatusGone, Proc: p, Text: "t"}, &control.Reply{Status: control.StatusNotFound, Text: "t"}, &control.Reply{Status: control.StatusSetGone, Text: "t"}, &control.Reply{Status: control.StatusUndecided, Text: "t"}, &control.Reply{Status: control.StatusTooMany, Text: "t"},
		&control.ContactBody{C: wire.Contact{Proc: p, Host: 1, SameHost: true, PID: 7, Segment: -1, Bell: -1, Addrs: []string{"a:1"}}},
		&control.SetBody{S: set}, &control.SetBody{S: wire.Set{URI: control.SelfURI, Number: 5, Members: wire.MembersOf(p)}}, &control.ValueBody{Val: []byte("v")},
		&control.StackReport{ProcInfo: control.ProcInfo{Proc: p, Rank: 1, Size: 2, World: 3, PID: 4, State: control.Exited, How: "h"},
			Answered: true, Silent: "why", Host: "h1", Sets: []uint32{4, 1}, Used: used, Calls: []rollcall.Entry{call}, Queues: []byte("q"), Stacks: []byte("s")},
	}
}

// Blank is an empty message of the same type and kind.
func Blank(m control.Message) control.Message {
	n := reflect.New(reflect.TypeOf(m).Elem()).Interface().(control.Message)
	switch m := m.(type) {
	case *control.Empty:
		n.(*control.Empty).Kind = m.Kind
	case *control.Proc:
		n.(*control.Proc).Kind = m.Kind
	case *control.Members:
		n.(*control.Members).Kind = m.Kind
	case *control.Text:
		n.(*control.Text).Kind = m.Kind
	case *control.Ping:
		n.(*control.Ping).Kind = m.Kind
	case *control.Abroad:
		n.(*control.Abroad).Kind = m.Kind
	case *control.Op:
		n.(*control.Op).Kind = m.Kind
	case *control.Set:
		n.(*control.Set).Kind = m.Kind
	}
	return n
}

// OverWire makes of a message what arrives of it on another machine.
func OverWire(m control.Message) control.Message {
	n := Blank(m)
	if err := control.Decode(n, bytes.Clone(control.Encode(m))); err != nil {
		panic(err)
	}
	return n
}
