// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// FuzzScribble lets a peer write anything anywhere into what it shares with
// us, in the middle of messages and transfers. We must survive, and say
// nothing that the contract does not allow.
//
// Each five bytes of the program are {where, offset (2), value (2)}. With one of an odd
// length nobody uses the duplex line.
func FuzzScribble(f *testing.F) {
	f.Add([]byte{0, 64, 0, 1, 0, 1, 0, 0, 255, 255, 2, 0, 0, 9, 9})
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := make([]byte, 5*(1+r.IntN(60)))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		f.Add(p)
	}
	victim := startVictim(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		s := newScribbler(t, victim, len(program)%2 == 1)
		defer s.close()
		for i := 0; len(program) >= 5 && i < 200; i++ {
			op := program[:5]
			program = program[5:]
			s.write(op[0], binary.LittleEndian.Uint16(op[1:]), binary.LittleEndian.Uint16(op[3:]))
			s.turn(i)
		}
		// Whatever has happened: told that the peer is dead, we end.
		s.us.Fail(s.slot)
		for end := time.Now().Add(10 * time.Second); !s.down; {
			s.turn(-1)
			if time.Now().After(end) {
				t.Fatal("no EvDown")
			}
		}
		s.us.Release(s.slot)
	})
}

// startVictim starts a process that does nothing. Ours takes it for the peer's
// when it copies: an address that a mad peer names means the peer's memory,
// and here both would be this process.
func startVictim(f *testing.F) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=victim")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

// scribbler is a process (us) and a peer of it that goes mad.
type scribbler struct {
	t        *testing.T
	f        *fabric
	us, them *Transport
	slot     transport.Slot
	theirs   transport.Slot
	head     []byte
	open     map[transport.Token]bool
	tok      transport.Token
	down     bool
	buf      []byte
}

func newScribbler(t *testing.T, victim int, noDuplex bool) *scribbler {
	a, b := wire.ProcID{Job: 3, Serial: 1}, wire.ProcID{Job: 3, Serial: 2}
	settings := map[string]string{"GOMPI_RING": "2048"}
	if noDuplex {
		settings["GOMPI_DUPLEX"] = "off"
	}
	s := &scribbler{t: t, f: newFabric(settings), open: make(map[transport.Token]bool), buf: make([]byte, 1<<20)}
	s.us, s.them = s.f.open(t, a), s.f.open(t, b)
	s.f.pid = victim
	var err error
	if s.slot, err = s.us.Connect(s.f.Contact(b, a)); err != nil {
		t.Fatal(err)
	}
	if s.theirs, err = s.them.Connect(s.f.Contact(a, b)); err != nil {
		t.Fatal(err)
	}
	if s.head, err = segment.Map(s.f.files[a][0], 0, pageBytes, true); err != nil {
		t.Fatal(err)
	}
	s.turn(0)
	s.us.conn(s.slot).cma = cmaWorks
	o := &s.us.conn(s.slot).out
	o.streaming, o.choices = noDuplex, new(pathChoices) // if it streams it pushes
	return s
}

func (s *scribbler) close() {
	segment.Unmap(s.head)
	s.us.Close()
	// The mad one just goes: nobody is told, its descriptors and mappings end.
	for _, c := range s.them.conns {
		if c != nil {
			c.gone = true
		}
	}
	s.them.Close()
	s.f.close()
}

// write scribbles one 16 bit value.
func (s *scribbler) write(where byte, off, v uint16) {
	put := func(m []byte) { binary.LittleEndian.PutUint16(m[int(off)%(len(m)-1):], v) }
	us, them := s.us.conn(s.slot), s.them.conn(s.theirs)
	switch where % 10 {
	case 9:
		// Answers in the duplex line, and anything there.
		h := wire.Header{1, 2, uint64(v & 1), 3}
		s.us.Send(s.slot, &h, make([]byte, off%(duplexMax+1)), 0)
		s.turn(0)
		if n := int(v) % 700 >> (off % 6); them.out.room(n) {
			them.out.put(kindData, &h, make([]byte, n))
		}
		if us.in != nil && us.in.half != nil && v&2 != 0 {
			us.in.half.word.Store(us.in.half.word.Load() ^ uint64(v)<<(off%64))
		}
	case 0:
		put(s.head[segment.HeadShm : segment.HeadShm+128])
	case 1:
		put(s.us.dir.mem[:4096])
		s.us.own.published.Add(1)
	case 2:
		if us.in != nil {
			put(us.in.mem[:boxSlots])
		}
	case 3:
		if us.in != nil {
			put(us.in.mem[boxSlots:])
		}
	case 4:
		put(us.out.mem[:boxSlots])
	case 5:
		// A message that looks right, with any kind and any words.
		h := wire.Header{uint64(v % 8), uint64(v) << 32, uint64(off), uint64(off) << 40}
		if them.out.room(0) {
			them.out.put(kind(off%12), &h, make([]byte, v%(inlineMax+1)))
		}
	case 6:
		var desc [descBytes]byte
		binary.LittleEndian.PutUint64(desc[0:], uint64(v%16))
		binary.LittleEndian.PutUint64(desc[16:], addrOf(s.buf)+uint64(off))
		binary.LittleEndian.PutUint64(desc[24:], uint64(v)*8|uint64(off&1)<<63)
		s.tok++
		if s.us.Accept(s.slot, desc[:], make([]byte, int(v)*4), s.tok) == nil {
			s.open[s.tok] = true
		}
	case 8:
		// What we reserve is written by both before it is sent, and where it
		// is announced.
		mem, st := s.us.Reserve(s.slot, 1+int(v)%s.us.caps.EagerMax)
		put(us.out.mem[boxSlots:])
		if st == transport.Sent {
			fill(mem, uint64(off))
			s.us.Commit(s.slot, &wire.Header{uint64(v)}, mem)
		}
	case 7:
		var desc [transport.MaxDesc]byte
		s.tok++
		n, err := s.us.Offer(s.slot, s.buf[:int(v)*8], s.tok, desc[:])
		if err == nil {
			s.open[s.tok] = true
			if off%2 == 0 {
				s.them.Accept(s.theirs, desc[:n], make([]byte, int(v)*8), 1)
			}
		}
	}
}

// turn lets both sides work and checks what ours says.
func (s *scribbler) turn(i int) {
	var h wire.Header
	s.us.Send(s.slot, &h, s.buf[:i&255], 0)
	s.them.Send(s.theirs, &h, s.buf[:i&127], 0)
	var ev [8]transport.Event
	s.them.Poll(ev[:])
	for _, e := range ev[:s.us.Poll(ev[:])] {
		switch e.Kind {
		case transport.EvRecv:
			if len(e.Payload) > s.us.caps.EagerMax {
				s.t.Fatalf("payload of %d bytes", len(e.Payload))
			}
		case transport.EvBulk:
			if !s.open[e.Token] {
				s.t.Fatalf("transfer %d answered twice", e.Token)
			}
			delete(s.open, e.Token)
		case transport.EvDown:
			if e.Slot != s.slot {
				break // somebody whom the scribbling has invented
			}
			if s.down || len(s.open) > 0 {
				s.t.Fatalf("EvDown (again: %v) with %d transfers open", s.down, len(s.open))
			}
			s.down = true
		}
	}
	if i%16 == 15 && s.us.Arm() {
		s.us.Disarm()
	}
}
