// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

func TestAskedFor(t *testing.T) {
	for args, want := range map[string]protocol.Resize{
		"j +4":                   {By: 4},
		"j -4":                   {By: -4},
		"j =8 --detach":          {To: 8, Detach: true},
		"--set main j -1":        {By: -1, Set: "gompi://main"},
		"j --set=workers +1":     {By: 1, Set: "app://workers"},
		"j +1 --set mpi://WORLD": {By: 1, Set: "mpi://WORLD"},
	} {
		job, m, err := resizeRequest(strings.Fields(args))
		if err != nil || job != "j" || *m != want {
			t.Errorf("%s: %s %+v %v", args, job, m, err)
		}
	}
}

// grown is an operation that is done.
func grown() *protocol.OpReport {
	return &protocol.OpReport{
		Op: protocol.OpBody{Op: 3, State: change.Done, Iteration: 119, Times: protocol.OpTimes{
			Asked: time.Now(), Granted: 100 * time.Microsecond, Ordered: 200 * time.Microsecond,
			Ready: 15 * time.Millisecond, Adopted: 25 * time.Millisecond, Decided: 26 * time.Millisecond, Gone: 26 * time.Millisecond}},
		Kind: change.Grow, Inputs: []protocol.SetName{{Number: 4, Name: "gompi://job/4"}}, Before: 4, After: 6, Joins: 2,
	}
}

func TestOutcome(t *testing.T) {
	var out bytes.Buffer
	if err := outcome(&out, grown(), "ab"); err != nil {
		t.Fatal(err)
	}
	want := `gompi://job/4: 4 -> 6 processes, committed (operation 3)
  granted      0.100 ms
  ordered      0.200 ms   the first start
  ready         15.0 ms   2 newcomers have joined
  adopted       25.0 ms   from iteration 118 on
  decided       26.0 ms   committed
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}

	out.Reset()
	r := grown()
	r.Op.State = 12
	if err := outcome(&out, r, "ab"); err == nil || !strings.HasPrefix(err.Error(), "operation 3 is in state 12: the job's gompirun is of a newer version") || out.Len() > 0 {
		t.Errorf("a state of later: %v\n%s", err, out.String())
	}
	if text := line(r, time.Second); text != "gompi://job/4: 4 -> 6 processes, state 12 (1.0 s)" {
		t.Errorf("a state of later: %s", text)
	}
	r.Op.State, r.Waits, r.For = change.Launching, "new.1 to join", 1200*time.Millisecond
	if why := reason(r); why != "waits for new.1 to join (1.2 s)" {
		t.Errorf("why: %s", why)
	}

	r = grown()
	r.Op.State, r.Op.Iteration, r.Joins = change.Queued, 0, 0
	if err := outcome(&out, r, "ab"); err != nil || out.String() != "operation 3 is queued: gompictl ops ab shows how far it is\n" {
		t.Errorf("detached: %q, %v", out.String(), err)
	}

	r.Op.State, r.Op.Why, r.Op.Text = change.Refused, protocol.WhyNoWatch, change.ErrNoWatch.Error()
	if err := outcome(io.Discard, r, "ab"); err == nil || !strings.Contains(err.Error(), "gompi://job/4 is as it was: refused: nobody can follow") || !strings.Contains(err.Error(), "docs/sessions.md") {
		t.Errorf("refused: %v", err)
	}
	out.Reset()
	r.Op.State, r.Op.Why, r.Op.Text = change.RolledBack, protocol.WhyDied, "a process of the change died"
	if err := outcome(&out, r, "ab"); err == nil || !strings.Contains(err.Error(), "rolled back: a process of the change died") || !strings.Contains(out.String(), "decided       26.0 ms   rolled back") {
		t.Errorf("rolled back: %v\n%s", err, out.String())
	}
}

// What came of an operation that was to be withdrawn: one that was committed is an error.
func TestCancelled(t *testing.T) {
	r := grown()
	for state, want := range map[change.State]string{
		change.Committed: "!operation 3 is committed: gompi://job/4: 4 -> 6 processes", change.Done: "!operation 3 is done: gompi://job/4: 4 -> 6 processes",
		change.Cancelled:  "operation 3 is cancelled: why; gompi://job/4 is as it was\n",
		change.RolledBack: "operation 3 is rolled back: why; gompi://job/4 is as it was\n",
		change.Adopting:   "!operation 3 is adopting",
	} {
		r.Op.State, r.Op.Text = state, "why"
		var out bytes.Buffer
		got := ""
		if err := cancelled(terminal{out: &out}, r); err != nil {
			got = "!" + err.Error()
		}
		if got += out.String(); got != want {
			t.Errorf("%v: %q, want %q", state, got, want)
		}
	}
}

// What a program has said for the resource manager is shown by its length.
func TestListOps(t *testing.T) {
	for bytes, want := range map[int][]string{
		0:   {"OP ASKED KIND SET PROCESSES STATE TIMES WHY", " -"},
		512: {"OP ASKED KIND SET PROCESSES STATE TIMES COL WHY", " 512 B -"},
	} {
		r := grown()
		r.COL = bytes
		var out strings.Builder
		if err := listOps(&out, []protocol.OpReport{*r}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if head, line := strings.Join(strings.Fields(lines[0]), " "), strings.Join(strings.Fields(lines[1]), " "); head != want[0] || !strings.HasSuffix(line, want[1]) || strings.Contains(line, " B ") != (bytes > 0) {
			t.Errorf("%d bytes: %q", bytes, lines)
		}
	}
}

// What comes while a tool waits is shown at once, on one line that is gone in the
// end.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	bad := errors.New("bad")
	last, err := follow(&out, func(news func(*protocol.OpReport)) error {
		r := grown()
		r.Op.State, r.Waits = change.Launching, "1 of 2 newcomers"
		news(r)
		news(grown())
		return bad
	})
	if err != bad || last == nil || last.Op.State != change.Done {
		t.Errorf("%+v, %v", last, err)
	}
	lines := strings.Split(out.String(), "\r")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "gompi://job/4: 4 -> 6 processes, launching, waits for 1 of 2 newcomers (") || lines[3] != "\x1b[K" {
		t.Errorf("%q", lines)
	}
}

// family is a set, another that is made of it, and one that may come of both.
func family() []protocol.SetReport {
	return []protocol.SetReport{
		{Set: protocol.SetName{Number: 1, Name: "gompi://job/1"}, Names: []string{`app://<"a">`}, Size: 4, Living: 4, Watched: 4},
		{Set: protocol.SetName{Number: 2, Name: "gompi://job/2"}, Size: 1, Living: 1, Made: "grow", Op: 3, Of: []uint32{1, 99}},
		{Set: protocol.SetName{Number: 7, Name: "gompi://job/7"}, Size: 5, Living: 4, Watched: 2, Main: true, Made: "union", Of: []uint32{1, 2}, Pending: true},
	}
}

func TestGraph(t *testing.T) {
	list := family()
	var out bytes.Buffer
	if err := dot(&out, list); err != nil {
		t.Fatal(err)
	}
	want := `digraph sets {
	rankdir=LR;
	node [shape=box];
	s1 [label="gompi://job/1\napp://<\"a\">\n4 processes, watched"];
	s2 [label="gompi://job/2\n1 process"];
	s7 [label="gompi://job/7\ngompi://main\n4 of 5 processes, watched", style=dashed];
	s1 -> s2 [label="grow 3"];
	s1 -> s7 [label="union", style=dashed];
	s2 -> s7 [label="union", style=dashed];
}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if got := origin(&list[1], list); got != "grow 3 of gompi://job/1, a set that is gone" {
		t.Error(got)
	}
	for _, n := range []int{0, 3} {
		out.Reset()
		if err := svg(&out, "job <1>", list[:n]); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&out)
		texts := 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "text" {
				texts++
			}
		}
		if want := n / 3 * (8 + 3); texts != want {
			t.Errorf("%d texts, want %d", texts, want)
		}
	}
	boxes, w, h := layout(list, edges(list))
	for i, b := range boxes {
		if b.x < 0 || b.y < 0 || b.x+b.w > w || b.y+b.h > h {
			t.Errorf("box %d: %+v in %v x %v", i, b, w, h)
		}
	}
	if !(boxes[0].x < boxes[1].x && boxes[1].x < boxes[2].x) || !reflect.DeepEqual(edges(list), []edge{{0, 1}, {0, 2}, {1, 2}}) {
		t.Errorf("%+v, %v", boxes, edges(list))
	}
}
