// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

var testNow = time.Unix(1000, 0)

func pid(serial int) wire.ProcID { return wire.ProcID{Job: 1, Serial: uint32(serial)} }

func world(n int, f func(rank int) ProcEntries) []ProcEntries {
	list := make([]ProcEntries, n)
	for r := range list {
		list[r] = f(r)
		list[r].Proc, list[r].Rank, list[r].Size = pid(r+1), r, n
	}
	return list
}

func collective(op string, rank, size int) Entry {
	return Entry{Op: op, Comm: wire.Set{Number: 1}.Context(pid(0).Job, 0), CommSize: size, Rank: rank, Peer: NoPeer,
		Bytes: 8, Since: testNow.Add(-12 * time.Second), Caller: "cg.go:40 main.dot"}
}

func recv(rank, size, from int) Entry {
	return Entry{Op: "Recv", Comm: wire.Set{Number: 1}.Context(pid(0).Job, 0), CommSize: size, Rank: rank, Peer: from, PeerProc: pid(from + 1),
		Tag: 7, Bytes: 64, Since: testNow.Add(-time.Duration(rank+1) * time.Second), Caller: "ring.go:9 main.main"}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name  string
		procs []ProcEntries
		want  string
	}{
		{"nobody", nil, "no processes\n"},
		{"one missing", world(5, func(r int) ProcEntries {
			if r == 3 {
				return ProcEntries{}
			}
			return ProcEntries{Entries: []Entry{collective("Allreduce", r, 5)}}
		}), `
  ranks 0-2,4 (4): Allreduce, collective call 1, 8 bytes, WORLD of 5, for 12.0 s, at cg.go:40 main.dot
    not there: rank 3 of the communicator
odd ones:
  rank 3: in no blocking call
`},
		{"no messages", world(2, func(r int) ProcEntries {
			e := recv(r, 2, 1-r)
			e.Op, e.Tag, e.Bytes = "Win.Lock", NoTag, 0
			close := Entry{Op: "Exposed.Close", Peer: NoPeer, Tag: NoTag, Since: testNow, Caller: "x.go:1 main.f"}
			return ProcEntries{Entries: []Entry{e, close}}
		}), `
  ranks 0-1 (2): Win.Lock with rank+1, WORLD of 2, for 1.0 s to 2.0 s, at ring.go:9 main.main
  ranks 0-1 (2): Exposed.Close, for 0.0 s, at x.go:1 main.f
wait-for cycle:
  rank 0 waits for rank 1: Win.Lock, WORLD of 2, for 1.0 s, at ring.go:9 main.main
  rank 1 waits for rank 0: Win.Lock, WORLD of 2, for 2.0 s, at ring.go:9 main.main
`},
		{"ring", world(4, func(r int) ProcEntries { return ProcEntries{Entries: []Entry{recv(r, 4, (r+3)%4)}} }), `
  ranks 0-3 (4): Recv with rank-1, tag 7, 64 bytes, WORLD of 4, for 1.0 s to 4.0 s, at ring.go:9 main.main
wait-for cycle:
  rank 0 waits for rank 3: Recv, tag 7, 64 bytes, WORLD of 4, for 1.0 s, at ring.go:9 main.main
  rank 3 waits for rank 2: Recv, tag 7, 64 bytes, WORLD of 4, for 4.0 s, at ring.go:9 main.main
  rank 2 waits for rank 1: Recv, tag 7, 64 bytes, WORLD of 4, for 3.0 s, at ring.go:9 main.main
  rank 1 waits for rank 0: Recv, tag 7, 64 bytes, WORLD of 4, for 2.0 s, at ring.go:9 main.main
`},
		{"a tail leads into the cycle", world(4, func(r int) ProcEntries {
			return ProcEntries{Entries: []Entry{recv(r, 4, []int{1, 2, 3, 2}[r])}}
		}), `
  ranks 0-3 (4): Recv with ranks 1,2,3,2, tag 7, 64 bytes, WORLD of 4, for 1.0 s to 4.0 s, at ring.go:9 main.main
wait-for cycle:
  rank 2 waits for rank 3: Recv, tag 7, 64 bytes, WORLD of 4, for 3.0 s, at ring.go:9 main.main
  rank 3 waits for rank 2: Recv, tag 7, 64 bytes, WORLD of 4, for 4.0 s, at ring.go:9 main.main
`},
		{"for itself", world(1, func(r int) ProcEntries { return ProcEntries{Entries: []Entry{recv(0, 1, 0)}} }), `
  rank 0: Recv with rank 0, tag 7, 64 bytes, WORLD of 1, for 1.0 s, at ring.go:9 main.main
wait-for cycle:
  rank 0 waits for rank 0: Recv, tag 7, 64 bytes, WORLD of 1, for 1.0 s, at ring.go:9 main.main
`},
		{"for the dead", world(2, func(r int) ProcEntries {
			if r == 1 {
				return ProcEntries{Note: "exited (signal: killed)"}
			}
			return ProcEntries{Entries: []Entry{recv(0, 2, 1)}}
		}), `
  rank 0: Recv with rank 1, tag 7, 64 bytes, WORLD of 2, for 1.0 s, at ring.go:9 main.main
  rank 1: exited (signal: killed)
waiting in vain:
  rank 0 waits in Recv for rank 1: exited (signal: killed)
`},
		{"two worlds", append(world(2, func(r int) ProcEntries { return ProcEntries{} }),
			ProcEntries{Proc: pid(3), Size: 1, Entries: []Entry{collective("Barrier", 0, 1)}}), `
  processes 1-2 (2): in no blocking call
odd ones:
  process 3: Barrier, collective call 1, 8 bytes, WORLD of 1, for 12.0 s, at cg.go:40 main.dot
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := reportAt(c.procs, testNow)
			if want := strings.TrimPrefix(c.want, "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestReportOfManyIsShort(t *testing.T) {
	procs := world(1000, func(r int) ProcEntries {
		if r%2 == 0 {
			return ProcEntries{}
		}
		return ProcEntries{Entries: []Entry{collective("Bcast", r, 1000)}}
	})
	if got := reportAt(procs, testNow); len(got) > 2000 {
		t.Errorf("report of %d bytes:\n%s", len(got), got)
	}
}

// A process on its way out is in no communicator.
func TestReportOfAnEnd(t *testing.T) {
	now := time.Unix(1000, 0)
	var procs []ProcEntries
	for r := range 2 {
		procs = append(procs, ProcEntries{Proc: wire.ProcID{Job: 1, Serial: uint32(r + 1)}, Rank: r, Size: 2,
			Entries: []Entry{{Op: "Finalize", Peer: NoPeer, Tag: NoTag, Since: now.Add(-2 * time.Second)}}})
	}
	if got, want := reportAt(procs, now), "  ranks 0-1 (2): Finalize, for 2.0 s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Who has a name is called by that; the others keep their ranks.
func TestNames(t *testing.T) {
	procs := world(3, func(r int) ProcEntries { return ProcEntries{Entries: []Entry{recv(r, 3, (r+1)%3)}} })
	for i, name := range []string{"new.0", "new.1"} {
		p := ProcEntries{Proc: wire.ProcID{Job: procs[0].Proc.Job, Serial: uint32(10 + i)}, Rank: i, Size: 2, Name: name, Note: "has not called Init"}
		procs = append(procs, p)
	}
	got := Report(procs)
	for _, want := range []string{"ranks 0-2 (3): ", "new.0, new.1: has not called Init"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
