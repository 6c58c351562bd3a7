// SPDX-License-Identifier: Apache-2.0

package onehost

import (
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
)

const commonBytes = 1 << 16

// common asks for memory and returns what it is.
func (k *child) common(id wire.ContextID, m wire.Members) (inode uint64) {
	k.t.Helper()
	fd, err := k.Common(id, m, commonBytes)
	k.must(err)
	defer unix.Close(fd)
	var st unix.Stat_t
	k.must(unix.Fstat(fd, &st))
	if st.Size != commonBytes {
		k.t.Fatalf("%d bytes", st.Size)
	}
	return st.Ino
}

func (r *rig) commons() int { return r.sizes()["commons"] }

// Members that name the same context get the same memory, others another; the
// server keeps it until all have it.
func TestCommon(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	m, id := r.world.Members, wire.ContextID{Creator: ks[0].id, Serial: 1}
	first := ks[0].common(id, m)
	if ks[0].common(id.Next(), m) == first {
		t.Error("two communicators have the same memory")
	}
	ks[0].must(ks[0].LeaveCommon(id.Next(), m, commonBytes))
	ks[0].settle()
	for _, k := range ks[1:] {
		if r.commons() != 1 {
			t.Errorf("the server keeps %d pieces", r.commons())
		}
		if k.common(id, m) != first {
			t.Error("two members have different memory")
		}
	}
	if n := r.commons(); n != 0 {
		t.Errorf("the server keeps %d pieces of which nobody will ask", n)
	}
}

// What the server keeps ends with those who use it, and with those who may ask.
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
	if n := r.commons(); n != 0 {
		t.Errorf("%d pieces are kept that nobody uses", n)
	}
	first := ks[1].common(id, m) // one member has gone
	r.Exited(ks[2].id, "was killed", false)
	if ks[3].common(id, m) != first {
		t.Error("two members have different memory")
	}
	if n := r.commons(); n != 0 {
		t.Errorf("%d pieces are kept", n)
	}
	for what, bad := range map[string]wire.Members{
		"others":   wire.MembersOf(ks[3].id),
		"nobodies": wire.MembersOf(wire.ProcID{Job: ks[0].id.Job, Serial: 99}),
	} {
		if _, err := ks[1].Common(id, bad, commonBytes); err == nil {
			t.Errorf("memory of %s was given", what)
		}
	}
}
