// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// mismatch is a collective that one rank of three calls in another way.
type mismatch struct {
	name  string
	call  func(w *mpi.Comm, odd bool) error
	words []string
	pair  bool // it shows between the odd rank and another only
}

// pick is what the odd rank does, or the others.
func pick[T any](odd bool, other, all T) T {
	if odd {
		return other
	}
	return all
}

// mismatches has one for each collective; three ranks, of which 2 is odd.
func mismatches() []mismatch {
	b := func(n int) []int64 { return make([]int64, n) }
	return []mismatch{
		{"Gather", func(w *mpi.Comm, odd bool) error {
			n := pick(odd, 2, 1)
			return mpi.Gather(w, b(n), b(3*n), pick(odd, 1, 0))
		}, []string{"Gather of 2 int64 to root 1", "Gather of 1 int64 to root 0"}, false},
		{"Scatter", func(w *mpi.Comm, odd bool) error { n := pick(odd, 2, 1); return mpi.Scatter(w, b(3*n), b(n), 0) },
			[]string{"Scatter of 2 int64 from root 0", "Scatter of 1 int64 from root 0"}, false},
		{"Allgather", func(w *mpi.Comm, odd bool) error { n := pick(odd, 2, 1); return mpi.Allgather(w, b(n), b(3*n)) },
			[]string{"Allgather of 2 int64", "Allgather of 1 int64"}, false},
		{"Allgatherv", func(w *mpi.Comm, odd bool) error {
			counts := pick(odd, []int{1, 2, 4}, []int{1, 2, 3})
			return mpi.Allgatherv(w, b(counts[w.Rank()]), b(7), counts, nil)
		}, []string{"Allgatherv of [1 2 4] int64", "Allgatherv of [1 2 3] int64"}, false},
		{"Alltoall", func(w *mpi.Comm, odd bool) error { n := pick(odd, 6, 3); return mpi.Alltoall(w, b(n), b(n)) },
			[]string{"Alltoall of 2 int64", "Alltoall of 1 int64"}, false},
		{"Reduce", func(w *mpi.Comm, odd bool) error { return mpi.Reduce(w, b(1), b(1), pick(odd, mpi.Max, mpi.Sum), 0) },
			[]string{"to root 0 with Max", "to root 0 with Sum"}, false},
		{"ReduceScatterBlock", func(w *mpi.Comm, odd bool) error {
			n := pick(odd, 2, 1)
			return mpi.ReduceScatterBlock(w, b(3*n), b(n), mpi.Sum)
		}, []string{"ReduceScatterBlock of 2 int64", "ReduceScatterBlock of 1 int64"}, false},
		{"ReduceScatter", func(w *mpi.Comm, odd bool) error {
			counts := pick(odd, []int{2, 1, 0}, []int{1, 2, 0})
			return mpi.ReduceScatter(w, b(3), b(counts[w.Rank()]), counts, mpi.Sum)
		}, []string{"of [2 1 0] int64", "of [1 2 0] int64"}, false},
		{"Scan", func(w *mpi.Comm, odd bool) error {
			if odd {
				return mpi.Exscan(w, b(1), b(1), mpi.Sum)
			}
			return mpi.Scan(w, b(1), b(1), mpi.Sum)
		}, []string{"Exscan of 1", "\"Scan of 1"}, false},
		{"Dup", func(w *mpi.Comm, odd bool) error {
			if odd {
				_, err := mpi.BcastOne(w, uint64(0), 0)
				return err
			}
			_, err := w.Dup()
			return err
		}, []string{`rank 2 calls "Bcast of 1 uint64`, `rank 0 calls "Dup`}, false},
		{"Gatherv", func(w *mpi.Comm, odd bool) error {
			return mpi.Gatherv(w, b(pick(odd, 3, 2)), b(6), []int{2, 2, 2}, nil, 0)
		}, []string{"rank 2 sends 24 bytes in 1 blocks to rank 0, which expects 16 bytes in 1 blocks"}, true},
		{"Scatterv", func(w *mpi.Comm, odd bool) error {
			return mpi.Scatterv(w, b(6), []int{2, 2, 2}, nil, b(pick(odd, 1, 2)), 0)
		}, []string{"rank 0 sends 16 bytes in 1 blocks to rank 2, which expects 8 bytes in 1 blocks"}, true},
		{"Alltoallv", func(w *mpi.Comm, odd bool) error {
			counts := []int{1, 1, 1}
			return mpi.Alltoallv(w, b(4), pick(odd, []int{2, 1, 1}, counts), nil, b(3), counts, nil)
		}, []string{"rank 2 sends 16 bytes in 1 blocks to rank 0, which expects 8 bytes in 1 blocks"}, true},
		{"Alltoallw", func(w *mpi.Comm, odd bool) error {
			send, recv := make([]mpi.Buf, 3), make([]mpi.Buf, 3)
			if odd {
				send[0] = mpi.BufOf(b(1))
			}
			return w.Bufs().Alltoallw(send, recv)
		}, []string{"rank 2 sends 8 bytes in 1 blocks to rank 0, which expects 0 bytes in 1 blocks"}, true},
		{"NeighborAlltoall", func(w *mpi.Comm, odd bool) error {
			// Everybody sends to rank 0, which knows of two.
			w.SetNeighbors([]int32{0}, pick(w.Rank() == 0, []int32{0, 1}, nil), nil)
			return mpi.NeighborAlltoall(w, b(1), b(pick(w.Rank() == 0, 2, 0)))
		}, []string{"rank 2 sends 8 bytes in 1 blocks to rank 0, which expects 0 bytes in 0 blocks"}, true},
	}
}

// Every collective that ranks call in different ways is reported by name and
// rank: on all ranks, or where counts are between two ranks, on these, and the
// others hear that these gave up.
func TestCheckEveryCollectiveAgrees(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for _, m := range mismatches() {
			err := m.call(w, w.Rank() == 2)
			if m.pair && w.Rank() == 1 {
				if err != nil { // nil where it exchanges nothing with the others
					wantError(t, err, mpi.ErrAborted, m.name)
				}
			} else {
				wantError(t, err, mpi.ErrMismatch, m.words...)
			}
			if n, err := mpi.AllreduceOne(w, 1, mpi.Sum); err != nil || n != 3 {
				t.Fatalf("after %s: %d, %v", m.name, n, err)
			}
		}
		// What agrees goes on as without checks.
		for i, n := range []int{1, 500} {
			checkCases(t, intLab(w, n, i, i == 1).cases(), i)
		}
	}, checking)
}

// The odd rank's wrong arguments are its error; those that made the call hear
// that it gave up, also in a nonblocking and a persistent form.
func TestWrongCollectiveAbortsOthers(t *testing.T) {
	calls := map[string]func(w *mpi.Comm, root int) error{
		"blocking":    func(w *mpi.Comm, root int) error { return mpi.Bcast(w, make([]int64, 10), root) },
		"nonblocking": func(w *mpi.Comm, root int) error { _, err := mpi.Ibcast(w, make([]int64, 10), root).Wait(); return err },
		"persistent": func(w *mpi.Comm, root int) error {
			p := mpi.BcastInit(w, make([]int64, 10), root)
			defer p.Free()
			for range 2 {
				err := p.Start()
				if err == nil {
					_, err = p.Wait()
				}
				if err == nil || root == 7 {
					continue
				}
				return err
			}
			return p.Start()
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
				for wrong := range w.Size() {
					if w.Rank() == wrong {
						wantError(t, call(w, 7), mpi.ErrRoot, "root 7 of 4")
					} else if err := call(w, wrong); err != nil {
						wantError(t, err, mpi.ErrAborted)
					} else {
						t.Fatal("a call without its root succeeded")
					}
					must(t, w.Barrier())
				}
			})
		})
	}
}
