// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCombs compares with sets of bytes.
func TestCombs(t *testing.T) {
	draw := func(r *rapid.T, name string) (dt *Type, off, n int64) {
		stride := rapid.Int64Range(-5, 7).Draw(r, name+" stride")
		dt = must(t)(NewVector(rapid.Int64Range(1, 5).Draw(r, name+" count"), rapid.Int64Range(1, 3).Draw(r, name+" length"), stride, tInt16))
		count := int64(1)
		if rapid.Bool().Draw(r, name+" resized") {
			dt = must(t)(NewResized(tFloat64, 0, 4*stride))
			count = rapid.Int64Range(1, 4).Draw(r, name+" elements")
		}
		return dt, rapid.Int64Range(0, 2).Draw(r, name+" first") * dt.Size, count * dt.Size
	}
	bytesOf := func(dt *Type, off, n int64) map[int64]bool {
		set := map[int64]bool{}
		for ; n > 0; off, n = off+1, n-1 {
			at, _ := dt.Block(off, 1)
			set[at] = true
		}
		return set
	}
	combs, answers, rounds := 0, 0, 20
	if testing.Short() {
		rounds = 100 // rapid makes a fifth of its checks
	}
	for range rounds {
		rapid.Check(t, func(r *rapid.T) {
			a, aOff, aN := draw(r, "a")
			b, bOff, bN := draw(r, "b")
			by := rapid.Int64Range(-40, 40).Draw(r, "by")
			c, ok := a.Comb(aOff, aN)
			o, ok2 := b.Comb(bOff, bN)
			if !ok || !ok2 {
				return
			}
			combs++
			meets, ok := c.Meets(o, by)
			if !ok {
				return
			}
			answers++
			want, set := false, bytesOf(a, aOff, aN)
			for at := range bytesOf(b, bOff, bN) {
				want = want || set[at+by]
			}
			if meets != want {
				r.Fatalf("%+v and %+v by %d meet: %v, want %v", c, o, by, meets, want)
			}
		})
	}
	if combs < 400 || answers < 100 {
		t.Errorf("%d pairs of combs, %d answers: the test says little", combs, answers)
	}
	column := must(t)(NewVector(4096, 1, 4096, tFloat64))
	c, ok := column.Comb(0, column.Size)
	if meets, sure := c.Meets(c, 8); !ok || !sure || meets {
		t.Errorf("neighbouring columns %+v meet: %v, %v", c, meets, sure)
	}
}
