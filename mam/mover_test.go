// SPDX-License-Identifier: Apache-2.0

package mam

import "testing"

// TestMethods: each method has a mover, and has strategy NB if, and only if, that can start
// requests. Each strategy has a duty cycle.
func TestMethods(t *testing.T) {
	for m := COL; int(m) < len(methods); m++ {
		row := methods[m]
		if row.mover == nil {
			t.Errorf("%v has no mover", m)
			continue
		}
		starts := false
		if x, ok := row.mover(&reconfiguration{}).(*exchange); ok {
			_, starts = x.by.(starter)
		}
		if starts != row.requests {
			t.Errorf("%v: the table says of requests %v, the mover %v", m, row.requests, starts)
		}
		if row.carrier != Auto && methods[row.carrier].carrier != Auto {
			t.Errorf("%v is carried by %v, which is carried itself", m, row.carrier)
		}
	}
	for s := Blocking; int(s) < len(schedules); s++ {
		if row := schedules[s]; row.dutyCycle < 1 || row.dutyCycle > 100 || (row.polled || row.drains) && !row.background {
			t.Errorf("%v: %+v", s, row)
		}
	}
}
