// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
)

// MaxRanges bounds the ranges of a process list, MaxMembers its processes,
// MaxHostRuns what is said of where they are.
const (
	MaxRanges   = 1 << 16
	MaxMembers  = wire.MaxMembers
	MaxHostRuns = 1 << 14
)

// enc appends fields to b. Lengths are the caller's promise.
type enc struct{ b []byte }

func (e *enc) u8(v uint8)     { e.b = append(e.b, v) }
func (e *enc) u32(v uint32)   { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *enc) u64(v uint64)   { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *enc) i64(v int64)    { e.u64(uint64(v)) }
func (e *enc) bytes(v []byte) { e.u32(uint32(len(v))); e.b = append(e.b, v...) }
func (e *enc) str(v string)   { e.u32(uint32(len(v))); e.b = append(e.b, v...) }

func (e *enc) flag(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

func (e *enc) proc(p wire.ProcID) { e.u64(uint64(p.Job)); e.u32(p.Serial) }

func (e *enc) members(m wire.Members) { e.b = wire.AppendMembers(e.b, m) }

func (e *enc) set(s wire.Set) {
	e.str(s.URI)
	e.u32(s.Number)
	e.members(s.Members)
	e.b = wire.AppendHosts(e.b, s.Hosts)
}

func (e *enc) strs(v []string) {
	e.u32(uint32(len(v)))
	for _, s := range v {
		e.str(s)
	}
}

// dec takes fields from b. After the first failure everything is zero and err
// says what was wrong.
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

// count reads a number of things that take at least each bytes, so that a
// large number in a short body allocates nothing.
func (d *dec) count(limit, each int) int {
	n := d.u32()
	if uint64(n) > uint64(limit) {
		d.fail("%d elements, at most %d allowed", n, limit)
		return 0
	}
	if int(n)*each > len(d.b) {
		d.fail("%d elements in %d bytes", n, len(d.b))
		return 0
	}
	return int(n)
}

// bytes returns a part of the body: copy what outlives it.
func (d *dec) bytes(limit int) []byte {
	n := d.u32()
	if uint64(n) > uint64(limit) {
		d.fail("%d bytes, at most %d allowed", n, limit)
		return nil
	}
	return d.take(int(n))
}

func (d *dec) str(limit int) string { return string(d.bytes(limit)) }

// num reads a number from 0 to limit into an int.
func (d *dec) num(limit int) int {
	v := d.i64()
	if v < 0 || v > int64(limit) {
		d.fail("number %d is not in 0..%d", v, limit)
		return 0
	}
	return int(v)
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

// hosts completes a set by where its members are.
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

// end finishes a body: nothing may be left.
func (d *dec) end() error {
	if d.err == nil && len(d.b) != 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	return d.err
}
