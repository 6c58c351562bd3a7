// SPDX-License-Identifier: Apache-2.0

package onehost

import (
	"errors"
	"testing"

	"gompi/internal/control"
	"gompi/internal/control/controltest"
	"gompi/internal/head"
	"gompi/internal/wire"
)

// FuzzState: no sequence of frames hurts head and agent, whoever sends them.
func FuzzState(f *testing.F) {
	var seed []byte
	for _, m := range controltest.Samples(6) {
		seed = append(seed, control.AppendFrame([]byte{1}, 3, 0, m)...)
		seed = append(seed, control.AppendFrame([]byte{2}, 0, 0, m)...)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachines(head.Config{Job: 6, Spawns: true}, 1, nil)
		m.spawn = func(r *head.Spawn) { m.head.Spawned(r, wire.Set{}, errors.New("no room")) }
		a := m.agents[0]
		places, _ := m.start(3, 0, nil)
		connected := map[place]bool{}
		for _, p := range places {
			m.enter(p)
			connected[p] = true
		}
		for len(data) > control.FrameHead {
			p := places[data[0]%3]
			fr, n, err := control.ParseHead(data[1:])
			if err != nil || len(data) < 1+control.FrameHead+n {
				break
			}
			fr.Body = data[1+control.FrameHead:][:n]
			data = data[1+control.FrameHead+n:]
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
			if n != 0 && what != "store" && what != "bytes in store" {
				t.Errorf("left: %d %s", n, what)
			}
		}
	})
}
