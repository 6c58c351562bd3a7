// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
)

const commonBytes = 1 << 16

// common asks for memory, whose file the process then has.
func (k *child) common(id wire.ContextID, m wire.Members) wire.ArenaRange {
	k.t.Helper()
	x, err := k.Common(id, m, commonBytes, 4096, 0)
	k.must(err)
	k.t.Cleanup(func() { unix.Close(x.File) })
	var st unix.Stat_t
	k.must(unix.Fstat(x.File, &st))
	if st.Size != x.Total || x.Off < 0 || x.Bytes != commonBytes || x.Off+x.Bytes > x.Total {
		k.t.Fatalf("%+v of a file of %d bytes", x, st.Size)
	}
	return x
}

// same reports whether two processes were given the same memory.
func same(t *testing.T, a, b wire.ArenaRange) bool {
	t.Helper()
	var at, bt unix.Stat_t
	if err := errors.Join(unix.Fstat(a.File, &at), unix.Fstat(b.File, &bt)); err != nil {
		t.Fatal(err)
	}
	return at.Ino == bt.Ino && a.Arena == b.Arena && a.Off == b.Off
}

func (r *rig) commons() int { return r.sizes()["commons"] }

// ranges waits until so many ranges are not free.
func (r *rig) ranges(n int) {
	r.t.Helper()
	controltest.WaitFor(r.t, "ranges given back", func() bool { return r.sizes()["ranges"] == n })
}

// Members that name the same context get the same memory, others another; who
// may still ask is known until all have.
func TestCommon(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	m, id := r.world.Members, wire.ContextID{Creator: ks[0].id, Serial: 1}
	first := ks[0].common(id, m)
	other := ks[0].common(id.Next(), m)
	if same(t, first, other) || other.Arena != first.Arena {
		t.Errorf("two communicators have %+v and %+v", first, other)
	}
	ks[0].must(ks[0].LeaveCommon(other))
	r.ranges(1)
	for _, k := range ks[1:] {
		if r.commons() != 1 {
			t.Errorf("the agent waits for who shares %d ranges", r.commons())
		}
		if !same(t, k.common(id, m), first) {
			t.Error("two members have different memory")
		}
	}
	if n := r.commons(); n != 0 {
		t.Errorf("the agent waits for who shares %d ranges", n)
	}
	if x, err := ks[0].Common(id.Next(), m, commonBytes, 4096, 1<<first.Arena); err != nil || x.File >= 0 || x.Arena != first.Arena || x.Off == first.Off {
		t.Errorf("%+v, %v for who has the file", x, err)
	}
}

// A range has pages when it is given. It is given again when all who were given
// it have left it, and not before; nothing is left in it then.
func TestCommonAgain(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	m, id := r.world.Members, wire.ContextID{Creator: ks[0].id, Serial: 1}
	blocks := func(x wire.ArenaRange) int64 {
		var st unix.Stat_t
		ks[0].must(unix.Fstat(x.File, &st))
		return st.Blocks * 512
	}
	var x wire.ArenaRange
	for _, k := range ks {
		x = k.common(id, m)
	}
	if n := blocks(x); n != 4096 {
		t.Errorf("%d bytes have pages; want 4096", n)
	}
	if n, err := unix.Pwrite(x.File, []byte("left"), x.Off+5000); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	for _, k := range ks[:2] {
		k.must(k.LeaveCommon(x))
		k.must(k.LeaveCommon(x)) // a second time is nothing
		k.must(k.LeaveCommon(wire.ArenaRange{Arena: 1 << 30, Off: -5}))
		k.settle()
		if id = id.Next(); same(t, k.common(id, m), x) {
			t.Fatal("a range that a process holds was given again")
		}
	}
	ks[2].must(ks[2].LeaveCommon(x))
	r.ranges(2)
	again := ks[2].common(id.Next(), m)
	var b [commonBytes]byte
	if n, err := unix.Pread(x.File, b[:], again.Off); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
	if b != [commonBytes]byte{} || !same(t, again, x) {
		t.Errorf("%+v is given again as %+v, not empty", x, again)
	}
}

// What a process holds it holds until nothing of it runs any more: not only
// until it has left the job, or its connection has ended.
func TestCommonEnds(t *testing.T) {
	r := newRig(t, 4, nil)
	ks := r.joinAll()
	m := r.world.Members
	id := wire.ContextID{Creator: ks[0].id, Serial: 1}
	for range 10 {
		ks[0].common(id, m)
		id = id.Next()
	}
	ks[0].must(ks[0].Finalize())
	r.ranges(10)
	r.Exited(ks[0].id, "exited", true)
	r.ranges(0)
	if n := r.commons(); n != 0 {
		t.Errorf("others may ask for %d ranges that nobody holds", n)
	}
	first := ks[1].common(id, m) // one member has gone
	r.Exited(ks[2].id, "was killed", false)
	if !same(t, ks[3].common(id, m), first) {
		t.Error("two members have different memory")
	}
	if n := r.commons(); n != 0 {
		t.Errorf("%d pieces are kept", n)
	}
	for what, bad := range map[string]wire.Members{
		"others":   wire.MembersOf(ks[3].id),
		"nobodies": wire.MembersOf(wire.ProcID{Job: ks[0].id.Job, Serial: 99}),
	} {
		if _, err := ks[1].Common(id, bad, commonBytes, 4096, 0); err == nil {
			t.Errorf("memory of %s was given", what)
		}
	}
	for _, n := range [][2]int{{0, 0}, {4096, 0}, {4096, 8192}} {
		if _, err := ks[1].Common(id, m, n[0], n[1], 0); err == nil {
			t.Errorf("%d bytes were given, with pages in %d", n[0], n[1])
		}
	}
	ks[3].Close()
	r.ranges(1)
	r.Exited(ks[3].id, "was killed", false)
	ks[1].settle()
	r.ranges(1)
	r.Exited(ks[1].id, "was killed", false)
	r.ranges(0)
}

// Who can open no more files has left the memory, and may ask for other.
func TestCommonWithoutFiles(t *testing.T) {
	r := newRig(t, 2, nil)
	ks := r.joinAll()
	id := wire.ContextID{Creator: ks[0].id, Serial: 1}
	ks[1].common(id, r.world.Members)
	id = id.Next()
	next, err := os.Open(os.DevNull)
	ks[0].must(err)
	defer next.Close()
	restore := controltest.LimitFiles(t, uint64(next.Fd())+1)
	_, err = ks[0].Common(id, r.world.Members, commonBytes, 4096, 0)
	restore()
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("no room for a file: %v", err)
	}
	r.ranges(1)
	ks[0].common(id.Next(), r.world.Members)
}
