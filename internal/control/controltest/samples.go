// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/control/spawn"
)

// Samples returns at least one message of each kind, and of each body of a reply. Processes in
// them are of this job.
func Samples(job wire.JobID) []protocol.Message {
	v := newValues(job)
	return slices.Concat(
		v.opening(),
		v.processes(),
		v.stores(),
		v.sets(),
		v.operations(),
		v.changes(),
		v.spawns(),
		v.memory(),
		v.tools(),
		v.commands(),
		v.pageCommands(),
		v.reports(),
		v.launches(),
		v.foreign(),
		v.replies(),
	)
}

// values are what samples are made of.
type values struct {
	job     wire.JobID
	proc    wire.ProcID
	members wire.Members
	set     wire.Set
	extent  wire.ArenaRange
	area    protocol.Preallocated
	options protocol.Options
	names   []protocol.SetName
	request change.Request
	op      protocol.OpBody
	change  protocol.ChangeBody
	page    protocol.PageCommand
	call    callreg.Entry
	used    protocol.Used
}

func newValues(job wire.JobID) *values {
	p := wire.ProcID{Job: job, Serial: 1}
	v := &values{
		job:     job,
		proc:    p,
		members: wire.NewMembers(wire.Range{First: p, Count: 2}, wire.Range{First: p.Next(9), Count: 1}),
		extent:  wire.ArenaRange{Arena: 3, Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1},
		options: protocol.Options{
			Step:      1,
			Lookahead: 2,
			Prepare:   true,
			Stay:      true,
			ToReady:   time.Second,
			ToAccept:  time.Minute,
			ToCommit:  time.Hour,
		},
		names: []protocol.SetName{{Number: 7, Name: "app://a"}},
		request: change.Request{
			Kind:     change.Grow,
			In:       []uint32{4},
			Join:     []int{3},
			Min:      2,
			Max:      7,
			Pref:     5,
			Sizes:    []int{2, 5, 7},
			Start:    spawn.Parallel,
			Place:    spawn.Spread,
			NoQueue:  true,
			ToReady:  time.Second,
			ToCommit: time.Hour,
			Whole:    time.Minute,
		},
		call: callreg.Entry{
			Op:          "Recv",
			Peer:        callreg.AnyPeer,
			Since:       time.Unix(1, 2),
			Tag:         -1,
			Caller:      "a.go:1 b",
			Holder:      p,
			HolderWaits: true,
			Running:     true,
			Unmatched:   "a message",
		},
		used: protocol.Used{
			At:       time.Hour,
			CPU:      time.Second,
			Memory:   1 << 20,
			Counters: callreg.Counters{Sent: 1, SentBytes: 2, Received: 3, ReceivedBytes: 4, Collectives: 1 << 63},
		},
	}
	v.set = wire.Set{
		URI:     protocol.WorldURI,
		Number:  4,
		Members: v.members,
		Hosts:   wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}},
	}
	v.area = protocol.Preallocated{
		Set:   4,
		Ranks: 3,
		X:     wire.ArenaRange{Total: 1 << 40, Off: 1 << 30, Bytes: 1 << 20, File: -1},
	}
	v.op = protocol.OpBody{
		Op:        3,
		State:     change.Refused,
		Why:       protocol.WhyReplaced,
		Text:      "t",
		Set:       4,
		Success:   5,
		Outputs:   []change.Outputs{{Joining: []uint32{5, 6}, Leaving: 7, Result: 8}},
		Names:     v.names,
		Iteration: 8,
		Times:     protocol.OpTimes{Asked: time.Unix(7, 8), Granted: 1, Ordered: 2, Ready: 3, Adopted: 4, Decided: 5, Gone: 6},
	}
	v.change = protocol.ChangeBody{
		Op:      3,
		Kind:    change.Grow,
		Role:    protocol.RoleStaying,
		State:   change.Adopting,
		Votes:   true,
		Inputs:  []wire.Set{v.set},
		Joining: []wire.Set{v.set},
		Result:  v.set,
		Options: v.options,
	}
	v.page = protocol.PageCommand{
		Do:      protocol.PageFix,
		Set:     4,
		Change:  2,
		Votes:   9,
		Options: v.options,
		Have:    5,
		Agreed:  6,
		Call:    8,
		Next:    7,
		Body:    []byte("body"),
		Members: v.members,
	}
	return v
}

func (v *values) opening() []protocol.Message {
	return []protocol.Message{
		&protocol.Hello{Version: "v1", Token: [protocol.TokenBytes]byte{1, 2}},
		&protocol.Tool{Version: "v1"},
		&protocol.Welcome{
			Self:          v.proc,
			Secret:        [32]byte{5},
			World:         v.set,
			Parent:        v.set,
			Segment:       -1,
			Bell:          -1,
			Arena:         wire.ArenaRange{File: -1},
			LocalProcs:    3,
			UsableCPUs:    2,
			Hosts:         2,
			MaxProcs:      1,
			FaultTolerant: true,
			KillGrace:     time.Second,
			Settings:      map[string]string{"B": "2", "A": ""},
		},
		&protocol.Welcome{
			Self:      v.proc,
			World:     v.set,
			Parent:    v.set,
			Intercomm: true,
			MayAttach: true,
			Change:    &v.change,
			Segment:   -1,
			Bell:      -1,
			Arena:     wire.ArenaRange{File: -1},
			Settings:  map[string]string{},
		},
		&protocol.Welcomed{
			Welcome:      []byte("w"),
			Arena:        wire.ArenaRange{Total: 1 << 40, File: -1},
			Preallocated: []protocol.Preallocated{v.area, v.area},
		},
		&protocol.Text{Kind: protocol.KindBye, Text: "why"},
	}
}

func (v *values) processes() []protocol.Message {
	return []protocol.Message{
		&protocol.Empty{Kind: protocol.KindFinalize},
		&protocol.Empty{Kind: protocol.KindIdle},
		&protocol.Empty{Kind: protocol.KindBusy},
		&protocol.Proc{Kind: protocol.KindContact, Proc: v.proc},
		&protocol.Proc{Kind: protocol.KindDead, Proc: v.proc},
		&protocol.Members{Kind: protocol.KindWatch, Members: v.members},
		&protocol.Members{Kind: protocol.KindFence, Members: v.members},
		&protocol.Announce{Addrs: []string{"1.2.3.4:5", "[::1]:6"}},
		&protocol.Abort{Code: -5, Text: "text"},
		&protocol.Stacks{ID: 7, Calls: []callreg.Entry{v.call}, Queues: []byte("q"), Stacks: []byte("s")},
		&protocol.Cancel{ID: 9},
		&protocol.Disconnected{Proc: v.proc, Text: "no room"},
		&protocol.Ping{Kind: protocol.KindPing, Proc: v.proc, ID: 7},
		&protocol.Ping{Kind: protocol.KindPong, Proc: v.proc, ID: 1 << 60},
		&protocol.Event{Kind: protocol.EvDied, Proc: v.proc, Text: "signal: killed", ID: 1, LocalProcs: 2, MaxProcs: 3},
		&protocol.ContactBody{C: wire.Contact{
			Proc:     v.proc,
			Host:     1,
			SameHost: true,
			PID:      7,
			Segment:  -1,
			Bell:     -1,
			Addrs:    []string{"a:1"},
		}},
	}
}

func (v *values) stores() []protocol.Message {
	return []protocol.Message{
		&protocol.Put{Key: "key", Val: []byte("value")},
		&protocol.Get{Key: "key", Wait: true},
		&protocol.Text{Kind: protocol.KindDelete, Text: "key"},
		&protocol.ValueBody{Val: []byte("v")},
		&protocol.SetPut{Set: 4, Put: protocol.Put{Key: "key", Val: []byte("value")}},
		&protocol.SetGet{Set: 4, Coll: 7, Keys: []string{"a", "b"}, Wait: true, Call: 3},
		&protocol.ValuesBody{Values: []protocol.Value{{There: true, Val: []byte("v")}, {Val: []byte{}}}},
	}
}

func (v *values) sets() []protocol.Message {
	return []protocol.Message{
		&protocol.Text{Kind: protocol.KindLookup, Text: protocol.WorldURI},
		&protocol.Members{Kind: protocol.KindDefine, Members: v.members},
		&protocol.Release{Number: 7, Use: protocol.SetUse{Opened: 2, Calls: 9}},
		&protocol.Set{Kind: protocol.KindDescribe, Number: 4},
		&protocol.Set{Kind: protocol.KindMain, Number: 4},
		&protocol.Set{Kind: protocol.KindForsake, Number: 4},
		&protocol.SetBody{S: v.set},
		&protocol.SetBody{S: wire.Set{URI: protocol.SelfURI, Number: 5, Members: wire.MembersOf(v.proc)}},
		&protocol.DescribeBody{
			Set:     v.set,
			Names:   []string{"app://a"},
			Died:    wire.MembersOf(v.proc),
			Left:    wire.MembersOf(v.proc.Next(1)),
			Dynamic: true,
			Use:     protocol.SetUse{Opened: 3, Calls: 1 << 40},
		},
		&protocol.News{Since: 9},
		&protocol.NewsBody{Next: 10, More: true, Sets: v.names},
		&protocol.Algebra{Do: protocol.Split, In: []uint32{4}, Sizes: []uint32{1, 2}, Names: []string{"app://a", ""}},
		&protocol.SetsBody{Sets: v.names},
		&protocol.NextEvent{Number: 3, On: true, Sets: []uint32{0, 4}},
		&protocol.SetEvent{What: protocol.SetEventDied, Set: 4, Proc: v.proc, Rank: 2, Missed: 1},
	}
}

func (v *values) operations() []protocol.Message {
	list := []protocol.Message{
		&protocol.Submit{
			Request: v.request,
			Parts:   []protocol.SubmitPart{{Names: []string{"app://a"}, Argv: []string{"prog", ""}, Hosts: []string{"h"}}},
			COL:     []byte("{}"),
		},
		&protocol.Submit{
			Request: change.Request{
				Kind:  change.Multi,
				Parts: []change.Request{v.request, {Kind: change.Shrink, In: []uint32{0}, Out: []wire.ProcID{v.proc}, To: 3}},
			},
			Parts: make([]protocol.SubmitPart, 2),
			COL:   []byte{},
		},
		&protocol.Await{Op: 3, Until: change.Ready},
		&protocol.Decline{Op: 3, Reason: "why"},
		&protocol.Update{Op: 3, COL: []byte("{}")},
		&protocol.Undecided{Op: 3, Set: 9},
		&protocol.Provide{Op: 3, Set: 9},
		&v.op,
	}
	for _, k := range []protocol.Kind{
		protocol.KindWithdraw,
		protocol.KindReleased,
		protocol.KindReadied,
		protocol.KindProgress,
		protocol.KindVoted,
		protocol.KindCompleted,
		protocol.KindForget,
		protocol.KindBreak,
	} {
		list = append(list, &protocol.Op{Kind: k, Op: 3})
	}
	return list
}

func (v *values) changes() []protocol.Message {
	return []protocol.Message{
		&protocol.Subscribe{Set: 4, Options: v.options, Have: 5},
		&protocol.Subscribe{Set: 4, In: 3, Have: 5},
		&protocol.Set{Kind: protocol.KindUnsubscribe, Number: 4},
		&protocol.PageBody{X: v.extent, Members: 3, Place: 2, Area: v.area, Rest: []byte("r")},
		&protocol.QueryBody{Page: protocol.QueryPage | 1},
		&protocol.QueryBody{Successor: 6},
		&protocol.GetChange{Set: 4, Change: 2, Have: 5},
		&protocol.GetChange{Op: 3, Have: 5},
		&v.change,
		&protocol.StatusWord{Set: 4, Change: 2},
	}
}

func (v *values) spawns() []protocol.Message {
	return []protocol.Message{
		&protocol.Spawn{Parts: []protocol.SpawnPart{{N: 3, Argv: []string{"prog", ""}}}},
		&protocol.Spawn{
			Parts: []protocol.SpawnPart{
				{
					N:         4,
					Will:      []protocol.Counts{{From: 1, To: 3, Step: 2}},
					Hosts:     []string{"h"},
					LaunchEnv: protocol.LaunchEnv{Dir: "d", Path: "p", Env: []string{"A=1"}},
				},
				{N: 1},
			},
			Parents: v.members,
			Joins:   true,
		},
		&protocol.Spawn{
			Parts: []protocol.SpawnPart{{N: 2, Will: []protocol.Counts{{From: 1, To: 2, Step: 1}}, Hosts: []string{"h*"}}},
			Do:    protocol.SpawnReserve,
			Wait:  time.Second,
		},
		&protocol.Spawn{
			Parts: []protocol.SpawnPart{{N: 2, Argv: []string{"prog"}}},
			Do:    protocol.SpawnStart,
			At:    v.members,
		},
		&protocol.SpawnBody{World: v.set, Parent: v.set, Counts: []uint32{2, 1}, Nodes: []string{"h"}},
		&protocol.SpawnBody{Text: "t", Part: 1},
		&protocol.Signal{Signal: 15, Members: v.members},
		&protocol.GiveBack{Members: v.members},
		&protocol.Proc{Kind: protocol.KindEnd, Proc: v.proc},
		&protocol.EndBody{Status: -1, Text: "how"},
		&protocol.EndBody{Status: 143},
		&protocol.Attach{Parents: v.members, Procs: v.members},
		&protocol.Empty{Kind: protocol.KindAttachment},
		&protocol.Port{},
		&protocol.Port{Close: "p"},
		&protocol.Connect{Port: "p", Accepts: true, Members: v.members},
		&protocol.ConnectBody{Mine: v.set, Theirs: v.set, Job: v.job, IDs: 4},
		&protocol.Service{Do: protocol.Publish, Name: "n", Port: "p"},
	}
}

func (v *values) memory() []protocol.Message {
	return []protocol.Message{
		&protocol.Common{ID: wire.ContextID{Creator: v.proc, Serial: 3}, Members: v.members, Bytes: 1 << 20, First: 4096, Have: 5},
		&protocol.LeaveCommon{Arena: 3, Off: 1 << 40},
		&protocol.CommonBody{X: v.extent},
		&protocol.Memory{Name: "m", Bytes: 1 << 40},
		&protocol.MemoryBody{Name: "m", Bytes: 1 << 40, Host: 3},
		&protocol.LeaveMemory{Name: "m"},
	}
}

func (v *values) tools() []protocol.Message {
	return []protocol.Message{
		&protocol.Empty{Kind: protocol.KindList},
		&protocol.Empty{Kind: protocol.KindUsed},
		&protocol.Empty{Kind: protocol.KindOps},
		&protocol.Empty{Kind: protocol.KindSets},
		&protocol.Collect{Wait: time.Second},
		&protocol.Resize{Set: "app://a", By: -4, Detach: true},
		&protocol.Resize{To: 8},
		&protocol.OpReport{
			Op:     v.op,
			Kind:   change.Grow,
			Inputs: v.names,
			Before: 4,
			After:  6,
			Joins:  2,
			Leaves: 1,
			COL:    9,
			Waits:  "w",
			For:    time.Second,
		},
		&protocol.SetReport{
			Set:     v.names[0],
			Names:   []string{"app://b"},
			Size:    4,
			Living:  3,
			Watched: 2,
			Main:    true,
			Op:      3,
			Made:    "grow",
			Of:      []uint32{4, 5},
			Pending: true,
		},
		&protocol.StackReport{
			ProcInfo: protocol.ProcInfo{Proc: v.proc, Rank: 1, Size: 2, World: 3, PID: 4, State: protocol.Exited, How: "h"},
			Answered: true,
			Silent:   "why",
			Host:     "h1",
			Sets:     []uint32{4, 1},
			Used:     v.used,
			Calls:    []callreg.Entry{v.call},
			Queues:   []byte("q"),
			Stacks:   []byte("s"),
		},
	}
}

func (v *values) commands() []protocol.Message {
	frame := []byte("f")
	return []protocol.Message{
		&protocol.Command{Kind: protocol.CmdBind, Serial: 3, ID: 4, Count: 5},
		&protocol.Command{Kind: protocol.CmdUnbind, ID: 4},
		&protocol.Command{Kind: protocol.CmdSend, Serial: 3, Frame: frame},
		&protocol.Command{Kind: protocol.CmdWelcome, Serial: 3, Frame: frame},
		&protocol.Command{Kind: protocol.CmdSendLater, Serial: 3, Delay: time.Second, Frame: frame},
		&protocol.Command{Kind: protocol.CmdHost, Frame: frame},
		&protocol.Command{Kind: protocol.CmdContact, Serial: 3, ID: 7, Contact: &wire.Contact{Proc: v.proc, Host: 1, Segment: -1, Bell: -1}},
		&protocol.Command{Kind: protocol.CmdOver, Serial: 3, State: protocol.Exited},
		&protocol.Command{Kind: protocol.CmdAbandon, Serial: 3},
		&protocol.Command{Kind: protocol.CmdShut, Serial: 3, Text: "why"},
		&protocol.Command{Kind: protocol.CmdEnding, Text: "why"},
		&protocol.Command{Kind: protocol.CmdReserve, ID: 7, Count: 3},
		&protocol.Command{Kind: protocol.CmdCalls, ID: 7},
		&protocol.Command{Kind: protocol.CmdTaken, Serial: 3, Count: 4096},
		&protocol.Command{Kind: protocol.CmdTool, ID: 7, Frame: frame},
	}
}

func (v *values) pageCommands() []protocol.Message {
	return []protocol.Message{
		&protocol.Command{Kind: protocol.CmdSubscribe, Serial: 3, ID: 7, Members: v.members, Page: v.page, Frame: []byte("f")},
		&protocol.Command{Kind: protocol.CmdPage, Page: v.page},
		&protocol.Command{Kind: protocol.CmdPreallocate, ID: 7, Members: v.members},
		&protocol.Command{Kind: protocol.CmdRetract, ID: 7},
	}
}

func (v *values) reports() []protocol.Message {
	behind := protocol.Stragglers{N: 2, First: []uint32{5, 9}}
	silent := protocol.Stragglers{N: 1, First: []uint32{8}}
	return []protocol.Message{
		&protocol.Report{Kind: protocol.ReportHello, Serial: 3},
		&protocol.Report{Kind: protocol.ReportFrame, Serial: 3, Frame: protocol.Frame{Kind: protocol.KindGet, ID: 9, Body: []byte("b")}},
		&protocol.Report{Kind: protocol.ReportHungUp, Serial: 3},
		&protocol.Report{Kind: protocol.ReportStarted, Serial: 3, PID: 10},
		&protocol.Report{Kind: protocol.ReportExited, Serial: 3, Text: "how", Clean: true},
		&protocol.Report{Kind: protocol.ReportLost, Serial: 3, Text: "how"},
		&protocol.Report{Kind: protocol.ReportFreed, Serial: 3},
		&protocol.Report{Kind: protocol.ReportReserved, ID: 7, Count: 9, Text: "why"},
		&protocol.Report{Kind: protocol.ReportCalls, ID: 7, Serial: 3, Used: v.used, Calls: []callreg.Entry{v.call}},
		&protocol.Report{Kind: protocol.ReportTool, ID: 7, Frame: protocol.Frame{Kind: protocol.KindList, ID: 9, Body: []byte("b")}},
		&protocol.Report{Kind: protocol.ReportMore, ID: 7},
		&protocol.Report{Kind: protocol.ReportNoMore, ID: 7},
		&protocol.Report{
			Kind:      protocol.ReportStatusWord,
			Set:       4,
			Change:    2,
			Word:      change.IsCommitted,
			Iteration: 8,
			Stuck:     protocol.Stuck{At: 4, Behind: behind, Silent: silent},
		},
		&protocol.Report{
			Kind:     protocol.ReportProgress,
			Set:      4,
			Change:   3,
			Progress: protocol.Progress{Of: protocol.PageAsk, Least: 1, Most: 1 << 40, Begun: 3, Mean: time.Millisecond, Bytes: 9, Reports: 5},
			Stuck:    protocol.Stuck{Behind: silent},
		},
	}
}

func (v *values) launches() []protocol.Message {
	return []protocol.Message{
		&protocol.LaunchCommand{
			Kind:   2,
			Proc:   v.proc,
			Signal: 9,
			Stream: 1,
			Count:  3,
			Clean:  true,
			Text:   "how",
			Data:   []byte("d"),
			Starts: []protocol.LaunchStart{{
				StartProc: protocol.StartProc{Proc: v.proc, Argv: []string{"prog", ""}, Rank: 1, Size: 2},
				First:     true,
				App:       1,
			}},
		},
		&protocol.LaunchEvent{
			Kind:   2,
			Proc:   v.proc,
			Signal: 9,
			Core:   true,
			Code:   255,
			PID:    7,
			Stream: 2,
			Closed: true,
			Text:   "how",
			Data:   []byte("d"),
		},
	}
}

func (v *values) foreign() []protocol.Message {
	return []protocol.Message{
		&protocol.Greet{Version: "v1", Job: v.job, Port: "p", Key: [protocol.KeyBytes]byte{1, 2}},
		&protocol.JobMessage{
			Kind:    protocol.JobAccepted,
			ID:      1 << 40,
			By:      v.proc,
			Proc:    v.proc.Next(1),
			Members: v.members,
			Number:  4,
			Port:    "p",
			Text:    "t",
			Addrs:   []string{"a:1"},
		},
		&protocol.Job{Kind: protocol.KindForeignJob, Job: v.job},
		&protocol.Job{Kind: protocol.KindReachable, Job: v.job},
	}
}

func (v *values) replies() []protocol.Message {
	return []protocol.Message{
		&protocol.Reply{Body: []byte("body")},
		&protocol.Reply{Status: protocol.StatusGone, Proc: v.proc, Text: "t"},
		&protocol.Reply{Status: protocol.StatusNotFound, Text: "t"},
		&protocol.Reply{Status: protocol.StatusSetGone, Text: "t"},
		&protocol.Reply{Status: protocol.StatusUndecided, Text: "t"},
		&protocol.Reply{Status: protocol.StatusTooMany, Text: "t"},
	}
}
