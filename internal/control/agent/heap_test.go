// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

const (
	modelPage  = 4096
	modelArena = 24 * modelPage // room for some ranges
)

// heapModel is an agent and what its processes know of the memory that they were
// given.
type heapModel struct {
	*Agent
	t     *testing.T
	r     *rand.Rand
	procs []*Proc
	next  uint32
	works []Action // that are not done yet

	asked map[uint32]string        // what for, by request
	have  map[uint32]uint64        // files that the process has, by request
	holds map[*Proc]map[place]held // what a process may touch
}

type held struct {
	bytes int64
	key   string // what it has asked for
}

func newHeapModel(t *testing.T, seed uint64) *heapModel {
	m := &heapModel{
		Agent: New(6, 0, nil), t: t, r: rand.New(rand.NewPCG(seed, 7)), next: 1,
		asked: map[uint32]string{}, have: map[uint32]uint64{}, holds: map[*Proc]map[place]held{},
	}
	m.heap.most = modelArena
	return m
}

// join adds a process: the launcher's own child, or what a wrapper has started.
func (m *heapModel) join(direct bool) *Proc {
	id := m.Reserve(BareProcs(1))
	s := m.unbound[id][0]
	m.bind(&protocol.Command{ID: id, Serial: m.next, Count: 1})
	s.pid = int(m.next) + 100
	pid := s.pid
	if !direct {
		pid = 10_000
	}
	if _, err := m.Hello(s.token, pid); err != nil {
		m.t.Fatal(err)
	}
	m.next++
	m.procs = append(m.procs, s)
	m.holds[s] = map[place]held{}
	return s
}

// say lets a process send a frame, and takes what comes of it.
func (m *heapModel) say(s *Proc, id uint32, x protocol.Message) {
	m.t.Helper()
	if _, err := m.Frame(s.serial, protocol.Frame{Kind: protocol.KindOf(x), ID: id, Body: protocol.Encode(x)}); err != nil {
		m.t.Fatal(err)
	}
	m.settle()
}

func (m *heapModel) settle() {
	m.Report(func(*protocol.Report) {})
	m.Flush(func(d *Action) {
		if d.Work != nil {
			m.works = append(m.works, *d)
			return
		}
		if d.Frame != nil {
			m.answered(d)
		}
		d.Files.Release()
	})
}

// answered checks what a process is given.
func (m *heapModel) answered(d *Action) {
	m.t.Helper()
	f, n, err := protocol.ParseHead(d.Frame)
	if err != nil {
		m.t.Fatal(err)
	}
	var r protocol.Reply
	if err := protocol.Decode(&r, d.Frame[protocol.FrameHead:][:n]); err != nil {
		m.t.Fatal(err)
	}
	s, key := m.Agent.procs[d.To], m.asked[f.ID]
	if r.Err() != nil {
		return
	}
	var b protocol.CommonBody
	if err := protocol.Decode(&b, r.Body); err != nil {
		m.t.Fatal(err)
	}
	x := b.X
	if (f.FDs == 0) != (m.have[f.ID]>>x.Arena&1 == 1) {
		m.t.Fatalf("%d files for who has %b", f.FDs, m.have[f.ID])
	}
	at := place{x.Arena, x.Off}
	if x.Total != modelArena || x.Off < 0 || x.Bytes < modelPage || x.Off > x.Total-x.Bytes {
		m.t.Fatalf("extent %+v", x)
	}
	known := false
	for q, holds := range m.holds {
		for has, h := range holds {
			if has == at && h.key == key {
				known = true
			} else if has.arena == at.arena && has.off < at.off+x.Bytes && at.off < has.off+h.bytes {
				m.t.Fatalf("process %d is given %+v while process %d has %d bytes at %+v", s.serial, x, q.serial, h.bytes, has)
			}
		}
	}
	if m.holds[s][at] = (held{x.Bytes, key}); known {
		return
	}
	// Pages that are there are empty; what is written does not show later.
	fd := m.heap.arenas[x.Arena].files.segment
	mem := make([]byte, x.Bytes)
	if n, err := unix.Pread(fd, mem, x.Off); n != len(mem) || err != nil {
		m.t.Fatal(n, err)
	}
	if slices.ContainsFunc(mem, func(b byte) bool { return b != 0 }) {
		m.t.Fatalf("%+v is not empty", x)
	}
	if _, err := unix.Pwrite(fd, []byte{1}, x.Off+m.r.Int64N(x.Bytes)); err != nil {
		m.t.Fatal(err)
	}
}

// end lets a process end: its connection, its child, and what a wrapper has started.
func (m *heapModel) end(s *Proc) {
	m.HungUp(s.serial)
	m.Exited(m.id(s), "ended", false)
	m.settle()
	if !s.direct() {
		if n := len(s.holds); n < len(m.holds[s]) {
			m.t.Fatalf("process %d has %d ranges, %d count", s.serial, len(m.holds[s]), n)
		}
		m.gone(s)
	}
	delete(m.holds, s)
	m.settle()
}

// finish carries out a work, or lets it fail.
func (m *heapModel) finish(i int, err error) {
	d := m.works[i]
	m.works = slices.Delete(m.works, i, i+1)
	if err == nil {
		err = d.Work()
	}
	d.Files.Release()
	d.Done(err)
	m.settle()
}

// TestHeapModel: whatever processes ask, leave and die, and however late or in
// vain pages come and go, no memory is given out that somebody may touch, or in
// which something stands; and in the end all is free.
func TestHeapModel(t *testing.T) {
	errTest := errors.New("no pages")
	for seed := range uint64(40) {
		m := newHeapModel(t, seed)
		serial, id := uint32(1), uint32(0)
		for range 400 {
			for len(m.procs) < 5 {
				m.join(m.r.IntN(4) > 0)
			}
			i := m.r.IntN(len(m.procs))
			s := m.procs[i]
			switch what := m.r.IntN(40); {
			case what < 16:
				if m.r.IntN(3) == 0 {
					serial++
				}
				var all []wire.ProcID
				for _, q := range m.procs {
					all = append(all, m.id(q))
				}
				id++
				c := &protocol.Common{ID: wire.ContextID{Serial: serial}, Members: wire.MembersOf(all...), Bytes: int64(1 + serial%5*modelPage), First: 1, Have: m.r.Uint64()}
				m.asked[id], m.have[id] = string(protocol.CommonKey(protocol.Encode(c))), c.Have
				m.say(s, id, c)
			case what < 28:
				for at := range m.holds[s] {
					delete(m.holds[s], at)
					m.say(s, 0, &protocol.LeaveCommon{Arena: at.arena, Off: at.off})
					break
				}
			case what == 28:
				m.procs = slices.Delete(m.procs, i, i+1)
				m.end(s)
			default:
				if n := len(m.works); n > 0 {
					var err error
					if seed%2 == 0 && m.r.IntN(8) == 0 {
						err = errTest
					}
					m.finish(m.r.IntN(n), err)
				}
			}
		}
		for _, s := range m.procs {
			m.end(s)
		}
		for len(m.works) > 0 {
			m.finish(0, nil)
		}
		if n := m.Sizes(); n["ranges"] != m.heap.lost || n["commons"] != 0 || n["arenas"] == 0 {
			t.Errorf("seed %d: %v in the end", seed, n)
		}
		for _, r := range m.heap.arenas {
			if m.heap.lost > 0 {
				break // pages and addresses are
			}
			var st unix.Stat_t
			if err := unix.Fstat(r.files.segment, &st); err != nil || st.Blocks != 0 {
				t.Errorf("seed %d: arena %d keeps %d pages, %v", seed, r.number, st.Blocks/8, err)
			}
			if len(r.free) != 1 || r.free[0].Size != modelArena {
				t.Errorf("seed %d: of arena %d is free: %v", seed, r.number, r.free)
			}
		}
		m.Close()
	}
}
