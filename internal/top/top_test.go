// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) //archtest:global a moment, which never changes

// proc is a process that has counted n times what each second brings to it.
func proc(rank, size int, seconds float64) protocol.StackReport {
	n := uint64(seconds * float64(rank+1))
	return protocol.StackReport{
		ProcInfo: protocol.ProcInfo{Proc: wire.ProcID{Job: 7, Serial: uint32(rank + 1)}, Rank: rank, Size: size, PID: 1000 + rank, State: protocol.Joined},
		Host:     fmt.Sprintf("h%d", rank*2/size), Sets: []uint32{4},
		Used: protocol.Used{At: time.Hour + time.Duration(seconds*float64(time.Second)), CPU: time.Duration(seconds*250) * time.Millisecond, Memory: 6_000_000,
			Counters: callreg.Counters{Sent: 10 * n, SentBytes: 1000 * n, Received: 20 * n, ReceivedBytes: 2000 * n, Collectives: 5 * n}},
	}
}

// job is a sample of so many processes on two hosts, so long after noon.
func job(size int, seconds float64) Sample {
	s := Sample{When: noon.Add(time.Duration(seconds * float64(time.Second))),
		Sets: []protocol.SetReport{{Set: protocol.SetName{Number: 4, Name: "gompi://7/4"}, Size: size, Living: size, Watched: size, Main: true},
			{Set: protocol.SetName{Number: 3, Name: "gompi://host/h0"}, Size: 2, Living: 2}}}
	for rank := range size {
		s.Procs = append(s.Procs, proc(rank, size, seconds))
	}
	return s
}

func viewed(samples ...Sample) *View {
	v := &View{Title: "job 7  prog", Describe: func(r *protocol.OpReport) string { return fmt.Sprintf("change %d %v", r.Op.Op, r.Op.State) }}
	for _, s := range samples {
		v.Add(s)
	}
	return v
}

func page(v *View, width, height int) string {
	var b strings.Builder
	for _, l := range v.Lines(width, height, v.sample.When) {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

func TestPage(t *testing.T) {
	first, s := job(3, 0), job(3, 2)
	s.Procs[0].Calls = []callreg.Entry{{Op: "Recv", Peer: 2, PeerProc: s.Procs[2].Proc, Since: s.When.Add(-1500 * time.Millisecond), Caller: "a.go:7 main.f"}}
	s.Procs[1].Calls = []callreg.Entry{{Op: "Barrier", Peer: callreg.NoPeer, Since: s.When.Add(time.Second)}} // by a clock that is ahead
	s.Procs = append(s.Procs, protocol.StackReport{ProcInfo: protocol.ProcInfo{Proc: wire.ProcID{Job: 7, Serial: 9}, Name: "new.0", State: protocol.Starting}, Host: "h1"},
		protocol.StackReport{ProcInfo: protocol.ProcInfo{State: protocol.Spare}})
	s.Ops = []protocol.OpReport{{Op: protocol.OpBody{Op: 1, State: change.Done}}, {Op: protocol.OpBody{Op: 2, State: change.Launching}}, {Op: protocol.OpBody{Op: 3, State: change.Refused}}}
	v := viewed(first, s)
	want := `job 7  prog  12:00:02
4 processes on 2 hosts and 1 spare: CPU 75%, 18 MB of memory, 60 messages/s of 6.0 kB/s, 30 collectives/s
sets: main (3, watched)
change 2 launching
change 3 refused
change 1 done
PROCESS*   HOST         SETS              PID   CPU%     MEM  SENT/s  RECV/s B/s OUT  B/s IN  COLL/s WAITS IN
rank 0     h0           main             1000     25    6.0M      10      20    1.0k    2.0k       5 Recv, rank 2 1.5 s at a.go:7 main.f
rank 1     h0           main             1001     25    6.0M      20      40    2.0k    4.0k      10 Barrier
rank 2     h1           main             1002     25    6.0M      30      60    3.0k    6.0k      15 -
new.0      h1                               0      -       0       -       -       -       -       - starting
q quit  s sort  r reverse  h hosts
`
	if got := page(v, 150, 12); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var styles []Style
	for _, l := range v.Lines(150, 12, s.When) {
		styles = append(styles, l.Style)
	}
	if want := []Style{Strong, Plain, Plain, Moving, Plain, Plain, Bar, Plain, Plain, Plain, New, Faint}; !slices.Equal(styles, want) {
		t.Errorf("styles %v, want %v", styles, want)
	}

	s = job(3, 4)
	s.Procs[1].State, s.Procs[1].How = protocol.Exited, "signal: killed\x1b[2J"
	v.Add(s)
	v.Hosts = true
	want = `job 7  prog  12:00:04
2 processes on 2 hosts: CPU 50%, 12 MB of memory, 40 messages/s of 4.0 kB/s, 20 collectives/s
sets: main (3, watched)
HOST*             RANKS   CPU%     MEM  SENT/s  RECV/s B/s OUT  B/s IN  COLL/s WAITS IN
h0                    1     25    6.0M      10      20    1.0k    2.0k       5 -
h1                    1     25    6.0M      30      60    3.0k    6.0k      15 -


q quit  s sort  r reverse  h processes
`
	if got := page(v, 100, 9); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if v.Hosts = false; !strings.Contains(page(v, 150, 12), "- signal: killed?[2J\n") {
		t.Errorf("the end of rank 1 is not there:\n%s", page(v, 150, 12))
	}
	s.When = s.When.Add(freshFor)
	if v.Add(s); strings.Contains(page(v, 150, 12), "rank 1") {
		t.Errorf("its end is there for ever:\n%s", page(v, 150, 12))
	}
	if late := v.Lines(80, 12, s.When.Add(4*time.Second))[1]; late.Text != "gompirun has not answered for 4.0 s" || late.Style != Moving {
		t.Errorf("a late answer: %+v", late)
	}
}

// Whatever size a terminal has, the page fits it, and the heading is there from two
// lines on.
func TestPageFits(t *testing.T) {
	s := job(1000, 1)
	s.Ops = []protocol.OpReport{{Op: protocol.OpBody{Op: 1, State: change.Done}}}
	v := viewed(job(1000, 0), s)
	for _, width := range []int{1, 5, 20, 40, 60, 80, 132, 300} {
		for height := range 30 {
			lines := v.Lines(width, height, s.When)
			if len(lines) != height {
				t.Errorf("%d x %d: %d lines", width, height, len(lines))
			}
			heading := false
			for _, l := range lines {
				heading = heading || l.Style == Bar
				if n := utf8.RuneCountInString(l.Text); n > width {
					t.Errorf("%d x %d: a line of %d letters: %s", width, height, n, l.Text)
				}
			}
			if height >= 2 && !heading {
				t.Errorf("%d x %d: no heading", width, height)
			}
		}
	}
	if got := page(v, 80, 8); !strings.Contains(got, "PROCESS*     CPU%     MEM  SENT/s  RECV/s B/s OUT  B/s IN WAITS IN\n") {
		t.Errorf("on 80 columns:\n%s", got)
	}
	if v := viewed(); len(v.Lines(80, 24, noon)) != 24 || v.Act("s") {
		t.Error("without a sample")
	}
}

func TestScrollAndSort(t *testing.T) {
	v := viewed(job(1000, 0), job(1000, 2))
	shown := func() (names []string) {
		for _, l := range v.Lines(80, 14, v.sample.When)[4:13] {
			names = append(names, strings.Join(strings.Fields(l.Text)[:2], " "))
		}
		return names
	}
	for _, c := range []struct {
		keys        string
		first, last string
	}{
		{"", "rank 0", "rank 8"},
		{"Down Down PgDn", "rank 11", "rank 19"},
		{"Up", "rank 10", "rank 18"},
		{"End PgDn", "rank 991", "rank 999"},
		{"PgUp k", "rank 981", "rank 989"},
		{"Home", "rank 0", "rank 8"},
		{"r", "rank 999", "rank 991"},
		{"r s s s s", "rank 999", "rank 991"}, // host, cpu, mem, sent
		{"S S S S", "rank 0", "rank 8"},
		{"Up Up g", "rank 0", "rank 8"},
	} {
		for _, k := range strings.Fields(c.keys) {
			if v.Act(k) {
				t.Errorf("%s quits", k)
			}
		}
		if got := shown(); got[0] != c.first || got[8] != c.last {
			t.Errorf("after %s: %v by %s", c.keys, got, v.Key)
		}
	}
	if got := page(v, 80, 14); !strings.Contains(got, "\n1-9 of 1000  q quit") {
		t.Errorf("footer:\n%s", got)
	}
	v.Act("h")
	if got := page(v, 80, 14); !strings.Contains(got, "\nh0                  500") || !strings.Contains(got, "\nh1                  500") {
		t.Errorf("hosts:\n%s", got)
	}
	for _, k := range []string{"q", "Esc", "Ctrl-C"} {
		if !v.Act(k) {
			t.Errorf("%s does not quit", k)
		}
	}
}

// Rates are there from the second look on, are those of the time between two, and not of
// a moment.
func TestRates(t *testing.T) {
	var h History
	at := func(seconds float64) *Row {
		s := job(1, seconds)
		return &h.Rows(&s)[0]
	}
	if r := at(10); r.Known {
		t.Errorf("at once: %+v", r.Rates)
	}
	want := Rates{CPU: 0.25, Sent: 10, SentBytes: 1000, Received: 20, ReceivedBytes: 2000, Collectives: 5}
	for _, seconds := range []float64{12, 12.1, 14} {
		if r := at(seconds); !r.Known || r.Rates != want {
			t.Errorf("at %v: %+v, want %+v", seconds, r.Rates, want)
		}
	}
	if r := at(3); r.Known {
		t.Errorf("another clock: %+v", r.Rates)
	}
	if r := at(4); !r.Known || r.Rates != want {
		t.Errorf("by that clock: %+v", r.Rates)
	}
	s := job(1, 6)
	s.Procs[0].Used.Sent = 1
	if r := h.Rows(&s)[0]; r.Known {
		t.Errorf("a number that shrinks: %+v", r.Rates)
	}
	s = job(1, 8)
	s.Procs[0].Used = protocol.Used{}
	if r := h.Rows(&s)[0]; r.Known {
		t.Errorf("not seen: %+v", r.Rates)
	}
}

func TestAmounts(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.42: "0.4", 9.9: "9.9", 9.96: "10", 7: "7", 999.4: "999", 999.6: "1.0k", 1234: "1.2k", 56789: "57k", 999600: "1.0M", 6e9: "6.0G", 1e22: "10000E"} {
		if got := amount(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}

// Lines of JSON have all fields in every line; a change is told once in each state.
func TestJSON(t *testing.T) {
	var out strings.Builder
	j := JSON{Job: "07", Out: &out}
	first := job(2, 0)
	j.Begin(&first)
	write := func(seconds float64, state change.State) (lines []map[string]any) {
		out.Reset()
		s := job(2, seconds)
		s.Procs[0].Calls = []callreg.Entry{{Op: "Recv", Peer: callreg.AnyPeer, Since: s.When.Add(-time.Second), Caller: "a.go:7 main.f"}}
		s.Procs = append(s.Procs, protocol.StackReport{ProcInfo: protocol.ProcInfo{Proc: wire.ProcID{Job: 7, Serial: 9}, Name: "new.0", State: protocol.Starting}})
		s.Ops = []protocol.OpReport{{Op: protocol.OpBody{Op: 3, State: state}, Kind: change.Grow, Inputs: []protocol.SetName{{Name: "gompi://main"}}, Before: 2, After: 3, Joins: 1, Waits: "new.0 to join"}}
		if err := j.Write(&s); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(out.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			lines = append(lines, m)
		}
		return lines
	}
	lines := write(2, change.Launching)
	kinds := func() (kinds []string) {
		for _, l := range lines {
			kinds = append(kinds, fmt.Sprint(l["top"]))
		}
		return kinds
	}
	if got := kinds(); !slices.Equal(got, []string{"job", "process", "process", "process", "change"}) {
		t.Fatalf("lines of %v", got)
	}
	for i, want := range []map[string]any{
		{"job": "07", "time": "2026-11-23T12:00:02.000Z", "processes": 3., "hosts": 3., "main": 2., "cpu": 0.5, "memory_bytes": 12e6},
		{"process": 1., "name": "rank 0", "host": "h0", "cpu": 0.25, "sent_per_sec": 10., "received_bytes_per_sec": 2000., "sent": 20., "waits_in": "Recv", "waits_for": "any rank", "waits_sec": 1., "waits_at": "a.go:7 main.f"},
		{"rank": 1., "state": "joined", "collectives_per_sec": 10., "waits_in": nil, "waits_for": nil, "waits_sec": nil},
		{"name": "new.0", "state": "starting", "cpu": nil, "sent_per_sec": nil, "sent": 0.},
		{"op": 3., "kind": "grow", "state": "launching", "over": false, "before": 2., "after": 3., "joins": 1., "waits_for": "new.0 to join"},
	} {
		for k, v := range want {
			if got, is := lines[i][k]; !is || got != v {
				t.Errorf("line %d: %s is %v, want %v", i, k, got, v)
			}
		}
	}
	if sets := lines[1]["sets"]; fmt.Sprint(sets) != "[gompi://7/4]" {
		t.Errorf("sets %v", sets)
	}
	if lines = write(4, change.Launching); len(lines) != 4 {
		t.Errorf("the same state again: %v", kinds())
	}
	if lines = write(6, change.Done); len(lines) != 5 || lines[4]["over"] != true {
		t.Errorf("a new state: %v", kinds())
	}
}
