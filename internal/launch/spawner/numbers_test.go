// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

func TestNumbers(t *testing.T) {
	var s numbers
	var taken []int
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		if len(taken) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(taken))
			s.put(taken[i])
			taken = slices.Delete(taken, i, i+1)
		} else {
			want := 0
			for slices.Contains(taken, want) {
				want++
			}
			if got := s.take(); got != want {
				t.Fatalf("number %d with %v taken, want %d", got, taken, want)
			}
			taken = append(taken, want)
		}
		if s.used != len(taken) {
			t.Fatalf("%d in use, want %d", s.used, len(taken))
		}
	}
}

// spawned is a process that was not on the command line.
func spawned(serial uint32) launch.Start {
	s := launch.Start{Label: launch.Label{Serial: serial, Size: 1}}
	s.Proc = wire.ProcID{Job: 1, Serial: serial}
	return s
}

// The number of a process on the host is free again when it has ended, or has
// never been started.
func TestLocalNumbers(t *testing.T) {
	a := newChildTable()
	add := func(serial uint32) *child { return a.add(spawned(serial)) }
	ps := []*child{add(1), add(2), add(3)}
	a.began(ps[1], forkedChild{pid: 1002})
	a.ended(ps[1])
	if p := add(4); p.local != 1 {
		t.Errorf("number %d in place of one that has ended, want 1", p.local)
	}
	a.forget(ps[1]) // reaped: its number is another's
	a.forget(ps[0])
	if p, q := add(5), add(6); p.local != 0 || q.local != 3 {
		t.Errorf("numbers %d and %d, want 0 and 3", p.local, q.local)
	}
}

// What is spawned takes the place of those that have ended, also if these are
// not reaped yet, because others still use their pids.
func TestSpawnedPlace(t *testing.T) {
	a := &Spawner{childTable: newChildTable()}
	a.o, a.topo = &launch.Options{Bind: "core"}, cpus.Topology{Cores: []cpus.Set{{0, 4}, {1, 5}, {2, 6}, {3, 7}}}
	for serial := range uint32(12) {
		c := a.add(spawned(2 + serial))
		if a.began(c, forkedChild{pid: int(1000 + serial)}); serial > 0 {
			if got := a.place(c, 0, 1, false).String(); got != "1,5" {
				t.Errorf("process %d runs on %s", serial, got)
			}
			a.ended(c) // a zombie from now on
		}
	}
}
