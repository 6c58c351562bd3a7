// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Where sets live on beside their results, a process that awaits the commit hears of it when
// the change is over on the pages of all hosts: no call of Query that begins then sees it.
func TestCommittedWhenOver(t *testing.T) {
	for hosts := 1; hosts <= 2; hosts++ {
		t.Run(fmt.Sprintf("%d hosts", hosts), func(t *testing.T) {
			w := watchingWith(t, hosts, 3, protocol.Options{Step: 1, Lookahead: 1, Stay: true})
			b := w.taken(1, change.Request{Kind: change.Sub, In: []uint32{1}, Leave: 1})
			o := w.h.ops[b.Op]
			for range 20 {
				for serial := range uint32(3) {
					w.check(w.procs[serial+1])
				}
				for len(w.reports) > 0 && o.body.State < change.Committed {
					w.deliver()
				}
			}
			if o.body.State != change.Committed {
				t.Fatalf("%+v", o.body)
			}
			var got protocol.OpBody
			if err := w.got(1, &protocol.Await{Op: b.Op, Until: change.Committed}, &got); err == nil {
				t.Errorf("answered before the hosts have said that it is over: %+v", got)
			}
			for len(w.reports) > 0 {
				w.deliver()
			}
			if err := w.last.Err(); err != nil {
				t.Errorf("when they have: %v", err)
			}
		})
	}
}
