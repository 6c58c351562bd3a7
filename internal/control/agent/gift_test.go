// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// giftRig is an agent with processes, and what these are told in their welcomes.
type giftRig struct {
	*Agent
	t     *testing.T
	all   wire.Members
	works []Action // that are not done yet
	told  map[uint32]*protocol.Welcomed
	first map[uint32]protocol.Kind // of what a process is sent
}

const giftSet = 5

func newGiftRig(t *testing.T, n int) *giftRig {
	r := &giftRig{Agent: New(6, 0, nil), t: t, told: map[uint32]*protocol.Welcomed{}, first: map[uint32]protocol.Kind{}}
	t.Cleanup(r.Close)
	procs, err := NewProcs(n)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(&protocol.Command{Kind: protocol.CmdBind, ID: r.Reserve(procs), Serial: 1, Count: uint32(n)})
	r.all = wire.NewMembers(wire.Range{First: wire.ProcID{Job: 6, Serial: 1}, Count: n})
	for i, s := range procs {
		s.pid = 100 + i
		if _, err := r.Hello(s.token, s.pid); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *giftRig) settle() {
	r.Report(func(*protocol.Report) {})
	r.Flush(func(d *Action) {
		if d.Work != nil {
			r.works = append(r.works, *d)
			return
		}
		if d.Frame != nil {
			f, _, err := protocol.ParseHead(d.Frame)
			if err != nil {
				r.t.Fatal(err)
			}
			if r.first[d.To] == 0 {
				r.first[d.To] = f.Kind
			}
			if f.Kind == protocol.KindWelcome {
				m := new(protocol.Welcomed)
				if err := protocol.Decode(m, d.Frame[protocol.FrameHead:]); err != nil {
					r.t.Fatal(err)
				}
				if r.told[d.To] = m; (m.Arena.Total > 0) != (f.FDs == protocol.MostFDs) || (d.Files.arena != nil) != (m.Arena.Total > 0) {
					r.t.Errorf("process %d: %d descriptors, and an arena of %d bytes", d.To, f.FDs, m.Arena.Total)
				}
			}
		}
		d.Files.Release()
	})
}

// work does what takes long; the first with this error if it is not nil.
func (r *giftRig) work(with error) {
	r.settle()
	for len(r.works) > 0 {
		d := r.works[0]
		r.works = r.works[1:]
		err := with
		with = nil
		if err == nil {
			err = d.Work()
		}
		d.Files.Release()
		d.Done(err)
		r.settle()
	}
}

func (r *giftRig) order(o protocol.Command) {
	r.Take(&o)
	r.settle()
}

func (r *giftRig) give() {
	r.order(protocol.Command{Kind: protocol.CmdPreallocate, ID: giftSet, Members: r.all})
}

func (r *giftRig) ungive() { r.order(protocol.Command{Kind: protocol.CmdRetract, ID: giftSet}) }

func (r *giftRig) welcomeAll() {
	for serial := range r.procs {
		r.order(protocol.Command{Kind: protocol.CmdWelcome, Serial: serial, Frame: []byte("w")})
		r.order(protocol.Command{Kind: protocol.CmdSend, Serial: serial, Frame: protocol.ShortFrame(0, 0, &protocol.Event{Kind: protocol.EvHost})})
	}
}

// place is what all were told of the gift.
func (r *giftRig) place() (x wire.ArenaRange) {
	r.t.Helper()
	for serial := range r.procs {
		m := r.told[serial]
		if m == nil || len(m.Preallocated) != 1 || m.Preallocated[0].Set != giftSet || m.Preallocated[0].Ranks != r.all.Len() || string(m.Welcome) != "w" {
			r.t.Fatalf("process %d was told %+v", serial, m)
		}
		x = m.Preallocated[0].X
	}
	if want := int64(collmem.HeapBytes(r.all.Len(), true)); x.Bytes < want || x.Arena != 0 {
		r.t.Fatalf("given %+v, want %d bytes", x, want)
	}
	return x
}

// free wants nothing to be left of the gift.
func (r *giftRig) free(what string) {
	r.t.Helper()
	r.work(nil)
	if n := r.Sizes(); n["ranges"] != 0 || n["gifts"] != 0 {
		r.t.Errorf("%s: %d ranges and %d gifts are left", what, n["ranges"], n["gifts"])
	}
	for _, s := range r.procs {
		if len(s.holds) != 0 {
			r.t.Errorf("%s: process %d holds %d ranges", what, s.serial, len(s.holds))
		}
	}
}

func (r *giftRig) board(x wire.ArenaRange) []byte {
	r.t.Helper()
	mem, err := segment.Map(r.heap.arenas[0].files.segment, x.Off, x.Bytes, true)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { segment.Unmap(mem) })
	return mem
}

// All members of a set are told of its memory before anything else, and when the set is
// gone those keep it who have begun to use it, until they say that they have left it,
// or end.
func TestGift(t *testing.T) {
	r := newGiftRig(t, 4)
	r.give()
	r.welcomeAll()
	if len(r.told) != 0 {
		t.Fatal("told of memory that is not there")
	}
	r.work(nil)
	x := r.place()
	for serial, k := range r.first {
		if k != protocol.KindWelcome {
			t.Errorf("process %d gets a %v frame first", serial, k)
		}
	}
	mem := r.board(x)
	for _, rank := range []int{0, 2, 3} {
		if !collmem.Claim(mem, rank, giftSet) || collmem.Claim(mem, rank, giftSet) {
			t.Fatalf("rank %d claims its part, once", rank)
		}
	}
	r.give() // of no effect
	r.ungive()
	r.work(nil)
	if collmem.Claim(mem, 1, giftSet) {
		t.Error("rank 1 begins to use what it has no more")
	}
	for serial, want := range map[uint32]int{1: 1, 2: 0, 3: 1, 4: 1} {
		if n := len(r.procs[serial].holds); n != want {
			t.Errorf("process %d holds %d ranges, want %d", serial, n, want)
		}
	}
	r.ungive() // of no effect
	r.leaveCommon(r.procs[1], &protocol.LeaveCommon{Arena: x.Arena, Off: x.Off})
	r.Exited(wire.ProcID{Job: 6, Serial: 3}, "", true)
	r.work(nil)
	if n := r.Sizes(); n["ranges"] != 1 || n["gifts"] != 0 {
		t.Errorf("one member holds it: %v", n)
	}
	r.Exited(wire.ProcID{Job: 6, Serial: 4}, "was killed", false)
	r.free("all have left or ended")
}

// Nothing of a gift is left however it ends, and nobody is told of one that is over.
func TestGiftEnds(t *testing.T) {
	ends := map[string]func(r *giftRig){
		"the set goes before the pages are there": func(r *giftRig) { r.ungive(); r.work(nil); r.welcomeAll() },
		"and others wait for their welcome":       func(r *giftRig) { r.welcomeAll(); r.ungive(); r.work(nil) },
		"there is no memory":                      func(r *giftRig) { r.welcomeAll(); r.work(unix.ENOSPC) },
		"nobody uses it":                          func(r *giftRig) { r.work(nil); r.ungive(); r.work(nil); r.welcomeAll() },
		"all die": func(r *giftRig) {
			r.work(nil)
			for serial := range r.procs {
				r.Exited(wire.ProcID{Job: 6, Serial: serial}, "was killed", false)
			}
		},
		"all die before": func(r *giftRig) {
			for serial := range r.procs {
				r.Exited(wire.ProcID{Job: 6, Serial: serial}, "was killed", false)
			}
		},
		"they die while it is taken back": func(r *giftRig) {
			r.work(nil)
			r.ungive()
			for serial := range r.procs {
				r.Exited(wire.ProcID{Job: 6, Serial: serial}, "was killed", false)
			}
		},
	}
	for what, end := range ends {
		r := newGiftRig(t, 3)
		r.give()
		end(r)
		r.free(what)
		for serial, m := range r.told {
			if len(m.Preallocated) != 0 {
				t.Errorf("%s: process %d was given %+v", what, serial, m.Preallocated)
			}
		}
	}
}

// Who was told of the memory of a set that is gone cannot claim there what another set
// has been given since; nor can what is taken back for the one be the other's.
func TestGiftOfAnother(t *testing.T) {
	r := newGiftRig(t, 2)
	r.give()
	r.work(nil)
	r.welcomeAll()
	x := r.place()
	r.ungive()
	r.free("nobody has used it")
	r.order(protocol.Command{Kind: protocol.CmdPreallocate, ID: giftSet + 1, Members: r.all})
	r.work(nil)
	if at := r.gifts[giftSet+1].extent.place(); at != (place{x.Arena, x.Off}) {
		t.Fatalf("the next one is at %+v, want %+v", at, x)
	}
	mem := r.board(x)
	if collmem.Claim(mem, 0, giftSet) || collmem.Withdraw(mem, 0, giftSet) {
		t.Error("the memory of one set is claimed as that of another")
	}
	if !collmem.Claim(mem, 0, giftSet+1) || !collmem.Withdraw(mem, 1, giftSet+1) || collmem.Claim(mem, 1, giftSet+1) {
		t.Error("it is not that of its set")
	}
}

// A single process is told of the arena, out of which a set that it comes to be in is
// given memory; who shares none is not.
func TestGiftOfOne(t *testing.T) {
	r := newGiftRig(t, 1)
	r.give()
	r.welcomeAll()
	if m := r.told[1]; m == nil || m.Arena.Total == 0 || len(m.Preallocated) != 0 {
		t.Errorf("one process was told %+v", m)
	}
	r.free("one process")
	r = newGiftRig(t, 1)
	r.welcomeAll()
	if m := r.told[1]; m == nil || m.Arena.Total != 0 {
		t.Errorf("one without memory was told %+v", m)
	}
}

// Where memory cannot be mapped to be taken back its holders keep it until they end.
func TestGiftStays(t *testing.T) {
	r := newGiftRig(t, 2)
	r.give()
	r.work(nil)
	r.ungive()
	r.work(errors.New("no more mappings"))
	if n := r.Sizes(); n["ranges"] != 1 {
		t.Errorf("%d ranges", n["ranges"])
	}
	for serial := range r.procs {
		r.Exited(wire.ProcID{Job: 6, Serial: serial}, "", true)
	}
	r.free("all have ended")
}
