// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
	"gompi/transport"
)

// The frames of operations. A request names a region of the receiver by handle
// and nonce, and says where in it its packed bytes lie by groups of runs:
//
//	 0 kind  1 operation  2 kind of element  3 zero
//	 4 handle (uint32)  8 nonce  16 number
//	24 packed bytes (uint32)  28 groups (uint32)
//	32 groups: offset, stride (int64), bytes of a run, runs (uint32)
//	   then the operand: put, accumulate, fetch (but for NoOp), swap (two)
//
// Requests of a pair of processes are numbered from 1 and served in order; an
// answer to one answers all before it. Everything is little-endian.
//
//	ask      0 kind  8 number                   wants an answer up to there
//	done     0 kind  8 number
//	reply    0 kind  8 number  16 data          to get, fetch, swap
//	refusal  0 kind  1 reason  8 number  16 offset  24 bytes  32 size
const (
	frameMin = iota
	framePut
	frameGet
	frameAccumulate
	frameFetch
	frameSwap
	frameAsk
	frameDone
	frameReply
	frameRefusal
	frameMax

	firstSync = 16 // kinds from here on are those of synchronisation
)

const (
	requestBytes = 32
	groupBytes   = 24
	replyBytes   = 16
	refusalBytes = 40

	// maxGroups is the largest number of groups in a frame.
	maxGroups = (engine.FrameMax - requestBytes) / groupBytes
	// maxPacked is the largest number of packed bytes in a request whose data or reply
	// travel in one frame.
	maxPacked = engine.FrameMax - requestBytes - groupBytes
)

// group is a number of runs of one length, at one stride.
type group struct {
	off, stride int64
	length      uint32
	runs        uint32
}

// request is the head of a frame that asks for something.
type request struct {
	kind   byte
	op     kernel.Op
	elem   dtype.Kind
	handle uint32
	nonce  uint64
	number uint64
	bytes  uint32
	groups uint32
}

func (q *request) put(b []byte) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = q.kind, byte(q.op), byte(q.elem), 0
	le.PutUint32(b[4:], q.handle)
	le.PutUint64(b[8:], q.nonce)
	le.PutUint64(b[16:], q.number)
	le.PutUint32(b[24:], q.bytes)
	le.PutUint32(b[28:], q.groups)
}

func (g *group) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b, uint64(g.off))
	le.PutUint64(b[8:], uint64(g.stride))
	le.PutUint32(b[16:], g.length)
	le.PutUint32(b[20:], g.runs)
}

func getGroup(b []byte) group {
	le := binary.LittleEndian
	return group{int64(le.Uint64(b)), int64(le.Uint64(b[8:])), le.Uint32(b[16:]), le.Uint32(b[20:])}
}

// operands returns how many times the packed bytes follow the groups.
func (q *request) operands() int {
	switch {
	case q.kind == framePut, q.kind == frameAccumulate, q.kind == frameFetch && q.op != kernel.NoOp:
		return 1
	case q.kind == frameSwap:
		return 2
	}
	return 0
}

// replies reports whether the answer has the packed bytes.
func (q *request) replies() bool {
	return q.kind == frameGet || q.kind == frameFetch || q.kind == frameSwap
}

// parse decodes a request and checks that it is complete. kind was read from it and is a
// request's kind. The groups are copied to room, since the frame may change. Each run fits
// 64 bits, but may be outside the region.
func (q *request) parse(kind byte, b []byte, room *[maxGroups]group) (groups []group, data []byte, err error) {
	le := binary.LittleEndian
	if len(b) < requestBytes {
		return nil, nil, fmt.Errorf("%w: request of %d bytes", transport.ErrProtocol, len(b))
	}
	*q = request{
		kind: kind, op: kernel.Op(b[1]), elem: dtype.Kind(b[2]), handle: le.Uint32(b[4:]), nonce: le.Uint64(b[8:]),
		number: le.Uint64(b[16:]), bytes: le.Uint32(b[24:]), groups: le.Uint32(b[28:]),
	}
	rest := b[requestBytes:]
	if q.groups == 0 || q.bytes == 0 || q.bytes > maxPacked || uint64(q.groups)*groupBytes > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%w: request of %d bytes with %d groups and %d packed bytes", transport.ErrProtocol, len(b), q.groups, q.bytes)
	}
	groups = room[:q.groups]
	data = rest[int(q.groups)*groupBytes:]
	if len(data) != q.operands()*int(q.bytes) {
		return nil, nil, fmt.Errorf("%w: %d bytes of operands for %d", transport.ErrProtocol, len(data), q.bytes)
	}
	total := uint64(0)
	for i := range groups {
		g := getGroup(rest[i*groupBytes:])
		groups[i] = g
		total += uint64(g.length) * uint64(g.runs) // at most maxPacked, and 64 bits
		if g.length == 0 || g.runs == 0 || total > uint64(q.bytes) {
			return nil, nil, fmt.Errorf("%w: %d runs of %d bytes, %d are left", transport.ErrProtocol, g.runs, g.length, uint64(q.bytes)-total)
		}
	}
	if total != uint64(q.bytes) {
		return nil, nil, fmt.Errorf("%w: runs of %d bytes, %d announced", transport.ErrProtocol, total, q.bytes)
	}
	return groups, data, nil
}

// within reports whether all runs lie within a region of a size.
func (g *group) within(size int64) bool {
	if g.off < 0 || g.off > size-int64(g.length) {
		return false
	}
	last := g.off
	if n := int64(g.runs) - 1; n > 0 {
		// All places are within the region only if the stride is less than its size. Then n
		// strides fit, because n is less than maxPacked.
		if g.stride >= size || g.stride <= -size || size > maxBytes {
			return false
		}
		last += n * g.stride
	}
	return last >= 0 && last <= size-int64(g.length)
}

// aligned reports whether all runs are whole numbers of a width, at multiples of it, in a
// region whose first byte has that phase.
func (g *group) aligned(phase uint8, width int64) bool {
	return (g.off+int64(phase))%width == 0 && int64(g.length)%width == 0 && (g.runs == 1 || g.stride%width == 0)
}

// cut describes the first of n packed bytes of a layout from off on, as many as fit room
// bytes of a frame, and at most most. It returns the number of groups and of bytes. With
// data set the frame has the bytes as well. Elements of unit bytes are not split.
func (l *Layout) cut(groups *[maxGroups]group, off, n, unit, room, most int64, data bool) (count int, k int64) {
	n = min(n, most)
	for k < n {
		at, m := l.run(off+k, n-k)
		if count > 0 {
			if g := &groups[count-1]; g.length == uint32(m) && (g.runs == 1 || at-g.stride*int64(g.runs) == g.off) && (!data || m <= room) {
				if g.runs == 1 {
					g.stride = at - g.off
				}
				g.runs++
				if k += m; data {
					room -= m
				}
				continue
			}
		}
		left := room - groupBytes
		if left < 0 {
			break
		}
		if data && m > left {
			if m = left - left%unit; m <= 0 {
				break
			}
		}
		groups[count] = group{off: at, length: uint32(m), runs: 1}
		count++
		k += m
		if room = left; data {
			room -= m
		}
	}
	return count, k
}
