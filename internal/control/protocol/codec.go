// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"
	"time"

	"gompi/internal/base/wire"
)

// A message is encoded field by field, without names or padding. Numbers are little endian. A
// list or a text begins with its length as four bytes.
//
// The encoder and the decoder of a field take the same limit. The decoder refuses what is beyond
// it, and the encoder does, too, so that no end sends what would break the protocol at the other.

// MaxRanges bounds the ranges of a list of processes, MaxMembers the processes in it, and
// MaxHostRuns the runs of members that are on one host.
const (
	MaxRanges   = 1 << 16
	MaxMembers  = wire.MaxMembers
	MaxHostRuns = 1 << 14
)

// enc appends fields to b. After the first field that is beyond its limit, long says which limit
// that is, and b is of no use.
type enc struct {
	b    []byte
	long string
}

func (e *enc) fail(format string, args ...any) {
	if e.long == "" {
		e.long = fmt.Sprintf(format, args...)
	}
}

func (e *enc) u8(v uint8)   { e.b = append(e.b, v) }
func (e *enc) u32(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *enc) u64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *enc) i64(v int64)  { e.u64(uint64(v)) }

func (e *enc) flag(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

// num appends a number from 0 to limit.
func (e *enc) num(v, limit int) {
	if v < 0 || v > limit {
		e.fail("number %d is not in 0..%d", v, limit)
	}
	e.i64(int64(v))
}

// duration appends a span of time that is not negative.
func (e *enc) duration(v time.Duration) { e.num(int(v), maxDuration) }

// count appends the length of a list.
func (e *enc) count(n, limit int) {
	if n > limit {
		e.fail("%d elements, at most %d allowed", n, limit)
	}
	e.u32(uint32(n))
}

func (e *enc) bytes(v []byte, limit int) {
	if len(v) > limit {
		e.fail("%d bytes, at most %d allowed", len(v), limit)
		return
	}
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

func (e *enc) str(v string, limit int) {
	if len(v) > limit {
		e.fail("%d bytes, at most %d allowed", len(v), limit)
		return
	}
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

// text appends a text for people, of which no more than MaxText bytes travel.
func (e *enc) text(v string) { e.str(Clip(v, MaxText), MaxText) }

// strs appends a list of texts, each of at most so many bytes.
func (e *enc) strs(v []string, limit, each int) {
	e.count(len(v), limit)
	for _, s := range v {
		e.str(s, each)
	}
}

func (e *enc) numbers(v []uint32, limit int) {
	e.count(len(v), limit)
	for _, n := range v {
		e.u32(n)
	}
}

func (e *enc) proc(p wire.ProcID) {
	e.u64(uint64(p.Job))
	e.u32(p.Serial)
}

func (e *enc) members(m wire.Members) {
	if n := len(m.Ranges()); n > MaxRanges {
		e.fail("%d ranges of processes, at most %d allowed", n, MaxRanges)
		return
	}
	e.b = wire.AppendMembers(e.b, m)
}

func (e *enc) set(s wire.Set) {
	e.str(s.URI, MaxName)
	e.u32(s.Number)
	e.members(s.Members)
	if len(s.Hosts) > MaxHostRuns {
		e.fail("%d runs of members on hosts, at most %d allowed", len(s.Hosts), MaxHostRuns)
		return
	}
	e.b = wire.AppendHosts(e.b, s.Hosts)
}

// dec takes fields from b. After the first failure every field is zero, and err says what was
// wrong.
type dec struct {
	b   []byte
	err error
}

func (d *dec) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.b = nil
}

func (d *dec) take(n int) []byte {
	if d.err == nil && len(d.b) < n {
		d.fail("body ends %d bytes early", n-len(d.b))
	}
	if d.err != nil {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *dec) u8() uint8 {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *dec) u32() uint32 {
	if v := d.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (d *dec) u64() uint64 {
	if v := d.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (d *dec) i64() int64 { return int64(d.u64()) }

func (d *dec) flag() bool {
	v := d.u8()
	if v > 1 {
		d.fail("flag is %d", v)
	}
	return v == 1
}

// num takes a number from 0 to limit.
func (d *dec) num(limit int) int {
	v := d.i64()
	if v < 0 || v > int64(limit) {
		d.fail("number %d is not in 0..%d", v, limit)
		return 0
	}
	return int(v)
}

const maxDuration = 1<<63 - 1

// duration takes a span of time that is not negative.
func (d *dec) duration() time.Duration { return time.Duration(d.num(maxDuration)) }

// count takes the length of a list. An element has at least so many bytes, so that a large
// number in a short body allocates nothing.
func (d *dec) count(limit, least int) int {
	n := d.u32()
	if uint64(n) > uint64(limit) {
		d.fail("%d elements, at most %d allowed", n, limit)
		return 0
	}
	if int(n)*least > len(d.b) {
		d.fail("%d elements in %d bytes", n, len(d.b))
		return 0
	}
	return int(n)
}

// bytes returns a part of the body. The caller copies what has to outlive the body.
func (d *dec) bytes(limit int) []byte {
	n := d.u32()
	if uint64(n) > uint64(limit) {
		d.fail("%d bytes, at most %d allowed", n, limit)
		return nil
	}
	return d.take(int(n))
}

func (d *dec) str(limit int) string { return string(d.bytes(limit)) }

func (d *dec) text() string { return d.str(MaxText) }

func (d *dec) strs(limit, each int) []string {
	n := d.count(limit, 4)
	if n == 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = d.str(each)
	}
	return v
}

func (d *dec) numbers(limit int) []uint32 {
	n := d.count(limit, 4)
	if n == 0 {
		return nil
	}
	v := make([]uint32, n)
	for i := range v {
		v[i] = d.u32()
	}
	return v
}

func (d *dec) proc() wire.ProcID {
	return wire.ProcID{Job: wire.JobID(d.u64()), Serial: d.u32()}
}

func (d *dec) members() wire.Members {
	if d.err != nil {
		return wire.Members{}
	}
	m, rest, err := wire.ReadMembers(d.b, MaxRanges)
	if err != nil {
		d.fail("%w", err)
		return wire.Members{}
	}
	d.b = rest
	return m
}

func (d *dec) set() wire.Set {
	return d.hosts(wire.Set{URI: d.str(MaxName), Number: d.u32(), Members: d.members()})
}

// hosts completes a set by the hosts of its members.
func (d *dec) hosts(s wire.Set) wire.Set {
	if d.err != nil {
		return wire.Set{}
	}
	h, rest, err := wire.ReadHosts(d.b, s.Members.Len(), MaxHostRuns)
	if err != nil {
		d.fail("%w", err)
		return wire.Set{}
	}
	d.b, s.Hosts = rest, h
	return s
}

// end finishes a body: nothing may be left of it.
func (d *dec) end() error {
	if d.err == nil && len(d.b) != 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	return d.err
}
