// SPDX-License-Identifier: Apache-2.0

package mpitest_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// Collective calls that differ between ranks fail: the data would be wrong, and nobody
// would know. Whoever finds it says both calls; the others' call is ended.
func TestCallsAreCompared(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		for _, c := range []struct {
			name, want string
			call       func(w *mpi.Comm) error
		}{
			{"bcast", `calls "Bcast of 8 bytes from root `, func(w *mpi.Comm) error { return mpi.Bcast(w, make([]int, 1), w.Rank()%2) }},
			{"gather", ` to root 1"`, func(w *mpi.Comm) error {
				return mpi.Gather(w, make([]int, 1), make([]int, w.Size()), min(w.Rank(), 1))
			}},
			{"reduce", ` to root 2 with`, func(w *mpi.Comm) error { return mpi.Reduce(w, []int{1}, make([]int, 1), mpi.Sum, 2*(w.Rank()%2)) }},
			{"op", ` with `, func(w *mpi.Comm) error {
				op := mpi.Sum
				if w.Rank() == 1 {
					op = mpi.Max
				}
				_, err := mpi.AllreduceOne(w, 1, op)
				return err
			}},
			{"commutes", `, not commutative"`, func(w *mpi.Comm) error {
				op := mpi.NewOp(func(in, inout []int) {
					for i := range in {
						inout[i] += in[i]
					}
				})
				if w.Rank() == 1 {
					op = op.Ordered()
				}
				_, err := mpi.AllreduceOne(w, 1, op)
				return err
			}},
			{"length", ` of 16 bytes from root 0"`, func(w *mpi.Comm) error { return mpi.Bcast(w, make([]int, 1+w.Rank()/2), 0) }},
			{"operation", `"Barrier"`, func(w *mpi.Comm) error {
				if w.Rank() == 2 {
					return w.Barrier()
				}
				return mpi.Bcast(w, make([]int, 1), 0)
			}},
			{"nonblocking", ` from root 1"`, func(w *mpi.Comm) error {
				_, err := mpi.Ibcast(w, make([]int, 1), min(w.Rank(), 1)).Wait()
				return err
			}},
		} {
			t.Run(transport+"/"+c.name, func(t *testing.T) {
				var mu sync.Mutex
				var all []error
				mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
					err := c.call(w)
					mu.Lock()
					all = append(all, err)
					mu.Unlock()
					if err != nil && !errors.Is(err, mpi.ErrMismatch) && !errors.Is(err, mpi.ErrAborted) {
						t.Error(err)
					}
				}, mpitest.Transport(transport))
				if err := errors.Join(all...); err == nil || !errors.Is(err, mpi.ErrMismatch) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("no %q in %v", c.want, err)
				}
			})
		}
	}
}

// Equal calls are, of whatever form, and many of them, and other roots one after the
// other.
func TestEqualCallsAreCompared(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
			for i := range 30 {
				root := i % 3
				counts := []int{1, 2, 3}
				n := counts[w.Rank()]
				_, err := mpi.Ibcast(w, make([]int, 2), root).Wait()
				err = errors.Join(err, mpi.Bcast(w, make([]int, i), root),
					mpi.Gatherv(w, make([]int, n), make([]int, 6), counts, nil, root),
					mpi.Allgatherv(w, make([]int, n), make([]int, 6), counts, nil), w.Barrier())
				if err != nil {
					t.Fatal(err)
				}
			}
		}, mpitest.Transport(transport))
	}
}
