// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
)

// What a tool or a process asks for is refused when the main set would leave its bounds,
// which the reason names; other sets have none.
func TestBoundsOfMain(t *testing.T) {
	e := newElastic(t, 3, func(cfg *Config) { cfg.Min, cfg.Max = 2, 4 })
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	tool, err := client.DialTool(bg, e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	for _, m := range []protocol.Resize{{By: 2}, {By: -2}, {To: 5}, {To: 1}} {
		var last protocol.OpReport
		if err := tool.Resize(bg, &m, func(r *protocol.OpReport) { last = *r }); err != nil {
			t.Fatal(err)
		}
		if last.Op.State != change.Refused || !strings.Contains(last.Op.Text, "2 to 4 are allowed (--min, --max)") {
			t.Errorf("%+v: %v %q", m, last.Op.State, last.Op.Text)
		}
	}
	if b := ws[0].submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Leave: 2}); b.State != change.Refused || !strings.Contains(b.Text, "would have 1 processes") {
		t.Errorf("a process asks: %+v", b)
	}
	pair, err := ws[0].DefineSet(wire.MembersOf(ws[0].id, ws[1].id))
	ws[0].must(err)
	others := []*watcher{ws[0].child.follow(pair), ws[1].child.follow(pair)}
	if b := others[0].submit(change.Request{Kind: change.Shrink, In: []uint32{pair.Number}, Leave: 1}); b.State == change.Refused {
		t.Errorf("of another set: %+v", b)
	}
}

// Who is in no set with a process is told neither that it has come nor how it ends.
func TestNobodyHearsOfStrangers(t *testing.T) {
	e := newElastic(t, 3, nil)
	ks := e.joinAll()
	s, err := ks[0].Spawn(bg, nil, 1)
	ks[0].must(err)
	ks[1].must(ks[1].Watch(e.world.Members))
	ks[1].settle()
	e.Exited(s.Members.At(0), "was killed", false)
	e.Exited(ks[2].id, "was killed", false)
	ks[1].expect(protocol.EvDied, ks[2].id) // and of the other nothing before
}
