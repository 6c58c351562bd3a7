// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/base/wire"
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
		before func(h *Head) // when the limit passes
		late   bool
	}{
		"it runs":                                         {stacks: func(func()) []protocol.StackReport { return one() }, late: true},
		"it has left, and runs":                           {stacks: func(func()) []protocol.StackReport { return nil }, late: true},
		"output is still read":                            {before: func(h *Head) { h.Hear(0, exit); h.over() }},
		"its end is not known yet":                        {before: func(h *Head) { h.Post(func() { h.Hear(0, exit) }) }},
		"it ends while the report is made":                {stacks: func(end func()) []protocol.StackReport { end(); return one() }},
		"it has left, and its end comes after the report": {stacks: func(end func()) []protocol.StackReport { go end(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, plane := &farHost{}, &noPlane{}
				h := New(&launch.Options{Apps: []launch.App{{NP: 1, Argv: []string{"x"}}}}, 1)
				h.Serve(plane, far)
				far.tell = func(ev launch.Event) { h.Hear(0, ev) }
				if err := h.launch(); err != nil {
					t.Fatal(err)
				}
				plane.stacks = func() []protocol.StackReport {
					if c.stacks == nil {
						t.Error("a report is made")
						return nil
					}
					return c.stacks(func() { h.Post(func() { h.Hear(0, exit) }) })
				}
				if c.before != nil {
					c.before(h)
				}
				h.timedOut()
				for range 2 {
					synctest.Wait()
					h.runPosted()
					time.Sleep(2 * reportWait) //archtest:sleep virtual time
				}
				h.runPosted()
				said := strings.Contains(strings.Join(far.said, "\n"), "did not end within")
				if want := map[bool]int{true: launch.ExitTimeout}[c.late]; h.exit() != want || said != c.late || h.ending != c.late {
					t.Errorf("status %d, want %d; said %v, ending %v\n%s", h.exit(), want, said, h.ending, strings.Join(far.said, "\n"))
				}
			})
		})
	}
}
