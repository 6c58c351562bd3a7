// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"cmp"
	"encoding/binary"

	"gompi/internal/base/wire"
	"gompi/internal/host/mem"
)

// joinDuplex gives both ends of a connection its duplex line, when both fast boxes exist. A
// side that may not write there still reads it: the peer's setting may differ.
func (t *Transport) joinDuplex(c *conn) {
	if c.in == nil || c.out.box == nil {
		return
	}
	mine, line := 1, &c.out.box.duplex
	if cmp.Or(cmp.Compare(t.env.Self.Job, c.proc.Job), cmp.Compare(t.env.Self.Serial, c.proc.Serial)) < 0 {
		mine, line = 0, &c.in.box.duplex
	}
	c.in.half = &line[1-mine]
	if !t.noDuplex {
		c.out.half = &line[mine]
	}
}

// answer writes an answer into the duplex line, which came with the message that it
// answers. Then the line returns with it, while a slot would have to be fetched. The answer
// must fit, and the peer must have taken the last one. A longer payload goes to the place
// in the data ring that room has found.
func (o *outRing) answer(h *wire.Header, p []byte) bool {
	l := &o.duplexHeader
	if o.back.echo != o.duplexSent || h[0] != l[0] || h[1] != l[1] {
		return false
	}
	if len(p) > duplexMax {
		w := o.writeData(p, true)
		l[2], l[3] = h[2], h[3]
		o.half.words = [3]uint64{h[2], h[3], uint64(o.back.freed)}
		o.endDuplex(w, len(p))
		return true
	}
	if h[3] != l[3] {
		return false
	}
	w := uint64(repeats)
	var words [3]uint64
	at := words[:]
	if h[2] != l[2] {
		if len(p) > duplexMax-8 {
			return false
		}
		l[2], words[0], w, at = h[2], h[2], 0, words[1:]
	}
	intoWords(at, p)
	if len(p) <= 8*(len(at)-1) {
		words[2] = uint64(o.back.freed)
	}
	x := o.half
	x.words[0], x.words[1], x.words[2] = words[0], words[1], words[2]
	o.endDuplex(w, len(p))
	return true
}

// littleEndian reports whether the first byte of a word is its lowest.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// intoWords packs a short payload into words. It stores whole words: a load of a word that
// was stored in parts would wait.
func intoWords(to []uint64, p []byte) {
	if !littleEndian {
		copy(bytesOf(to), p)
		return
	}
	n, i := len(p), 0
	for ; n >= 8*(i+1); i++ {
		to[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	rest := n - 8*i
	switch {
	case rest == 0:
	case n >= 8:
		to[i] = binary.LittleEndian.Uint64(p[n-8:]) >> (64 - 8*rest)
	case n >= 4:
		to[0] = uint64(binary.LittleEndian.Uint32(p)) | uint64(binary.LittleEndian.Uint32(p[n-4:]))<<(8*n-32)
	case n >= 2:
		to[0] = uint64(binary.LittleEndian.Uint16(p)) | uint64(p[n-1])<<(8*n-8)
	default:
		to[0] = uint64(p[0])
	}
}

// endDuplex publishes a message of n bytes in the duplex line.
func (o *outRing) endDuplex(w uint64, n int) {
	o.duplexSent ^= taken
	o.pos++
	o.edge.release()
	o.half.word.Store(slotWord(o.pos, kindData, n) | w | o.back.took)
}

// duplexNext reports whether the duplex line has the next message, and returns its word.
func (r *inRing) duplexNext() (w uint64, yes bool) {
	if !r.duplex {
		return 0, false
	}
	w = r.half.word.Load()
	return w, uint32(w>>32) == r.seq
}

// readDuplex takes the message whose word is w from the duplex line. It returns false if
// the message is impossible. The peer may overwrite the line as soon as it knows that the
// message was taken, so payload and header are copies.
func (r *inRing) readDuplex(w uint64) (h *wire.Header, p []byte, ok bool) {
	r.edge.acquire()
	k, n := splitWord(w)
	words := &r.duplexWords
	*words = r.half.words
	switch {
	case k != kindData || n > r.eager:
		return nil, nil, false
	case n > duplexMax:
		r.duplexHeader[2], r.duplexHeader[3] = words[0], words[1]
		r.conn.out.freed(uint32(words[2]))
		p = r.inData(w, n)
	default:
		p = bytesOf(words[:])
		if w&repeats == 0 {
			r.duplexHeader[2], p = words[0], p[8:]
		}
		if n > len(p) {
			return nil, nil, false
		}
		if o, ack := &r.conn.out, uint32(words[2]); n <= len(p)-8 && ack != o.dataDone {
			o.freed(ack)
		}
	}
	if o := &r.conn.out; o.nextLen != 0 {
		mem.Prefetch(o.data[o.nextAt:][:o.nextLen])
	}
	r.echo = w & taken
	r.took ^= taken
	r.advance()
	return &r.duplexHeader, p[:n:n], true
}
