// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

func wantClass(t *testing.T, what string, f *fault.Fault, r fault.Class) {
	t.Helper()
	if f == nil || !errors.Is(f.Err, r) {
		t.Errorf("%s: %+v, want %v", what, f, r)
	}
}

// What is outside, misaligned, or does not fit is refused with its numbers, and
// no memory is touched.
func TestRefusals(t *testing.T) {
	const size = 4096
	eachAccess(t, size, func(a access) {
		random(a.region.Mem())
		before := bytes.Clone(a.region.Mem())
		src := make([]byte, 2*size)
		huge := must(t)(dtype.NewResized(dtype.Byte, 0, math.MaxInt64/2))
		far := must(t)(dtype.NewHindexed([]int64{1, 1}, []int64{math.MinInt64 / 2, 8}, dtype.Byte))
		back := must(t)(dtype.NewResized(int64Type, 0, -16))
		for _, c := range []struct {
			name string
			l    Layout
			want fault.Class
		}{
			{"before", Layout{-1, dtype.Byte, 1}, fault.RMARange},
			{"far before", Layout{math.MinInt64, dtype.Byte, 1}, fault.RMARange},
			{"behind", Layout{size, dtype.Byte, 1}, fault.RMARange},
			{"over the end", Layout{size - 7, dtype.Byte, 8}, fault.RMARange},
			{"too large", Layout{0, dtype.Byte, size + 1}, fault.RMARange},
			{"far behind", Layout{math.MaxInt64, dtype.Byte, 8}, fault.RMARange},
			{"wraps", Layout{math.MaxInt64 - 3, int64Type, 1}, fault.RMARange},
			{"count overflows", Layout{0, int64Type, math.MaxInt64}, fault.RMARange},
			{"count overflows to little", Layout{0, int64Type, 1<<61 + 1}, fault.RMARange},
			{"huge extent", Layout{0, huge, 3}, fault.RMARange},
			{"huge extent within 64 bits", Layout{0, huge, 2}, fault.RMARange},
			{"far block", Layout{0, far, 1}, fault.RMARange},
			{"far block, far offset", Layout{math.MaxInt64, far, 1}, fault.RMARange},
			{"backwards over the start", Layout{16, back, 3}, fault.RMARange},
			{"negative count", Layout{0, dtype.Byte, -1}, fault.Type},
			{"no type", Layout{0, nil, 1}, fault.Type},
			{"other size", Layout{0, dtype.Byte, 3}, fault.Count},
		} {
			n := int64(8)
			if c.l.Type != nil && c.want == fault.RMARange {
				n = min(c.l.Count*c.l.Type.Size, 2*size)
				if n <= 0 {
					n = 8
				}
			}
			buf := strided(src, 0, n, dtype.Byte)
			wantClass(t, a.name+" put "+c.name, a.target.Put(buf, c.l), c.want)
			wantClass(t, a.name+" get "+c.name, a.target.Get(buf, c.l), c.want)
			wantClass(t, a.name+" accumulate "+c.name, a.target.Accumulate(buf, c.l, kernel.Replace), c.want)
			wantClass(t, a.name+" fetch "+c.name, a.target.GetAccumulate(buf, buf, c.l, kernel.NoOp), c.want)
		}
		word := strided(src, 0, 1, int64Type)
		odd := must(t)(dtype.NewHindexed([]int64{1, 1}, []int64{0, 12}, int64Type))
		wantClass(t, "misaligned", a.target.Accumulate(word, Layout{4, int64Type, 1}, kernel.Sum), fault.Arg)
		wantClass(t, "misaligned", a.target.Accumulate(strided(src, 0, 2, int64Type), Layout{0, odd, 1}, kernel.Sum), fault.Arg)
		wantClass(t, "misaligned", a.target.CompareAndSwap(word, word, word, 1), fault.Arg)
		wantClass(t, "swap outside", a.target.CompareAndSwap(word, word, word, size), fault.RMARange)
		wantClass(t, "swap outside", a.target.CompareAndSwap(word, word, word, -8), fault.RMARange)
		wantClass(t, "types differ", a.target.Accumulate(word, Layout{0, basicOf(dtype.Uint64), 1}, kernel.Sum), fault.Op)
		wantClass(t, "no operation", a.target.Accumulate(word, Layout{0, int64Type, 1}, kernel.MinLoc), fault.Op)
		wantClass(t, "no operation", a.target.Accumulate(word, Layout{0, int64Type, 1}, 77), fault.Op)
		wantClass(t, "sizes differ", a.target.GetAccumulate(strided(src, 0, 2, int64Type), word, Layout{0, int64Type, 1}, kernel.Sum), fault.Count)
		if !bytes.Equal(a.region.Mem(), before) {
			t.Errorf("%s: memory was touched", a.name)
		}
		flush(t, a.target)
	})
}

// The owner checks for itself: a target that believes otherwise is refused, and
// told at Flush.
func TestOwnerRefuses(t *testing.T) {
	for _, heap := range []bool{false, true} {
		ss := testJobOf(t, 2)
		ss[0].onlyServed = true
		mem := make([]byte, 4096)
		r, err := ss[1].Expose(mem, 0)
		if !heap {
			r, err = ss[1].Allocate(4096, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		mem = r.Mem()
		random(mem)
		before := bytes.Clone(mem)
		d := r.Desc()
		target, f := ss[0].Reach(ss[1].self, &d)
		ok(t, f)
		target.size = math.MaxInt64 // a lie
		buf := buffer.Of(random(make([]byte, 256)))
		buf.Type = int64Type
		at := func(off int64) Layout { return Layout{off, int64Type, 32} }
		for _, c := range []struct {
			name string
			do   func() *fault.Fault
			want fault.Class
		}{
			{"put", func() *fault.Fault { return target.Put(buf, at(4096)) }, fault.RMARange},
			{"put over the end", func() *fault.Fault { return target.Put(buf, at(4096-255)) }, fault.RMARange},
			{"get", func() *fault.Fault { return target.Get(buf, at(math.MaxInt64-256)) }, fault.RMARange},
			{"accumulate", func() *fault.Fault { return target.Accumulate(buf, at(4096-8), kernel.Sum) }, fault.RMARange},
			{"fetch", func() *fault.Fault { return target.GetAccumulate(buf, buf, at(1<<40), kernel.Sum) }, fault.RMARange},
			{"swap", func() *fault.Fault { w := buf.Part(0, 8); return target.CompareAndSwap(w, w, w, 4096) }, fault.RMARange},
		} {
			ok(t, c.do())
			wantClass(t, c.name, target.Flush(nil), c.want)
			flush(t, target) // told once
		}
		target.size, target.phase = 4096, 4 // another lie
		ok(t, target.Accumulate(buf, at(4), kernel.Sum))
		wantClass(t, "misaligned", target.Flush(nil), fault.Arg)
		target.phase = 0
		target.nonce++
		ok(t, target.Put(buf, at(0)))
		wantClass(t, "nonce", target.Flush(nil), fault.Closed)
		target.nonce--
		target.handle += 5
		ok(t, target.Get(buf, at(0)))
		wantClass(t, "handle", target.Flush(nil), fault.Closed)
		target.handle -= 5
		if !bytes.Equal(mem, before) {
			t.Error("memory was touched")
		}
		// It works on.
		ok(t, target.Put(buf, at(8)))
		flush(t, target)
		if !bytes.Equal(mem[8:264], buf.Slice()) {
			t.Error("put after refusals")
		}
		r.Close()
		ok(t, target.Put(buf, at(8)))
		wantClass(t, "closed", target.Flush(nil), fault.Closed)
	}
}
