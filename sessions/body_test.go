// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/host/segment"
)

// handing is a page of three processes, of which the second is looked at, and what it
// is handed: the first leaves, another comes.
func handing(t testing.TB) (*page, protocol.PageBody, protocol.ChangeBody) {
	const job = 7
	id := func(serial uint32) wire.ProcID { return wire.ProcID{Job: job, Serial: serial} }
	p := &core.Process{Self: id(2)}
	g := &page{proc: p, set: 4, host: hostMemoryOf(p)}
	lines, err := segmentOf(changepage.Bytes(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { segment.Unmap(lines) })
	if g.lines, err = changepage.View(lines, 3); err != nil {
		t.Fatal(err)
	}
	g.member = g.lines.Member(1, 1, 1)
	set := func(number uint32, serials ...uint32) wire.Set {
		s := wire.Set{URI: protocol.SetURI(job, number), Number: number}
		var ids []wire.ProcID
		for _, n := range serials {
			ids = append(ids, id(n))
			s.Hosts = s.Hosts.Add(n%2, 1)
		}
		s.Members = wire.MembersOf(ids...)
		return s
	}
	c := protocol.ChangeBody{
		Op: 9, Kind: change.Replace, Role: protocol.RoleStaying, State: change.Ready, Votes: true,
		Inputs: []wire.Set{set(4, 1, 2, 3)}, Joining: []wire.Set{set(5, 6)}, Leaving: set(6, 1), Result: set(7, 3, 2, 6),
	}
	b := protocol.PageBody{X: wire.ArenaRange{Total: 1 << 20, Off: 4096, Bytes: int64(changepage.Bytes(2)), File: -1}, Members: 2}
	return g, b, c
}

// segmentOf is memory on a page of its own.
func segmentOf(n int) ([]byte, error) {
	fd, total, err := segment.CreateArena(int64(n))
	if err != nil {
		return nil, err
	}
	defer protocol.CloseFiles(fd)
	return segment.Map(fd, 0, total, true)
}

func (g *page) put(n changepage.Change, b protocol.PageBody, c protocol.ChangeBody) {
	b.Rest = protocol.Encode(&c)
	g.lines.Begin(n, 1, protocol.Encode(&b))
}

// What stands on a page is what each makes of it; what cannot be is not believed.
func TestHandedBody(t *testing.T) {
	g, b, c := handing(t)
	n := changepage.Change(0)
	look := func() (protocol.PageBody, protocol.ChangeBody, error) {
		n++
		g.put(n, b, c)
		return g.changeBody(n)
	}
	if x, y, err := look(); err != nil || y.Role != protocol.RoleStaying || x.Place != 0 || x.Members != 2 || x.X != b.X || y.Op != 9 {
		t.Fatalf("%+v, %+v, %v", x, y, err)
	}
	if _, _, err := g.changeBody(n + 1); err == nil {
		t.Error("the change before is taken for the next")
	}
	g.proc.Self.Serial = 1
	if x, y, err := look(); err != nil || y.Role != protocol.RoleLeaving || x.X.Bytes != 0 {
		t.Errorf("who leaves: %+v, %+v, %v", x, y, err)
	}
	g.proc.Self.Serial = 2
	for what, spoil := range map[string]func(){
		"another input":    func() { c.Inputs[0].Number = 8 },
		"not a member":     func() { c.Inputs[0].Members = c.Leaving.Members },
		"no page":          func() { b.X.Bytes = 0 },
		"a short page":     func() { b.X.Bytes = 64 },
		"other members":    func() { b.Members = 3 },
		"more than a page": func() { b.Members = 1 << 20 },
	} {
		g, b, c = handing(t)
		spoil()
		if x, y, err := look(); err == nil {
			t.Errorf("%s: %+v, %+v", what, x, y)
		}
	}
	g, b, _ = handing(t)
	g.host.arenas[0] = &mapping{make([]byte, 1<<20)}
	for what, x := range map[string]wire.ArenaRange{
		"before the arena": {Total: 1 << 20, Off: -4096, Bytes: 8192}, "behind it": {Total: 1 << 20, Off: 1 << 20, Bytes: 4096},
		"over its end": {Total: 1 << 20, Off: 1<<20 - 4096, Bytes: 8192}, "between pages": {Total: 1 << 20, Off: 8, Bytes: 4096},
		"around": {Total: 1 << 62, Off: 1<<62 - 4096, Bytes: 1 << 62}, "no such": {Arena: 1 << 31, Total: 1 << 20, Bytes: 4096},
		"not mapped": {Arena: 3, Total: 1 << 20, Off: 0, Bytes: 4096}, "another size": {Total: 1 << 21, Off: 4096, Bytes: 4096},
	} {
		if _, _, err := g.host.extent(&x, -1); err == nil {
			t.Errorf("%s: %+v is mapped", what, x)
		}
	}
	if _, mem, err := g.host.extent(&b.X, -1); err != nil || int64(len(mem)) != b.X.Bytes {
		t.Errorf("%d bytes, %v", len(mem), err)
	}
}

// FuzzHandedBody: whatever stands on a page, what it is taken for can be.
func FuzzHandedBody(f *testing.F) {
	_, b, c := handing(f)
	b.Rest = protocol.Encode(&c)
	f.Add(protocol.Encode(&b))
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, _, _ := handing(t)
		if !g.lines.Begin(1, 1, raw) {
			t.Skip()
		}
		b, c, err := g.changeBody(1)
		if err != nil {
			return
		}
		if at := c.Result.Members.Index(g.proc.Self); at >= 0 && (b.Place >= b.Members || b.X.Bytes < int64(changepage.Bytes(b.Members))) {
			t.Fatalf("%+v of %+v", b, c)
		}
	})
}
