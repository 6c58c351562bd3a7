// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"gompi/internal/base/wire"
)

// mix is a bijection with good avalanche (the finalizer of splitmix64): every
// bit of a header word depends on every bit of what it was made from.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fill writes the payload that belongs to seed.
func fill(p []byte, seed uint64) {
	for len(p) >= 8 {
		seed = mix(seed)
		binary.LittleEndian.PutUint64(p, seed)
		p = p[8:]
	}
	seed = mix(seed)
	for i := range p {
		p[i] = byte(seed >> (8 * i))
	}
}

// checkFill reports the first byte of p that differs from fill's.
func checkFill(p []byte, seed uint64) error {
	for i := 0; i < len(p); i += 8 {
		seed = mix(seed)
		if i+8 <= len(p) && binary.LittleEndian.Uint64(p[i:]) == seed {
			continue
		}
		for j := i; j < min(i+8, len(p)); j++ {
			if want := byte(seed >> (8 * (j - i))); p[j] != want {
				return fmt.Errorf("byte %d of %d is %#02x, want %#02x", j, len(p), p[j], want)
			}
		}
	}
	return nil
}

// The kinds of message that the suite sends.
const (
	kindData  = 1 // payload by fill
	kindOffer = 2 // payload is the descriptor of a bulk offer
)

// message is what a suite message says. The header carries all of it, and a
// word of check bits.
type message struct {
	seq      uint64 // counts the messages of a directed pair from 0
	kind     uint8
	bytes    int
	arg      uint64
	from, to wire.ProcID
}

// pair is different for every directed pair of processes of a fabric.
func pair(from, to wire.ProcID) uint64 {
	return mix(uint64(from.Job)) ^ mix(uint64(to.Job)<<1) ^ uint64(from.Serial)<<32 ^ uint64(to.Serial)
}

// seed of the payload.
func (m *message) seed() uint64 { return mix(pair(m.from, m.to) ^ mix(m.seq)) }

func (m *message) header() wire.Header {
	s := m.seed()
	sizes := uint64(m.bytes) | uint64(m.kind)<<56
	return wire.Header{m.seq ^ s, sizes ^ mix(s), m.arg ^ mix(s+1), mix(s ^ mix(sizes) ^ m.arg)}
}

// readMessage takes h apart for the message that must come next; an error
// says how it differs from that.
func readMessage(h wire.Header, seq uint64, from, to wire.ProcID) (message, error) {
	m := message{seq: seq, from: from, to: to}
	s := m.seed()
	if got := h[0] ^ s; got != seq {
		return m, fmt.Errorf("message out of order or damaged: header %x gives number %d, want %d", h, got, seq)
	}
	sizes := h[1] ^ mix(s)
	m.kind, m.bytes, m.arg = uint8(sizes>>56), int(sizes<<8>>8), h[2]^mix(s+1)
	if h != m.header() {
		return m, fmt.Errorf("message %d: header %x is damaged", seq, h)
	}
	return m, nil
}

// corpus is random memory that bulk tests send from at odd offsets; made once
// and never written again.
var corpus = sync.OnceValue(func() []byte {
	b := make([]byte, 33<<20)
	r := rand.NewChaCha8([32]byte{'g', 'o', 'm', 'p', 'i'})
	_, _ = r.Read(b)
	return b
})
