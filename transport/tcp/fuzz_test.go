// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

func FuzzHead(f *testing.F) {
	f.Add((&caller{}).msg("x"))
	f.Add((&caller{}).frame(kindData, words(1, 2, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameHead {
			return
		}
		h, err := decodeHead(b)
		if err != nil {
			if !errors.Is(err, transport.ErrProtocol) {
				t.Fatalf("error %v is not ErrProtocol", err)
			}
			return
		}
		var again [frameHead]byte
		putHead(again[:], h)
		if !bytes.Equal(again[:], b[:frameHead]) {
			t.Fatalf("%x is read as %+v, which is written %x", b[:frameHead], h, again)
		}
	})
}

func FuzzDesc(f *testing.F) {
	var b [descBytes]byte
	putDesc(b[:], desc{1, 2, 3})
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDesc(b)
		if err != nil {
			return
		}
		var again [descBytes]byte
		putDesc(again[:], d)
		if d.bytes < 0 || !bytes.Equal(again[:], b) {
			t.Fatalf("%x is read as %+v, which is written %x", b, d, again)
		}
	})
}

func FuzzGreetings(f *testing.F) {
	f.Add(goodHello(testProc(1), testProc(2)))
	var w [welcomeBytes]byte
	putWelcome(&w, &welcome{from: testProc(3)})
	f.Add(w[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= helloBytes {
			if h, err := decodeHello((*[helloBytes]byte)(b)); err == nil {
				var again [helloBytes]byte
				if putHello(&again, &h); !bytes.Equal(again[:], b[:helloBytes]) {
					t.Fatalf("hello %x is written again as %x", b[:helloBytes], again)
				}
			}
		}
		if len(b) >= welcomeBytes {
			if w, err := decodeWelcome((*[welcomeBytes]byte)(b)); err == nil {
				var again [welcomeBytes]byte
				putWelcome(&again, &w)
				if !bytes.Equal(again[:offRole+1], b[:offRole+1]) || !bytes.Equal(w.mac[:], b[welcomeSigned:welcomeBytes]) {
					t.Fatalf("welcome %x is read as %+v", b[:welcomeBytes], w)
				}
			}
		}
	})
}

// adoptPair gives p a peer whose socket is the returned descriptor.
func adoptPair(t *testing.T, p *proc, serial uint32) int {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	l, err := p.addLink(fds[0], linkProof, unix.EPOLLIN)
	if err != nil {
		t.Fatal(err)
	}
	p.countUnproven(1)
	l.proc = testProc(serial)
	p.introduce(l)
	return fds[1]
}

// number walks over the frames in b and gives them the numbers that the
// receiver expects, so that fuzzing reaches what lies behind that check.
func number(b []byte) {
	for seq := uint64(1); len(b) >= frameHead; seq++ {
		binary.LittleEndian.PutUint64(b[offSeq:], seq)
		binary.LittleEndian.PutUint64(b[offAck:], 0)
		size := frameHead + uint64(binary.LittleEndian.Uint32(b))
		if size > uint64(len(b)) {
			return
		}
		b = b[size:]
	}
}

// FuzzStream feeds bytes to a connection with an open offer and two open
// receives. Whatever comes, nothing outside them is written, and the end of
// the stream is one EvDown after everything else.
func FuzzStream(f *testing.F) {
	gen := func(frames ...func(c *caller) []byte) (b []byte) {
		c := &caller{}
		for _, f := range frames {
			b = append(b, f(c)...)
		}
		return b
	}
	msg := func(s string) func(*caller) []byte { return func(c *caller) []byte { return c.msg(s) } }
	data := func(id, off uint64, n int) func(*caller) []byte {
		return func(c *caller) []byte { return c.frame(kindData, append(words(id, off), make([]byte, n)...)) }
	}
	accept := func(id, recv, n uint64) func(*caller) []byte {
		return func(c *caller) []byte { return c.frame(kindAccept, words(id, recv, n)) }
	}
	refuse := func(id uint64) func(*caller) []byte {
		return func(c *caller) []byte { return c.frame(kindRefuse, words(id)) }
	}
	f.Add(gen(msg("hello"), msg(""), msg("world")), uint16(3), true)
	f.Add(gen(data(1, 0, 10), msg("x"), data(1, 10, 40), data(2, 0, 0)), uint16(30), true)
	f.Add(gen(accept(1, 7, 100), accept(1, 7, 100), accept(9, 1, 1)), uint16(1000), true)
	f.Add(gen(refuse(1), refuse(2), data(1, 0, 1)), uint16(1), true)
	f.Add(gen(data(2, 0, 0), data(2, 0, 0)), uint16(100), false)
	f.Fuzz(func(t *testing.T, stream []byte, step uint16, fix bool) {
		if len(stream) > 4096 {
			return
		}
		if fix {
			stream = bytes.Clone(stream)
			number(stream)
		}
		p := open(t, 1, Options{})
		fd := adoptPair(t, p, 2)
		var d [transport.MaxDesc]byte
		if _, err := p.Offer(0, make([]byte, 100), 11, d[:]); err != nil {
			t.Fatal(err)
		}
		const guard = 64
		room := make([]byte, 50+2*guard)
		putDesc(d[:], desc{serial: 2, id: 1, bytes: 50})
		if err := p.Accept(0, d[:descBytes], room[guard:guard+50], 12); err != nil {
			t.Fatal(err)
		}
		if err := p.Accept(0, d[:descBytes], nil, 13); err != nil {
			t.Fatal(err)
		}
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			n, err := unix.Write(fd, rest[:n])
			if err != nil {
				break // p has closed it
			}
			rest = rest[n:]
			p.poll()
		}
		unix.Shutdown(fd, unix.SHUT_WR)
		p.askNext = true
		for range 10000 {
			if p.count(transport.EvDown) > 0 {
				break
			}
			p.poll()
		}
		last := p.first(transport.EvDown)
		if last != &p.events[len(p.events)-1] || p.count(transport.EvDown) != 1 {
			t.Fatalf("events %+v: want one EvDown, at the end", p.events)
		}
		if n := p.count(transport.EvBulk); n != 3 {
			t.Fatalf("%d EvBulk, want 3: %+v", n, p.events)
		}
		for i := range guard {
			if room[i] != 0 || room[len(room)-1-i] != 0 {
				t.Fatal("bytes outside the receive were written")
			}
		}
		p.Release(0)
		p.closeAll()
	})
}
