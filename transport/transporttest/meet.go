// SPDX-License-Identifier: Apache-2.0

package transporttest

import "fmt"

// testUp: the callee of a connection gets EvUp once, before any other event; the
// caller does not get it. node.take does the checks.
func testUp(w *world) {
	ns := w.open(4)
	a := ns[0]
	for _, b := range ns[1:] {
		ab := w.connect(a, b)
		if again := w.connect(a, b); again.slot != ab.slot {
			w.t.Fatalf("a second Connect gives slot %d, the first gave %d", again.slot, ab.slot)
		}
		slot, err := a.tr.Connect(w.contact(b.proc, a.proc))
		if err != nil || slot != ab.slot {
			w.t.Fatalf("Connect to a connected process: slot %d, %v; want slot %d", slot, err, ab.slot)
		}
		w.must(a.send(ab, 10))
		w.wait("EvUp and the message", func() bool { p := b.peers[a.proc]; return p != nil && p.got == 1 })
		if p := b.peers[a.proc]; !p.up {
			w.t.Fatalf("%v has no EvUp of %v", b, a)
		}
		// The slot of EvUp is the slot of Connect, and answers go through.
		ba := w.connect(b, a)
		w.must(b.send(ba, 20))
		w.wait("the answer", func() bool { return ab.got == 1 })
	}
}

// testConnectBoth: both sides connect before either polls.
func testConnectBoth(w *world) {
	for i := range w.o.rounds(50) {
		ns := w.open(2)
		a, b := ns[0], ns[1]
		ab, ba := w.connect(a, b), w.connect(b, a)
		for range 1 + i%3 {
			w.must(a.send(ab, 30))
			w.must(b.send(ba, 40))
		}
		w.wait("crossed messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
		w.close(a)
		w.close(b)
		w.nodes = w.nodes[:0]
	}
}

// testConnectRace: all processes connect to all at the same time, in
// goroutines.
func testConnectRace(w *world) {
	const procs = 5
	for range w.o.rounds(20) {
		first := len(w.nodes)
		w.open(procs)
		ns := w.nodes[first:]
		w.run(ns, func(n *node) error {
			for _, to := range ns {
				if to == n {
					continue
				}
				p, err := n.peer(to)
				if err != nil {
					return err
				}
				if err := n.send(p, 64); err != nil {
					return err
				}
			}
			return n.until(fmt.Sprintf("%v hears from all", n), func() bool {
				for _, p := range n.peers {
					if p.got == 0 {
						return false
					}
				}
				return len(n.peers) == procs-1
			})
		})
		for _, n := range ns {
			w.close(n)
		}
		w.nodes = w.nodes[:0]
	}
}
