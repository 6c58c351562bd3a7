// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/internal/wire"
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

// The number of a process on the host is free again when it has ended, or has
// never been started.
func TestLocalNumbers(t *testing.T) {
	tab, w := newTable(), &world{}
	add := func(serial uint32) *proc {
		p := &proc{world: w}
		p.Proc = wire.ProcID{Job: 1, Serial: serial}
		tab.add(p)
		return p
	}
	ps := []*proc{add(1), add(2), add(3)}
	tab.started(ps[1], 1002)
	tab.ended(ps[1])
	if p := add(4); p.local != 1 {
		t.Errorf("number %d in place of one that has ended, want 1", p.local)
	}
	tab.forget(ps[1]) // reaped: its number is another's
	tab.forget(ps[0])
	if p, q := add(5), add(6); p.local != 0 || q.local != 3 {
		t.Errorf("numbers %d and %d, want 0 and 3", p.local, q.local)
	}
}

// What is spawned takes the place of those that have ended, also if these are
// not reaped yet, because others still use their pids.
func TestSpawnedPlace(t *testing.T) {
	h := &head{o: &options{bind: "core"}, procs: newTable(), topo: twoSockets(cpus{0, 1, 2, 3, 4, 5, 6, 7})}
	w := &world{}
	add := func(serial uint32) *proc {
		p := &proc{world: w}
		p.Proc = wire.ProcID{Job: 1, Serial: serial}
		h.procs.add(p)
		h.procs.started(p, int(1000+serial))
		return p
	}
	for serial := range uint32(12) {
		if p := add(2 + serial); serial > 0 {
			if got := h.placeLater(p).String(); got != "1,5" {
				t.Errorf("process %d runs on %s", serial, got)
			}
			h.procs.ended(p) // a zombie from now on
		}
	}
}

func TestProcessesKnowThemselves(t *testing.T) {
	const show = `echo $GOMPI_RANK/$GOMPI_SIZE $GOMPI_LOCAL_RANK/$GOMPI_LOCAL_SIZE ${#GOMPI_JOB}`
	sorted := func(text string) []string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		return lines
	}
	r := gompirun(t, "-np", "1", "sh", "-c", show, ":", "-np", "2", "sh", "-c", show)
	if got := sorted(r.stdout); r.status != 0 || !slices.Equal(got, []string{"0/3 0/3 16", "1/3 1/3 16", "2/3 2/3 16"}) {
		t.Errorf("%q, %+v", got, r)
	}
	// A world of its own, on a host where one is already.
	r = gompirun(t, "-np", "1", "RANK", "spawns", "sh", "-c", show)
	if got := sorted(r.stdout); r.status != 0 || !slices.Equal(got, []string{"0/2 1/3 16", "1/2 2/3 16"}) {
		t.Errorf("%q, %+v", got, r)
	}
}
