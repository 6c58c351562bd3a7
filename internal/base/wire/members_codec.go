// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// MaxMembers is the largest list of processes that ReadMembers accepts.
const MaxMembers = 1 << 26

// rangeBytes is the size of a range on the wire, little-endian:
//
//	 0  job of the first process
//	 8  its serial
//	12  number of processes
//	16  stride
const rangeBytes = 24

// AppendMembers appends the encoding of m: the number of ranges in four bytes, then
// the ranges.
func AppendMembers(b []byte, m Members) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.ranges)))
	for _, r := range m.ranges {
		b = binary.LittleEndian.AppendUint64(b, uint64(r.First.Job))
		b = binary.LittleEndian.AppendUint32(b, r.First.Serial)
		b = binary.LittleEndian.AppendUint32(b, uint32(r.Count))
		b = binary.LittleEndian.AppendUint64(b, uint64(r.Stride))
	}
	return b
}

// ReadMembers decodes a list that AppendMembers has encoded and returns the rest of b.
// It accepts at most maxRanges ranges, only the shortest form, and no process twice.
func ReadMembers(b []byte, maxRanges int) (Members, []byte, error) {
	if len(b) < 4 {
		return Members{}, nil, fmt.Errorf("list of processes ends %d bytes early", 4-len(b))
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if n > uint64(maxRanges) {
		return Members{}, nil, fmt.Errorf("%d ranges of processes, at most %d allowed", n, maxRanges)
	}
	if n*rangeBytes > uint64(len(b)) {
		return Members{}, nil, fmt.Errorf("%d ranges of processes in %d bytes", n, len(b))
	}
	rs := make([]Range, n)
	var mb MembersBuilder
	for i := range rs {
		job, serial := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
		count, stride := binary.LittleEndian.Uint32(b[12:]), int64(binary.LittleEndian.Uint64(b[16:]))
		b = b[rangeBytes:]
		r := Range{ProcID{JobID(job), serial}, int(count), int(stride)}
		if count == 0 || count > MaxMembers || stride == 0 || stride < -1<<32 || stride > 1<<32 || !r.valid() {
			return Members{}, nil, fmt.Errorf("%d processes from %v, stride %d", count, r.First, stride)
		}
		if mb.Add(r); mb.m.n > MaxMembers {
			return Members{}, nil, fmt.Errorf("more than %d processes", MaxMembers)
		}
		rs[i] = r
	}
	m := mb.Members()
	if !slices.Equal(m.ranges, rs) {
		return Members{}, nil, fmt.Errorf("ranges of processes are not in their shortest form")
	}
	if !m.Check() {
		return Members{}, nil, fmt.Errorf("a process is listed twice")
	}
	return m, b, nil
}
