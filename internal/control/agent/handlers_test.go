// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// TestHandlers holds that the agent handles each kind that concerns its host alone, passes those
// of the head on, and refuses what a process may not send.
func TestHandlers(t *testing.T) {
	own, passed := map[protocol.Kind]bool{}, map[protocol.Kind]bool{}
	for _, k := range protocol.Kinds(protocol.Process, protocol.Agent) {
		own[k] = true
	}
	for _, k := range protocol.Kinds(protocol.Process, protocol.Head) {
		passed[k] = true
	}
	for k := range 256 {
		if kind := protocol.Kind(k); (handlers[k] != nil) != own[kind] {
			t.Errorf("%v: the agent gets it: %v, it has a handler: %v", kind, own[kind], handlers[k] != nil)
		}
	}
	for _, m := range controltest.Samples(7) {
		a := New(7, 0, nil)
		a.procs[1] = &Proc{serial: 1, state: protocol.Joined, connected: true}
		f := protocol.Frame{Kind: protocol.KindOf(m), Body: protocol.Encode(m)}
		if f.Kind.Asks() {
			f.ID = 5
		}
		on, err := a.Frame(1, f)
		switch {
		case own[f.Kind] && (err != nil || on):
			t.Errorf("%v is handled: %v, passed on: %v", f.Kind, err, on)
		case passed[f.Kind] && (err != nil || !on):
			t.Errorf("%v is passed on: %v, %v", f.Kind, on, err)
		case !own[f.Kind] && !passed[f.Kind] && (err == nil || on || !strings.Contains(err.Error(), "does not belong here")):
			t.Errorf("%v: %v, passed on: %v", f.Kind, err, on)
		}
		a.Close()
	}
}
