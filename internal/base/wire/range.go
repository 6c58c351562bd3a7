// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// Range is Count processes of one job. The first is First, and the serials lie Stride
// apart.
type Range struct {
	First ProcID
	Count int
	// Stride may be negative. Zero means one.
	Stride int
}

// String returns "job/first+stride*count".
func (r Range) String() string {
	return fmt.Sprintf("%v%+d*%d", r.First, r.Stride, r.Count)
}

// At returns process i, 0 <= i < Count.
func (r Range) At(i int) ProcID {
	return ProcID{r.First.Job, uint32(int(r.First.Serial) + i*r.step())}
}

// Index returns the position of p in r, or -1.
func (r Range) Index(p ProcID) int {
	if p.Job != r.First.Job {
		return -1
	}
	d, s := int(p.Serial)-int(r.First.Serial), r.step()
	if i := d / s; d%s == 0 && i >= 0 && i < r.Count {
		return i
	}
	return -1
}

// Sub returns count processes of r, every step-th from position first on. All must lie
// in r. step may be negative.
func (r Range) Sub(first, count, step int) Range {
	if count == 1 {
		return Range{First: r.At(first), Count: 1, Stride: 1}
	}
	return Range{First: r.At(first), Count: count, Stride: step * r.step()}
}

// Span returns the lowest and the highest serial of r, which must not be empty.
func (r Range) Span() (lo, hi uint32) {
	lo, hi = r.First.Serial, r.At(r.Count-1).Serial
	return min(lo, hi), max(lo, hi)
}

// Common returns the positions in r of the processes that are also in q: first,
// first+step, ..., count of them; step > 0.
func (r Range) Common(q Range) (first, count, step int) {
	if r.Count == 0 || q.Count == 0 || r.First.Job != q.First.Job {
		return 0, 0, 1
	}
	l, h := q.Span()
	lo, hi, a := int(l), int(h), int(r.First.Serial)
	s, t := r.step(), abs(q.step())
	// Position i of r is in q if a + i*s = lo (mod t), between lo and hi.
	g := gcd(abs(s), t)
	if (lo-a)%g != 0 {
		return 0, 0, 1
	}
	step = t / g
	from, to := ceilDiv(lo-a, s), floorDiv(hi-a, s)
	if s < 0 {
		from, to = ceilDiv(hi-a, s), floorDiv(lo-a, s)
	}
	from, to = max(from, 0), min(to, r.Count-1)
	// Both factors are below 1<<32.
	i := int(uint64(mod((lo-a)/g, step)) * uint64(inverse(mod(s/g, step), step)) % uint64(step))
	first = from + mod(i-from, step)
	if first > to {
		return 0, 0, 1
	}
	return first, (to-first)/step + 1, step
}

func (r Range) step() int {
	if r.Stride == 0 {
		return 1
	}
	return r.Stride
}

// valid reports whether all serials of r exist. r must not be empty.
func (r Range) valid() bool {
	const serials = 1 << 32
	s := r.step()
	if r.Count > serials || abs(s) >= serials {
		return false
	}
	last := int(r.First.Serial) + (r.Count-1)*s
	return (r.Count-1)*abs(s) < serials && last >= 0 && last < serials
}

func abs(a int) int { return max(a, -a) }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mod returns a modulo m > 0; the result is not negative.
func mod(a, m int) int { return (a%m + m) % m }

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func ceilDiv(a, b int) int { return -floorDiv(-a, b) }

// inverse returns x with a*x = 1 (mod m). a and m must have no common divisor.
func inverse(a, m int) int {
	x, y := 0, 1
	for r := m; a != 0; {
		q := r / a
		r, a = a, r-q*a
		x, y = y, x-q*y
	}
	return mod(x, m)
}
