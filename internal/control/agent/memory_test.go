// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// memoryRig is an agent with processes, and what it answers them.
type memoryRig struct {
	*Agent
	t     *testing.T
	procs []*Proc
	files map[uint32]*Files // by request; held
	fails map[uint32]error
	last  uint32
}

func newMemoryRig(t *testing.T, n int) *memoryRig {
	r := &memoryRig{Agent: New(6, 3, nil), t: t, procs: BareProcs(n), files: map[uint32]*Files{}, fails: map[uint32]error{}}
	r.Take(&protocol.Command{Kind: protocol.CmdBind, ID: r.Reserve(r.procs), Serial: 1, Count: uint32(n)})
	for i, s := range r.procs {
		if _, err := r.Hello(s.token, 100+i); err != nil {
			t.Fatal(err)
		}
		r.Started(r.id(s), 100+i)
	}
	r.settle()
	t.Cleanup(func() {
		for _, f := range r.files {
			f.Release()
		}
		r.Close()
	})
	return r
}

func (r *memoryRig) settle() {
	r.Report(func(*protocol.Report) {})
	r.Flush(func(d *Action) {
		if d.Frame == nil {
			d.Files.Release()
			return
		}
		f, n, err := protocol.ParseHead(d.Frame)
		if err != nil {
			r.t.Fatal(err)
		}
		var answer protocol.Reply
		if err := protocol.Decode(&answer, d.Frame[protocol.FrameHead:][:n]); err != nil {
			r.t.Fatal(err)
		}
		if r.fails[f.ID] = answer.Err(); answer.Err() != nil {
			d.Files.Release()
			return
		}
		var b protocol.MemoryBody
		if err := protocol.Decode(&b, answer.Body); err != nil || b.Host != 3 {
			r.t.Fatalf("%+v, %v", b, err)
		}
		r.files[f.ID] = d.Files
	})
}

func (r *memoryRig) say(s *Proc, id uint32, m protocol.Message) {
	r.t.Helper()
	if _, err := r.Frame(s.serial, protocol.Frame{Kind: protocol.KindOf(m), ID: id, Body: protocol.Encode(m)}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}

// ask lets a process ask, and returns the file's number and what was refused.
func (r *memoryRig) ask(s *Proc, name string, bytes int64) (inode uint64, err error) {
	r.t.Helper()
	r.last++
	r.say(s, r.last, &protocol.Memory{Name: name, Bytes: bytes})
	f := r.files[r.last]
	if err := r.fails[r.last]; f == nil || err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(f.segment, &st); err != nil || st.Size < bytes {
		r.t.Fatalf("%d bytes of %d, %v", st.Size, bytes, err)
	}
	return st.Ino, nil
}

// Memory of a name is one file for all who have it, and goes with the last of them, however
// that ends.
func TestMemory(t *testing.T) {
	r := newMemoryRig(t, 3)
	p := r.procs
	first, err := r.ask(p[0], "x", 5000)
	if err != nil || first == 0 {
		t.Fatal(first, err)
	}
	if again, err := r.ask(p[1], "x", 5000); again != first || err != nil {
		t.Errorf("another file, or none: %v", err)
	}
	if other, err := r.ask(p[1], "y", 5000); other == first || err != nil {
		t.Errorf("the same file by another name, or none: %v", err)
	}
	r.say(p[0], 0, &protocol.LeaveMemory{Name: "x"})
	r.say(p[0], 0, &protocol.LeaveMemory{Name: "x"}) // twice, and what it never had
	r.say(p[0], 0, &protocol.LeaveMemory{Name: "y"})
	if n := r.Sizes()["memories"]; n != 2 {
		t.Fatalf("%d memories", n)
	}
	if again, err := r.ask(p[2], "x", 5000); again != first || err != nil {
		t.Errorf("another file, or none: %v", err)
	}
	r.HungUp(p[1].serial) // it may touch it until its end
	r.say(p[2], 0, &protocol.LeaveMemory{Name: "x"})
	if n := r.Sizes()["memories"]; n != 2 {
		t.Fatalf("%d memories", n)
	}
	r.Exited(r.id(p[1]), "was killed", false)
	r.settle()
	if n := r.Sizes()["memories"]; n != 0 {
		t.Fatalf("%d memories", n)
	}
	if anew, err := r.ask(p[0], "x", 7000); anew == first || err != nil {
		t.Errorf("the old file, or none: %v", err)
	}
}

// What no process should ask for is refused, with its numbers, and leaves nothing behind.
func TestMemoryRefused(t *testing.T) {
	r := newMemoryRig(t, 2)
	p := r.procs
	if _, err := r.ask(p[0], "x", 5000); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of    *Proc
		name  string
		bytes int64
		says  string
	}{
		{p[1], "", 5000, `memory "" of 5000 bytes`},
		{p[1], "y", 0, "of 0 bytes"},
		{p[1], "y", -1, "of -1 bytes"},
		{p[1], "y", segment.SpanBytes + 1, fmt.Sprintf("of %d bytes", segment.SpanBytes+1)},
		{p[1], "x", 5001, `memory "x" has 5000 bytes on this host, not 5001`},
		{p[0], "x", 5000, `has memory "x" already`},
	} {
		if _, err := r.ask(c.of, c.name, c.bytes); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q of %d bytes: %v, not %q", c.name, c.bytes, err, c.says)
		}
	}
	long := &protocol.Memory{Name: strings.Repeat("x", protocol.MaxMemoryName+1), Bytes: 1}
	if _, err := r.Frame(p[1].serial, protocol.Frame{Kind: protocol.KindMemory, ID: 99, Body: protocol.Encode(long)}); err == nil {
		t.Error("a name that is too long")
	}
	for i := range maxMemoriesOf {
		_, err := r.ask(p[1], fmt.Sprint("z", i), 1)
		if err != nil {
			t.Fatal(err)
		}
		r.files[r.last].Release() // the agent's own are many enough
		delete(r.files, r.last)
	}
	if _, err := r.ask(p[1], "more", 1); err == nil || !strings.Contains(err.Error(), "no more allowed") {
		t.Error(err)
	}
	if n := r.Sizes()["memories"]; n != 1+maxMemoriesOf {
		t.Errorf("%d memories", n)
	}
	r.Take(&protocol.Command{Kind: protocol.CmdOver, Serial: p[0].serial, State: protocol.Finalized})
	if _, err := r.ask(p[0], "late", 1); err == nil {
		t.Error("memory for who is finalized")
	}
	for i, s := range p {
		r.Exited(r.id(s), "exited", i == 0)
	}
	r.settle()
	if n := r.Sizes()["memories"]; n != 0 {
		t.Errorf("%d memories are left", n)
	}
}
