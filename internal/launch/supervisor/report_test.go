// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// The limit of --timeout is that of the processes. A job whose last process has ended is
// not late: neither while its output is still read, nor where the end is not known yet
// when the limit passes, nor while the report is made.
func TestTimeoutAfterTheEnd(t *testing.T) {
	one := func() []protocol.StackReport { return make([]protocol.StackReport, 1) }
	exit := launch.Event{Kind: launch.EvExited, Proc: wire.ProcID{Job: 1, Serial: 1}}
	for name, c := range map[string]struct {
		stacks func(end func()) []protocol.StackReport
		before func(sv *Supervisor) // when the limit passes
		late   bool
	}{
		"it runs":                                         {stacks: func(func()) []protocol.StackReport { return one() }, late: true},
		"it has left, and runs":                           {stacks: func(func()) []protocol.StackReport { return nil }, late: true},
		"output is still read":                            {before: func(sv *Supervisor) { sv.HandleEvent(0, exit); sv.over() }},
		"its end is not known yet":                        {before: func(sv *Supervisor) { sv.Post(func() { sv.HandleEvent(0, exit) }) }},
		"it ends while the report is made":                {stacks: func(end func()) []protocol.StackReport { end(); return one() }},
		"it has left, and its end comes after the report": {stacks: func(end func()) []protocol.StackReport { go end(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, plane := &farHost{}, &noPlane{}
				sv := New(&launch.Options{Apps: []launch.App{{NP: 1, Argv: []string{"x"}}}}, 1)
				sv.Serve(plane, far)
				far.tell = func(ev launch.Event) { sv.HandleEvent(0, ev) }
				if err := sv.launch(); err != nil {
					t.Fatal(err)
				}
				plane.stacks = func() []protocol.StackReport {
					if c.stacks == nil {
						t.Error("a report is made")
						return nil
					}
					return c.stacks(func() { sv.Post(func() { sv.HandleEvent(0, exit) }) })
				}
				if c.before != nil {
					c.before(sv)
				}
				sv.timeOut()
				for range 2 {
					synctest.Wait()
					sv.runPosted()
					time.Sleep(2 * reportWait) //archtest:sleep virtual time
				}
				sv.runPosted()
				said := strings.Contains(strings.Join(far.said, "\n"), "did not end within")
				if want := map[bool]int{true: launch.ExitTimeout}[c.late]; sv.exit() != want || said != c.late || sv.ending != c.late {
					t.Errorf("status %d, want %d; said %v, ending %v\n%s", sv.exit(), want, said, sv.ending, strings.Join(far.said, "\n"))
				}
			})
		})
	}
}

// The report of a job says for each operation under way why it waits, and leaves out those
// that are over.
func TestReportOfChanges(t *testing.T) {
	ops := []protocol.OpReport{
		{Op: protocol.OpBody{Op: 1, State: change.Done}, Kind: change.Grow, Waits: "nothing"},
		{Op: protocol.OpBody{Op: 2, State: change.Adopting}, Kind: change.Shrink, Waits: "the votes of rank 3", For: 1500 * time.Millisecond},
	}
	text := Report("job", nil, ops)
	if want := "operation 2 (shrink), adopting for 1.5 s, waits for the votes of rank 3\n"; !strings.HasSuffix(text, want) || strings.Contains(text, "operation 1") {
		t.Errorf("%q, want %q", text, want)
	}
}
