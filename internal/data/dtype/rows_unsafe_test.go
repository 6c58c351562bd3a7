// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: the inner loops take addresses.

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"
)

// rowLoops are the loops for long rows. They must do what a loop of bytes does.
var rowLoops = map[string]func(dst, src unsafe.Pointer, dstStep, srcStep, count, size int64){
	"moveRows":    moveRows,
	"streamRows":  streamRows,
	"moveLong":    func(d, s unsafe.Pointer, ds, ss, n, size int64) { moveLong(d, s, ds, ss, n, size) },
	"copyStrided": copyStrided,
	"copyAround":  copyStream,
}

// checkRows moves rows between memory at these misalignments. It reports what
// is not as it should be: rows, or bytes around them.
func checkRows(name string, dstAt, srcAt, dstGap, srcGap, count, size int64) error {
	dstStep, srcStep := size+dstGap, size+srcGap
	src := make([]byte, 64+srcAt+count*srcStep)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	got := bytes.Repeat([]byte{0xEE}, int(64+dstAt+count*dstStep+64))
	want := bytes.Clone(got)
	for i := range count {
		copy(want[dstAt+i*dstStep:][:size], src[srcAt+i*srcStep:])
	}
	rowLoops[name](unsafe.Pointer(&got[dstAt]), unsafe.Pointer(&src[srcAt]), dstStep, srcStep, count, size)
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s of %d rows of %d bytes from %d+%d to %d+%d: byte %d is %d, want %d",
				name, count, size, srcAt, srcGap, dstAt, dstGap, i, got[i], want[i])
		}
	}
	return nil
}

func TestRows(t *testing.T) {
	for name := range rowLoops {
		for _, size := range []int64{512, 513, 527, 575, 576, 1000, 1024, 4095, 4096, 4099, 65535, 65536 + 1, 65536 + 511, 3*65536 + 100} {
			for _, at := range []int64{0, 1, 15, 16, 33, 63} {
				for _, gap := range []int64{0, 8, 100} {
					for _, count := range []int64{1, 2, 5} {
						if err := checkRows(name, at, 63-at, gap, 0, count, size); err != nil {
							t.Error(err)
						}
						if err := checkRows(name, 63-at, at, 0, gap, count, size); err != nil {
							t.Error(err)
						}
					}
				}
			}
		}
	}
	if err := checkRows("copyStrided", 1, 2, 0, 64, 1000, 513); err != nil {
		t.Error(err) // several calls of the assembly
	}
}

func FuzzRows(f *testing.F) {
	f.Add(uint8(0), uint8(7), uint8(3), uint8(64), uint8(3), uint16(100))
	f.Fuzz(func(t *testing.T, dstAt, srcAt, dstGap, srcGap, count uint8, more uint16) {
		for name := range rowLoops {
			if err := checkRows(name, int64(dstAt), int64(srcAt), int64(dstGap), int64(srcGap), 1+int64(count%8), streamMin+int64(more)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestUnpackAround: blocks long and short, cut anywhere, as Unpack places them.
func TestUnpackAround(t *testing.T) {
	for _, block := range []int64{3, 64, 100, 5000} {
		typ, err := NewVector(7, block, block+9, tFloat64)
		if err != nil {
			t.Fatal(err)
		}
		_, hi := typ.Span(0, 2*typ.Size)
		src := make([]byte, 2*typ.Size)
		for i := range src {
			src[i] = byte(1 + i*5 + i>>8)
		}
		want, got := make([]byte, hi), make([]byte, hi)
		typ.Unpack(unsafe.Pointer(&want[0]), 0, src)
		for _, piece := range []int{1 + len(src)/50, 16 << 10, len(src)} {
			clear(got)
			for off := 0; off < len(src); off += piece {
				typ.UnpackStream(unsafe.Pointer(&got[0]), int64(off), src[off:min(off+piece, len(src))])
			}
			if !bytes.Equal(got, want) {
				t.Errorf("blocks of %d elements in pieces of %d bytes are not where Unpack puts them", block, piece)
			}
		}
	}
}
