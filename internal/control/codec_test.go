// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"gompi/internal/rollcall"
	"gompi/internal/wire"
)

// samples is one message of each kind and body.
func samples(job wire.JobID) []message {
	p := wire.ProcID{Job: job, Serial: 1}
	m := wire.NewMembers(wire.Range{First: p, Count: 2}, wire.Range{First: p.Next(9), Count: 1})
	set := wire.Set{URI: WorldURI, Number: 4, Members: m, Hosts: wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}}}
	call := rollcall.Entry{Op: "Recv", Peer: rollcall.AnyPeer, Since: time.Unix(1, 2), Tag: -1, Caller: "a.go:1 b"}
	return []message{
		&helloMsg{[tokenBytes]byte{1, 2}},
		&emptyMsg{kTool}, &emptyMsg{kFinalize}, &emptyMsg{kList},
		&procMsg{kContact, p}, &procMsg{kDead, p},
		&membersMsg{kWatch, m}, &membersMsg{kDefine, m}, &membersMsg{kFence, m},
		&announceMsg{[]string{"1.2.3.4:5", "[::1]:6"}},
		&textMsg{kLookup, WorldURI}, &textMsg{kBye, "why"},
		&putMsg{"key", []byte("value")}, &getMsg{"key", true},
		&spawnMsg{3, []string{"prog", ""}},
		&abortMsg{-5, "text"},
		&stacksMsg{7, []byte("q"), []byte("s")},
		&cancelMsg{9}, &collectMsg{time.Second},
		&welcomeMsg{Welcome{Self: p, Secret: [32]byte{5}, World: set, Parent: set, Segment: -1, Bell: -1, LocalProcs: 3, UsableCPUs: 2,
			MaxProcs: 1, FaultTolerant: true, KillGrace: time.Second, Settings: map[string]string{"B": "2", "A": ""}}},
		&cutMsg{p, "no room"}, &pingMsg{kPing, p, 7}, &pingMsg{kPong, p, 1 << 60}, &releaseMsg{7}, &textMsg{kDelete, "key"},
		&commonMsg{kCommon, wire.ContextID{Creator: p, Serial: 3}, m, 1 << 20}, &commonMsg{kUncommon, wire.ContextID{Creator: p, Serial: 3}, m, 5},
		&eventMsg{Event{Kind: EvDied, Proc: p, Text: "signal: killed", ID: 1, LocalProcs: 2, MaxProcs: 3}},
		&replyMsg{body: []byte("body")},
		&orderMsg{order{kind: oBind, serial: 3, id: 4, count: 5}}, &orderMsg{order{kind: oUnbind, id: 4}},
		&orderMsg{order{kind: oSend, serial: 3, frame: []byte("f")}}, &orderMsg{order{kind: oWelcome, serial: 3, frame: []byte("f")}},
		&orderMsg{order{kind: oLate, serial: 3, late: time.Second, frame: []byte("f")}}, &orderMsg{order{kind: oHost, frame: []byte("f")}},
		&orderMsg{order{kind: oContact, serial: 3, id: 7, contact: &wire.Contact{Proc: p, Host: 1, Segment: -1, Bell: -1}}},
		&orderMsg{order{kind: oOver, serial: 3, state: Exited}}, &orderMsg{order{kind: oAbandon, serial: 3}},
		&orderMsg{order{kind: oShut, serial: 3, text: "why"}}, &orderMsg{order{kind: oEnding, text: "why"}},
		&reportMsg{report{kind: rHello, serial: 3}}, &reportMsg{report{kind: rFrame, serial: 3, frame: frame{kind: kGet, id: 9, body: []byte("b")}}},
		&reportMsg{report{kind: rHungUp, serial: 3}}, &reportMsg{report{kind: rStarted, serial: 3, pid: 10}},
		&reportMsg{report{kind: rExited, serial: 3, text: "how", clean: true}}, &reportMsg{report{kind: rLost, serial: 3, text: "how"}},
		&reportMsg{report{kind: rFreed, serial: 3}},
		&replyMsg{status: stGone, proc: p, text: "t"}, &replyMsg{status: stNotFound, text: "t"},
		&contactBody{wire.Contact{Proc: p, Host: 1, SameHost: true, PID: 7, Segment: -1, Bell: -1, Addrs: []string{"a:1"}}},
		&setBody{set}, &setBody{wire.Set{URI: SelfURI, Number: 5, Members: wire.MembersOf(p)}}, &valueBody{[]byte("v")},
		&partMsg{StackReport{ProcInfo: ProcInfo{Proc: p, Rank: 1, Size: 2, World: 3, PID: 4, State: Exited, How: "h"},
			Answered: true, Calls: []rollcall.Entry{call}, Queues: []byte("q"), Stacks: []byte("s")}},
	}
}

// blank is an empty message of the same type and kind.
func blank(m message) message {
	n := reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
	switch m := m.(type) {
	case *emptyMsg:
		n.(*emptyMsg).k = m.k
	case *procMsg:
		n.(*procMsg).k = m.k
	case *membersMsg:
		n.(*membersMsg).k = m.k
	case *commonMsg:
		n.(*commonMsg).k = m.k
	case *textMsg:
		n.(*textMsg).k = m.k
	case *pingMsg:
		n.(*pingMsg).k = m.k
	}
	return n
}

func body(m message) []byte {
	var e enc
	m.put(&e)
	return e.b
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range samples(6) {
		b := body(m)
		if len(b) > m.kind().bodyLimit() {
			t.Errorf("%T: %d bytes, limit %d", m, len(b), m.kind().bodyLimit())
		}
		got := blank(m)
		if err := decode(got, b); err != nil {
			t.Errorf("%T: %v", m, err)
		} else if !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v; want %+v", m, got, m)
		}
		for i := range b {
			if err := decode(blank(m), b[:i]); err == nil {
				t.Errorf("%T: %d of %d bytes accepted", m, i, len(b))
			}
		}
		if err := decode(blank(m), append(b, 0)); err == nil {
			t.Errorf("%T: a byte too many accepted", m)
		}
	}
}

func TestMembersRefused(t *testing.T) {
	p := wire.ProcID{Job: 1, Serial: 5}
	raw := func(rs ...wire.Range) []byte {
		var e enc
		e.u32(uint32(len(rs)))
		for _, r := range rs {
			e.proc(r.First)
			e.u32(uint32(r.Count))
			e.i64(int64(r.Stride))
		}
		return e.b
	}
	for name, b := range map[string][]byte{
		"empty range":   raw(wire.Range{First: p, Stride: 1}),
		"no stride":     raw(wire.Range{First: p, Count: 2}),
		"wraps":         raw(wire.Range{First: wire.ProcID{Job: 1, Serial: 1<<32 - 1}, Count: 2, Stride: 1}),
		"wraps below":   raw(wire.Range{First: p, Count: 7, Stride: -1}),
		"huge stride":   raw(wire.Range{First: p, Count: 2, Stride: 1 << 62}),
		"lowest stride": raw(wire.Range{First: p, Count: 2, Stride: -1 << 63}),
		"not joined":    raw(wire.Range{First: p, Count: 1, Stride: 1}, wire.Range{First: p.Next(1), Count: 1, Stride: 1}),
		"overlap":       raw(wire.Range{First: p, Count: 3, Stride: 1}, wire.Range{First: p.Next(2), Count: 1, Stride: 1}),
		"strides meet":  raw(wire.Range{First: p, Count: 30, Stride: 2}, wire.Range{First: p.Next(1), Count: 30, Stride: 3}),
		"too many":      raw(wire.Range{First: p, Count: maxMembers, Stride: 1}, wire.Range{First: wire.ProcID{Job: 2}, Count: 1, Stride: 1}),
		"claims ranges": {0xff, 0xff, 0, 0},
		"claims more":   {0xff, 0xff, 0xff, 0xff},
	} {
		if err := decode(&membersMsg{k: kFence}, b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A set says of each member where it is, once, or of none.
func TestHostsRefused(t *testing.T) {
	p := wire.ProcID{Job: 1, Serial: 5}
	for name, h := range map[string]wire.Hosts{
		"too few":  {{Host: 0, Count: 2}},
		"too many": {{Host: 0, Count: 2}, {Host: 1, Count: 2}},
		"none":     {{Host: 0, Count: 3}, {Host: 1, Count: 0}},
		"again":    {{Host: 0, Count: 2}, {Host: 0, Count: 1}},
	} {
		s := setBody{wire.Set{Members: wire.NewMembers(wire.Range{First: p, Count: 3}), Hosts: h}}
		if err := decode(&setBody{}, body(&s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	gone := &GoneError{wire.ProcID{Job: 1, Serial: 2}, "signal: killed"}
	for _, err := range []error{gone, notFound("key %q", "k"), refused("no"), &withDetail{ErrEnding, "why"}} {
		var m replyMsg
		if e := decode(&m, body(failure(err))); e != nil {
			t.Error(e)
		} else if !reflect.DeepEqual(m.err(), err) {
			t.Errorf("%v becomes %v", err, m.err())
		}
	}
}

// FuzzMessage: what decodes, encodes to the same bytes.
func FuzzMessage(f *testing.F) {
	all := samples(6)
	for i, m := range all {
		f.Add(uint8(i), body(m))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		m := blank(all[int(which)%len(all)])
		if decode(m, b) != nil {
			return
		}
		if again := body(m); !bytes.Equal(b, again) {
			t.Errorf("%T\n%x becomes\n%x", m, b, again)
		}
	})
}

// FuzzState: no sequence of frames hurts head and agent, whoever sends them.
func FuzzState(f *testing.F) {
	var seed []byte
	for _, m := range samples(6) {
		seed = append(seed, appendFrame([]byte{1}, 3, 0, m)...)
		seed = append(seed, appendFrame([]byte{2}, 0, 0, m)...)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachines(&ServerConfig{Job: 6, Start: func([]StartProc) error { return nil }}, 1)
		m.spawn = func(r *spawnReq) { m.spawned(r, wire.Set{}, errors.New("no room")) }
		st, a := m.state, m.agents[0]
		seats := m.start(3, 0, noFiles)
		for _, s := range seats {
			m.enter(0, s)
		}
		for len(data) > frameHead {
			s := seats[data[0]%3]
			fr, n, err := parseHead(data[1:])
			if err != nil || len(data) < 1+frameHead+n {
				break
			}
			fr.body = data[1+frameHead:][:n]
			data = data[1+frameHead+n:]
			if !s.connected {
				continue
			}
			if err := a.frame(s, fr); err != nil {
				a.hungUp(s)
			}
			m.settle()
			if data2 := len(data); data2%5 == 0 {
				a.exited(s, "x", data2%2 == 0)
			}
			m.settle()
		}
		for _, s := range seats {
			if s.connected {
				a.hungUp(s)
			}
			a.exited(s, "end", true)
		}
		m.settle()
		for _, s := range seats {
			if len(s.knownBy)+len(s.knows) != 0 {
				t.Errorf("process %d: its pid is known to %d, and it knows %d", s.serial, len(s.knownBy), len(s.knows))
			}
		}
		if len(st.procs)+len(st.sets)+len(a.seats)+len(a.tokens)+len(a.commons) != 0 {
			t.Errorf("%d processes and %d sets are remembered, %d seats, %d tokens, %d pieces of memory",
				len(st.procs), len(st.sets), len(a.seats), len(a.tokens), len(a.commons))
		}
		if len(st.fences)+len(st.gets)+len(st.joined) != 0 || st.hosts[0].local != 0 || st.alive != 0 {
			t.Errorf("left: %d fences, %d gets, %d joined, %d local, %d alive",
				len(st.fences), len(st.gets), len(st.joined), st.hosts[0].local, st.alive)
		}
	})
}
