// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// FuzzState: no sequence of frames hurts head and agent, whoever sends them.
func FuzzState(f *testing.F) {
	var seed []byte
	for _, m := range controltest.Samples(6) {
		seed = append(append(seed, 1), protocol.ShortFrame(3, 0, m)...)
		seed = append(append(seed, 2), protocol.ShortFrame(0, 0, m)...)
		f.Add(seed)
	}
	// All members of the first world watch it, and make it grow.
	join := []protocol.Message{
		&protocol.Subscribe{Set: 1, Options: protocol.Options{Step: 1}},
		&protocol.Submit{Request: change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}}, Parts: make([]protocol.SubmitPart, 1)},
		&protocol.Await{Op: 1, Until: change.Done},
		&protocol.StatusWord{Set: 1, Change: 1}, &protocol.GetChange{Set: 1, Change: 1},
	}
	seed = nil
	for i, m := range join {
		id := uint32(1 + i)
		if protocol.KindOf(m) == protocol.KindStatusWord {
			id = 0
		}
		for p := range byte(3) {
			seed = append(append(seed, p), protocol.ShortFrame(id, 0, m)...)
		}
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachines(head.Config{Job: 6, Spawns: true, Launches: true, FaultTolerant: true, Slots: 9}, 1, nil)
		defer m.agents[0].Close()
		var places []place
		connected := map[place]bool{}
		begin := func(p place) {
			places = append(places, p)
			m.agents[0].Started(p.ProcID, 10)
			connected[p] = m.hello(p) == nil
		}
		m.launched = begin
		a := m.agents[0]
		first, _ := m.start(3, 0)
		for _, p := range first {
			begin(p)
		}
		m.settle()
		for len(data) > protocol.FrameHead {
			p := places[int(data[0])%len(places)]
			fr, n, err := protocol.ParseHead(data[1:])
			if err != nil || len(data) < 1+protocol.FrameHead+n {
				break
			}
			fr.Body = data[1+protocol.FrameHead:][:n]
			data = data[1+protocol.FrameHead+n:]
			if !connected[p] {
				continue
			}
			if _, err := a.Frame(p.Serial, fr); err != nil {
				a.HungUp(p.Serial)
				connected[p] = false
			}
			m.settle()
			if left := len(data); left%5 == 0 {
				a.Exited(p.ProcID, "x", left%2 == 0)
			}
			m.settle()
		}
		for _, p := range places {
			if connected[p] {
				a.HungUp(p.Serial)
			}
			a.Exited(p.ProcID, "end", true)
		}
		m.settle()
		for what, n := range m.sizes() {
			if n != 0 && what != "store" && what != "bytes in store" && what != "arenas" {
				t.Errorf("left: %d %s", n, what)
			}
		}
	})
}
