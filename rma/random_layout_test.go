// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gompi/mpi"
)

// layout is where the elements of one side of an access lie: displs are those
// of their first bytes, in the order of the typemap, found without the library.
type layout struct {
	name   string
	displs []int
	count  int
	make   func(old mpi.Datatype) (mpi.Datatype, error)
}

func (l *layout) String() string { return l.name }

// reach is what the elements of size bytes occupy.
func (l *layout) reach(size int) (lo, hi int) {
	return slices.Min(l.displs), slices.Max(l.displs) + size
}

func contiguous(n, size int) layout {
	l := layout{name: fmt.Sprintf("%d side by side", n), count: n, make: func(old mpi.Datatype) (mpi.Datatype, error) { return old, nil }}
	for i := range n {
		l.displs = append(l.displs, i*size)
	}
	return l
}

// divisor is a random divisor of n.
func divisor(r *rand.Rand, n int) int {
	for {
		if d := 1 + r.IntN(n); n%d == 0 {
			return d
		}
	}
}

// layoutOf makes a random layout of n elements of size bytes each, which
// occupies room bytes at most: n elements have room three times.
func layoutOf(r *rand.Rand, n, size, room int) layout {
	for range 4 {
		l := anyLayout(r, n, size)
		if lo, hi := l.reach(size); hi-lo <= room {
			return l
		}
	}
	return contiguous(n, size)
}

func anyLayout(r *rand.Rand, n, size int) layout {
	switch r.IntN(5) {
	case 0:
		return contiguous(n, size)
	case 1:
		return vector(r, n, size)
	case 2:
		return indexed(r, n, size)
	case 3:
		return resized(r, n, size)
	}
	return vectorOfResized(r, n, size)
}

// vector is blocks at a stride, which may be negative, in some elements that
// follow each other.
func vector(r *rand.Rand, n, size int) layout {
	count := divisor(r, n)
	per := n / count
	block := divisor(r, per)
	blocks := per / block
	stride := block + r.IntN(3)
	extent := ((blocks-1)*stride + block) * size
	if r.IntN(3) == 0 {
		stride = -stride
	}
	l := layout{
		name:  fmt.Sprintf("%d vectors(%d, %d, %d)", count, blocks, block, stride),
		count: count,
		make:  func(old mpi.Datatype) (mpi.Datatype, error) { return mpi.TypeVector(blocks, block, stride, old) },
	}
	for c := range count {
		for b := range blocks {
			for k := range block {
				l.displs = append(l.displs, c*extent+(b*stride+k)*size)
			}
		}
	}
	return l
}

// indexed is blocks in any order, also at negative displacements.
func indexed(r *rand.Rand, n, size int) layout {
	var lengths, displs []int
	at := -r.IntN(2) * n
	for left := n; left > 0; {
		k := 1 + r.IntN(min(left, 5))
		at += r.IntN(3)
		lengths, displs = append(lengths, k), append(displs, at)
		at, left = at+k, left-k
	}
	r.Shuffle(len(displs), func(i, j int) {
		lengths[i], lengths[j] = lengths[j], lengths[i]
		displs[i], displs[j] = displs[j], displs[i]
	})
	l := layout{
		name:  fmt.Sprintf("indexed(%v, %v)", lengths, displs),
		count: 1,
		make:  func(old mpi.Datatype) (mpi.Datatype, error) { return mpi.TypeIndexed(lengths, displs, old) },
	}
	for i, d := range displs {
		for k := range lengths[i] {
			l.displs = append(l.displs, (d+k)*size)
		}
	}
	return l
}

// resized is blocks at an extent of their own, which may be negative.
func resized(r *rand.Rand, n, size int) layout {
	block := divisor(r, n)
	extent := (block + r.IntN(3)) * size
	if r.IntN(4) == 0 {
		extent = -extent
	}
	l := layout{
		name:  fmt.Sprintf("%d resized(contiguous(%d), %d bytes)", n/block, block, extent),
		count: n / block,
		make: func(old mpi.Datatype) (mpi.Datatype, error) {
			dt, err := mpi.TypeContiguous(block, old)
			if err != nil {
				return dt, err
			}
			return mpi.TypeResized(dt, 0, extent)
		},
	}
	for c := range n / block {
		for k := range block {
			l.displs = append(l.displs, c*extent+k*size)
		}
	}
	return l
}

// vectorOfResized is columns: a vector of elements with gaps between them.
func vectorOfResized(r *rand.Rand, n, size int) layout {
	block := divisor(r, n)
	stride, gap := block+r.IntN(2), 1+r.IntN(2)
	l := layout{
		name:  fmt.Sprintf("vector(%d, %d, %d) of resized(%d elements)", n/block, block, stride, gap),
		count: 1,
		make: func(old mpi.Datatype) (mpi.Datatype, error) {
			dt, err := mpi.TypeResized(old, 0, gap*size)
			if err != nil {
				return dt, err
			}
			return mpi.TypeVector(n/block, block, stride, dt)
		},
	}
	for b := range n / block {
		for k := range block {
			l.displs = append(l.displs, (b*stride+k)*gap*size)
		}
	}
	return l
}
