// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"fmt"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// layouts are places for about n elements of a type: side by side, a column,
// backwards, blocks at odd places, none.
func layouts(t testing.TB, dt *dtype.Type, n int64) map[string]Layout {
	size := dt.Size
	displs := make([]int64, n/4)
	for i := range displs {
		displs[i] = int64(i)*5 + int64(i%2)
	}
	back := must(t)(dtype.NewResized(dt, 0, -2*size))
	return map[string]Layout{
		"none":      {0, dt, 0},
		"one":       {3 * size, dt, 1},
		"flat":      {size, dt, n},
		"column":    {2 * size, must(t)(dtype.NewVector(n, 1, 3, dt)), 1},
		"rows":      {0, must(t)(dtype.NewVector(n/4, 4, 7, dt)), 1},
		"blocks":    {size, must(t)(dtype.NewIndexedBlock(4, displs, dt)), 1},
		"backwards": {2 * size * n, back, n},
		"behind":    {-size, must(t)(dtype.NewHindexed([]int64{n / 2, n / 2}, []int64{8 * size, size * (n + 9)}, dt)), 1},
	}
}

// Every operation on every kind, every way, with strides on both sides, against
// the oracle.
func TestOperations(t *testing.T) {
	numbers := newSpecials()
	eachAccess(t, 3*pieceBytes+4096, func(a access) {
		mem := a.region.Mem()
		for k := range dtype.NumKinds {
			if underRace && k%4 != dtype.Int64%4 {
				continue // it takes a minute
			}
			dt := basicOf(k)
			for name, to := range layouts(t, dt, pieceBytes/dt.Size+44) {
				bytesOf := to.Count * to.Type.Size
				origin := numbers.fill(k, make([]byte, 2*bytesOf))
				flat := buffer.Of(origin[:bytesOf])
				flat.Type = dt
				gaps := strided(origin, 0, bytesOf/dt.Size, must(t)(dtype.NewResized(dt, 0, 2*dt.Size)))
				for _, op := range allOps {
					if op < kernel.Replace && kernel.Of(op, k) == nil {
						if f := a.target.Accumulate(flat, to, op); bytesOf > 0 && (f == nil || f.Err.(*AccessError).Class != fault.Op) {
							t.Fatalf("%s: operation %d on kind %d: %+v", a.name, op, k, f)
						}
						continue
					}
					for i, src := range []buffer.Buf{flat, gaps} {
						what := fmt.Sprintf("%s: operation %d on kind %d, %s, origin %d", a.name, op, k, name, i)
						numbers.fill(k, mem)
						want := bytes.Clone(mem)
						operand := make([]byte, bytesOf)
						if bytesOf > 0 {
							src.Pack(operand, 0)
						}
						was := packed(want, to)
						store(want, to, apply(op, k, was, operand))
						result := make([]byte, 2*bytesOf)
						var into buffer.Buf
						switch {
						case i == 0:
							into = buffer.Of(result[:bytesOf])
							into.Type = dt
						default:
							into = strided(result, 0, bytesOf/dt.Size, gaps.Type)
						}
						ok(t, a.target.GetAccumulate(src, into, to, op))
						flush(t, a.target)
						compare(t, what, k, mem, want)
						if bytesOf > 0 {
							into.Pack(operand, 0)
							compare(t, what+", result", k, operand, was)
						}
						if i == 1 {
							src.Pack(operand[:bytesOf:bytesOf], 0)
						} else {
							copy(operand, origin)
						}
						store(want, to, apply(op, k, packed(want, to), operand))
						ok(t, a.target.Accumulate(src, to, op))
						flush(t, a.target)
						compare(t, what+", again", k, mem, want)
					}
				}
			}
		}
	})
}

func compare(t *testing.T, what string, k dtype.Kind, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: byte %d is %#x, want %#x", what, i, got[i], want[i])
		}
	}
}
