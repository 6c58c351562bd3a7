// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/match"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// hostile is a transport whose one peer sends whatever the fuzzer wants.
type hostile struct {
	loop
	frames []transport.Event
}

func (h *hostile) Caps() transport.Caps {
	return transport.Caps{Name: "hostile", EagerMax: 4096, EagerBest: 1024}
}

func (h *hostile) Connect(wire.Contact) (transport.Slot, error) { return 1, nil }

func (h *hostile) Send(_ transport.Slot, head *wire.Header, _ []byte, _ transport.Token) transport.Status {
	if head[3]>>40&7 == 7 {
		return transport.Full
	}
	return transport.Sent
}

func (h *hostile) Poll(ev []transport.Event) int {
	n := copy(ev, h.frames)
	h.frames = h.frames[n:]
	return n
}

func (h *hostile) Arm() bool { return len(h.frames) == 0 }

func (h *hostile) Cut(s transport.Slot, _ error) {
	h.frames = []transport.Event{{Kind: transport.EvDown, Slot: s, Err: transport.ErrProtocol}}
}

func (h *hostile) Accept(_ transport.Slot, desc []byte, buf []byte, tok transport.Token) error {
	if len(desc)%3 == 0 {
		return transport.ErrProtocol
	}
	h.frames = append(h.frames, transport.Event{Kind: transport.EvBulk, Slot: 1, Token: tok, Bytes: int64(len(buf))})
	return nil
}

func (h *hostile) Offer(transport.Slot, []byte, transport.Token, []byte) (int, error) { return 8, nil }

// echo is a server of remote memory that answers, or is offended.
type echo struct {
	e    *Engine
	down int
}

func (s *echo) Frame(from wire.ProcID, b []byte) error {
	if len(b) > FrameMax {
		panic("frame is too long")
	}
	if len(b) > 0 && b[0] == 255 {
		return transport.ErrProtocol
	}
	s.e.SendFrame(from, bytes.Repeat(b, 2)[:min(2*len(b), FrameMax)])
	return nil
}

func (s *echo) Down(wire.ProcID, *fault.Fault) { s.down++ }

func (s *echo) Forget(wire.ProcID) {}
func (s *echo) Ended(Handle)       {}

func (s *echo) Posted(transport.Token, bool, error) {}
func (s *echo) Cut(wire.ProcID, *fault.Fault)       {}

func (s *echo) Close() {}

func (s *echo) Leave(context.Context) {}

// FuzzFrames gives an engine with every kind of operation pending whatever
// bytes another process might send. It may end the connection, not the process,
// and afterwards every operation must end.
func FuzzFrames(f *testing.F) {
	self, other := wire.ProcID{Job: 7, Serial: 1}, wire.ProcID{Job: 7, Serial: 2}
	id := wire.ContextID{Creator: wire.ProcID{Job: 7}, Serial: 1}
	frame := func(k kind, pl wire.TrafficClass, tag int32, flags uint8, aux uint32, payload ...byte) []byte {
		h := header(match.NewKey(id, pl, 1, tag), k, flags, aux)
		b := make([]byte, 0, 34+len(payload))
		for _, w := range h {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return append(append(b, byte(len(payload))), payload...)
	}
	for k := kindEager; k < numKinds; k++ {
		f.Add(frame(k, wire.TrafficP2P, 5, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
		f.Add(append(frame(kindRTS, wire.TrafficP2P, 5, flagSync, 256, make([]byte, 16)...), frame(k, wire.TrafficColl, 0, 1, 1<<8)...))
		f.Add(append(frame(kindEager, wire.TrafficColl, 0, 0, 3), frame(k, wire.TrafficFault, 0, 0, 1<<8)...))
	}
	// A stream in each direction: an announcement that is pulled, its pieces,
	// one too many; pulls of sends.
	in := append(frame(kindRTS, wire.TrafficP2P, 5, flagStream, 77, 100, 0, 0, 0, 0, 0, 0, 0), frame(kindPiece, wire.TrafficP2P, 0, 0, 77, make([]byte, 60)...)...)
	in = append(in, frame(kindPiece, wire.TrafficP2P, 60, 0, 77, make([]byte, 40)...)...)
	f.Add(append(in, frame(kindPiece, wire.TrafficP2P, 100, 0, 77, 1)...))
	for index := range uint32(24) {
		f.Add(frame(kindPull, wire.TrafficP2P, 1, 0, index<<8|1, 200, 1, 0, 0, 0, 0, 0, 0))
	}
	// Frames of remote memory: whole, in parts, parts without end.
	whole := frame(kindFrame, wire.TrafficRMA, 0, 0, 0, 1, 2, 3)
	part := frame(kindFrame, wire.TrafficRMA, 0, flagMore, 0, make([]byte, 250)...)
	f.Add(append(whole, frame(kindFrame, wire.TrafficRMA, 0, 0, 0, 255)...))
	f.Add(append(append(append([]byte{}, part...), part...), whole...))
	f.Add(append(frame(kindFrame, wire.TrafficRMA, 0, flagMore, 0), whole...))
	f.Add(bytes.Repeat(part, FrameMax/250+1))
	strided := shapes()
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &hostile{loop: *newLoop(func() {})}
		e, err := New(Config{
			Self: self, Control: new(testControl), Transports: []transport.Transport{h},
			Sleeper: wait.NewChan(), Policy: wait.ForGoroutine(), Credit: 4096,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := e.NewContext(id, wire.MembersOf(self, other), nil)
		if err != nil {
			t.Fatal(err)
		}
		server := &echo{e: e}
		e.Remote(func() RemoteServer { return server })
		e.Lock()
		for range 3 { // they wait for the contact
			e.SendFrame(other, make([]byte, FrameMax))
		}
		e.Unlock()
		var ops []Handle
		for i := range 4 {
			buf := buffer.Of(make([]byte, 8*i))
			ops = append(ops,
				e.Irecv(c, &RecvArgs{Op: "Irecv", Buf: buf, Source: 1, Tag: int32(i)}),
				e.Irecv(c, &RecvArgs{Op: "Irecv", Buf: buf, Source: match.Any, Tag: match.Any}),
				e.Irecv(c, &RecvArgs{Op: "Irecv", Buf: newStriped(&strided[i], 0, 100*i, 0).buf(), Source: 1, Tag: int32(4 + i)}),
				e.Isend(c, &SendArgs{Op: "Isend", Buf: buffer.Of(make([]byte, 900*i)), Dest: 1, Tag: 1, Mode: Mode(i % 2)}),
				e.Isend(c, &SendArgs{Op: "Isend", Buf: newStriped(&strided[1+i], 0, 2000*i, 0).buf(), Dest: 1, Tag: 1, Mode: Mode(i % 2)}))
		}
		e.mu.Lock()
		p := e.peers[other]
		h.frames = append(h.frames, transport.Event{Kind: transport.EvUp, Slot: 1, Proc: other})
		for len(data) > wire.HeaderBytes {
			var head wire.Header
			for i := range head {
				head[i] = binary.LittleEndian.Uint64(data[8*i:])
			}
			n := int(data[wire.HeaderBytes])
			data = data[wire.HeaderBytes+1:]
			n = min(n, len(data))
			h.frames = append(h.frames, transport.Event{Kind: transport.EvRecv, Slot: 1, Header: head, Payload: data[:n]})
			data = data[n:]
		}
		for e.progress() > 0 {
		}
		e.mu.Unlock()
		e.ProcFailed(other, "was killed")
		e.mu.Lock()
		h.frames = append(h.frames, transport.Event{Kind: transport.EvDown, Slot: 1, Err: transport.ErrPeerGone})
		for e.progress() > 0 {
		}
		e.mu.Unlock()
		for i, op := range ops {
			if o := e.Test(op); !o.Done {
				t.Fatalf("operation %d goes on although its peer is dead:\n%s", i, e.Queues())
			}
		}
		if e.peers[other] != nil {
			t.Fatal("the dead peer is kept")
		}
		if server.down != 1 || p.frames.bytes != 0 || p.frames.first != nil || p.frameParts != nil {
			t.Fatalf("%d times down, %d bytes of frames and %d of parts are left", server.down, p.frames.bytes, len(p.frameParts))
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.Close(ctx)
	})
}
