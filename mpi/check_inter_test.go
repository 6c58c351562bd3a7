// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// interMismatches are calls of two ranks facing three, of which the last one
// makes another. The roots are rank 1 of the two, if not said otherwise.
func interMismatches() []mismatch {
	b := func(n int) []int64 { return make([]int64, n) }
	root := func(c *mpi.Comm) int {
		switch {
		case c.Size() == 3:
			return 1
		case c.Rank() == 1:
			return mpi.Root
		}
		return mpi.ProcNull
	}
	far := func(c *mpi.Comm) int { return c.RemoteSize() }
	return []mismatch{
		{"Barrier", func(c *mpi.Comm, odd bool) error {
			if odd {
				return mpi.Bcast(c, b(1), 0)
			}
			return c.Barrier()
		}, []string{`"Barrier"`, `"Bcast of 1 int64 from root 0"`}, false},
		{"Bcast", func(c *mpi.Comm, odd bool) error { return mpi.Bcast(c, b(pick(odd, 2, 1)), root(c)) },
			[]string{`"Bcast of 2 int64 from root 1"`, `"Bcast of 1 int64 as root"`}, false},
		{"Bcast from two", func(c *mpi.Comm, odd bool) error { return mpi.Bcast(c, b(1), pick(odd, 0, root(c))) },
			[]string{`"Bcast of 1 int64 from root 0"`, `"Bcast of 1 int64 as root"`}, false},
		{"Bcast in both directions", func(c *mpi.Comm, odd bool) error { return mpi.Bcast(c, b(1), pick(odd, mpi.Root, root(c))) },
			[]string{`"Bcast of 1 int64 as root"`}, false},
		{"Bcast without a rank", func(c *mpi.Comm, odd bool) error { return mpi.Bcast(c, b(1), pick(odd, mpi.ProcNull, root(c))) },
			[]string{`"Bcast with ProcNull"`, `"Bcast of 1 int64 as root"`}, false},
		{"Bcast without a root", func(c *mpi.Comm, odd bool) error {
			return mpi.Bcast(c, b(1), pick(c.Size() == 2, mpi.ProcNull, 1))
		}, []string{`"Bcast with ProcNull"`, `"Bcast of 1 int64 from root 1"`}, false},
		{"Reduce", func(c *mpi.Comm, odd bool) error {
			return mpi.Reduce(c, b(1), b(1), pick(odd, mpi.Max, mpi.Sum), root(c))
		},
			[]string{"to root 1 with Max", "as root with Sum"}, false},
		{"Gather", func(c *mpi.Comm, odd bool) error { return mpi.Gather(c, b(pick(odd, 2, 1)), b(far(c)), root(c)) },
			[]string{`"Gather of 2 int64 to root 1"`, `"Gather of 1 int64 as root"`}, false},
		{"Scatterv", func(c *mpi.Comm, odd bool) error {
			return mpi.Scatterv(c, b(far(c)), []int{1, 1, 1}, nil, b(pick(odd, 2, 1)), root(c))
		}, []string{"8 bytes in 1 blocks", "16 bytes in 1 blocks"}, true},
		{"Allreduce", func(c *mpi.Comm, odd bool) error {
			n := pick(odd, 2, 1)
			return mpi.Allreduce(c, b(n), b(n), mpi.Sum)
		}, []string{"Allreduce of 2 int64", "Allreduce of 1 int64"}, false},
		{"Allgather", func(c *mpi.Comm, odd bool) error { return mpi.Allgather(c, b(pick(odd, 2, 1)), b(far(c))) },
			[]string{"16 bytes in 1 blocks", "8 bytes in 1 blocks"}, true},
		{"Allgatherv", func(c *mpi.Comm, odd bool) error {
			return mpi.Allgatherv(c, b(1), b(4), pick(odd, []int{1, 2}, pick(c.Size() == 3, []int{1, 1}, []int{1, 1, 1})), nil)
		}, []string{"Allgatherv of [1 2] int64", "Allgatherv of [1 1] int64"}, false},
		{"Alltoall", func(c *mpi.Comm, odd bool) error {
			n := far(c)
			return mpi.Alltoall(c, b(n), b(pick(odd, 2, 1)*n))
		}, []string{"sends 8 bytes in 1 blocks", "expects 16 bytes in 1 blocks"}, true},
		{"ReduceScatter", func(c *mpi.Comm, odd bool) error {
			counts := pick(c.Size() == 2, []int{3, 3}, pick(odd, []int{2, 2, 2}, []int{1, 2, 3}))
			return mpi.ReduceScatter(c, b(6), b(counts[c.Rank()]), counts, mpi.Sum)
		}, []string{"of [2 2 2] int64", "of [1 2 3] int64"}, false},
		{"ReduceScatterBlock", func(c *mpi.Comm, odd bool) error {
			n := pick(c.Size() == 2, 3, 1) // 6 facing 3
			return mpi.ReduceScatterBlock(c, b(n*c.Size()), b(n), mpi.Sum)
		}, []string{"ReduceScatterBlock of 3 int64", "ReduceScatterBlock of 1 int64"}, false},
	}
}

// TestCheckInter: calls of an intercommunicator that do not go together are
// reported by name, group and rank, and the calls after them work.
func TestCheckInter(t *testing.T) {
	overAll(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		c, _, _ := pair(t, w, 2)
		odd := w.Rank() == 4
		for _, m := range interMismatches() {
			err := m.call(c, odd)
			if m.pair && !odd && !errorsName(err, m.words) {
				if err != nil { // nil where it exchanges nothing with the others
					wantError(t, err, mpi.ErrAborted)
				}
			} else {
				wantError(t, err, mpi.ErrMismatch, m.words...)
			}
			if n, err := mpi.AllreduceOne(c, 1, mpi.Sum); err != nil || n != c.RemoteSize() {
				t.Fatalf("after %s: %d, %v", m.name, n, err)
			}
		}

		err := mpi.Bcast(c, make([]byte, 3), pick(odd, 0, pick(c.Size() == 3, 0, pick(c.Rank() == 0, mpi.Root, mpi.ProcNull))))
		must(t, err)
		must(t, mpi.Bcast(c, make([]byte, 3), mpi.ProcNull)) // by all: nothing to do
		_, err = mpi.Ibcast(c, make([]byte, 3+c.Rank()), pick(c.Size() == 2, pick(c.Rank() == 0, mpi.Root, mpi.ProcNull), 0)).Wait()
		wantError(t, err, mpi.ErrMismatch, "rank 1 of the "+pick(c.Size() == 2, "remote", "local")+" group calls \"Bcast of 4 uint8")
	}, checking)
}

// errorsName reports whether an error is a mismatch in these words.
func errorsName(err error, words []string) bool {
	if err == nil {
		return false
	}
	for _, s := range words {
		if !strings.Contains(err.Error(), s) {
			return false
		}
	}
	return errors.Is(err, mpi.ErrMismatch)
}

// A call that is abandoned revokes an intercommunicator, also if it was still
// comparing.
func TestCheckInterAbandoned(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		c, _, _ := pair(t, w, 1)
		if w.Rank() == 0 {
			ctx, cancel := context.WithCancel(context.Background())
			r := c.WithContext(ctx).Ibarrier()
			go cancel()
			_, err := r.Wait()
			wantError(t, err, mpi.ErrCancelled)
		} else {
			_, err := mpi.Recv(c, []int{0}, 0, 0)
			wantError(t, err, mpi.ErrRevoked)
		}
	}, checking)
}

// Calls that agree go on as without checks.
func TestCheckInterAgrees(t *testing.T) {
	for _, sizes := range [][2]int{{1, 1}, {1, 3}, {3, 2}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			overAll(t, sizes[0]+sizes[1], func(t *mpitest.T, w *mpi.Comm) { checkCollectivesInter(t, w, sizes) }, checking)
		})
	}
}
