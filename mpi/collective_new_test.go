// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// block is what rank from has for rank to: of a length of its own, some empty.
func block(from, to int) []int64 {
	b := make([]int64, (3*from+5*to)%7)
	fill(b, 100*from+10*to)
	return b
}

func wantBlocks(t *mpitest.T, what string, got [][]int64, n int, want func(r int) []int64) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("%s: %d blocks of %d", what, len(got), n)
	}
	for r, b := range got {
		if !slices.Equal(b, want(r)) || cap(b) != len(b) {
			t.Fatalf("%s: block %d is %v, want %v", what, r, b, want(r))
		}
	}
}

func TestNewCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			me := w.Rank()
			blocks := make([][]int64, n)
			for i := range blocks {
				blocks[i] = block(me, i)
			}
			for root := range n {
				all, err := mpi.GatherNew(w, block(me, root), root)
				must(t, err)
				if me == root {
					wantBlocks(t, "GatherNew", all, n, func(r int) []int64 { return block(r, root) })
				} else if all != nil {
					t.Fatal("GatherNew elsewhere:", all)
				}
				var send [][]int64
				if me == root {
					send = blocks
				}
				mine, err := mpi.ScatterNew(w, send, root)
				must(t, err)
				if !slices.Equal(mine, block(root, me)) {
					t.Fatal("ScatterNew:", mine)
				}
				buf, err := mpi.BcastNew(w, blocks[(root+1)%n], root)
				must(t, err)
				if !slices.Equal(buf, block(root, (root+1)%n)) {
					t.Fatal("BcastNew:", buf)
				}
			}
			all, err := mpi.AllgatherNew(w, blocks[0])
			must(t, err)
			wantBlocks(t, "AllgatherNew", all, n, func(r int) []int64 { return block(r, 0) })
			all, err = mpi.AlltoallNew(w, blocks)
			must(t, err)
			wantBlocks(t, "AlltoallNew", all, n, func(r int) []int64 { return block(r, me) })
		})
	}
}

// A rank that cannot take part tells the others, and the calls after it match.
func TestNewCollectivesRefused(t *testing.T) {
	for _, opts := range [][]mpitest.Option{nil, {mpitest.Setting("GOMPI_CHECK", "1")}} {
		mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
			for range 3 {
				send := make([][]int64, 3)
				if w.Rank() == 1 {
					send = send[:2]
				}
				refused := func(what string, err error) {
					t.Helper()
					if w.Rank() == 1 {
						wantError(t, err, mpi.ErrCount, what, "2 blocks to send, 3 expected")
					} else if !errors.Is(err, mpi.ErrAborted) && !errors.Is(err, mpi.ErrMismatch) {
						t.Fatalf("%s: %v", what, err)
					}
				}
				_, err := mpi.ScatterNew(w, send, 1)
				refused("ScatterNew", err)
				_, err = mpi.AlltoallNew(w, send)
				refused("AlltoallNew", err)
				_, err = mpi.GatherNew(w, []*int{nil}, 0)
				wantError(t, err, mpi.ErrType)
				_, err = mpi.BcastNew[int](w, nil, 5)
				wantError(t, err, mpi.ErrRoot)
				x, err := mpi.AllreduceOne(w, 1, mpi.Sum)
				if err != nil || x != 3 {
					t.Fatal(x, err)
				}
			}
		}, opts...)
	}
}

func TestNewCollectivesInter(t *testing.T) {
	mpitest.Run(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		low := w.Rank() < 2
		color, first := 0, 2
		if !low {
			color, first = 1, 0
		}
		half, err := w.Split(color, 0)
		must(t, err)
		c, err := half.IntercommCreate(0, w, first, 0)
		must(t, err)
		me, there := c.Rank(), c.RemoteSize()
		tag := func(low bool) int {
			if low {
				return 10
			}
			return 20
		}
		all, err := mpi.AllgatherNew(c, block(tag(low)+me, 0))
		must(t, err)
		wantBlocks(t, "AllgatherNew", all, there, func(r int) []int64 { return block(tag(!low)+r, 0) })
		root := 1 // of the low group
		if low {
			if root = mpi.ProcNull; me == 1 {
				root = mpi.Root
			}
		}
		all, err = mpi.GatherNew(c, block(me, 1), root)
		must(t, err)
		if root == mpi.Root {
			wantBlocks(t, "GatherNew", all, 3, func(r int) []int64 { return block(r, 1) })
		}
		buf, err := mpi.BcastNew(c, block(4, 4), root)
		must(t, err)
		if root != mpi.ProcNull && !slices.Equal(buf, block(4, 4)) {
			t.Fatal("BcastNew:", buf)
		}
		must(t, c.Free())
	})
}

func TestOnes(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		me, n := w.Rank(), w.Size()
		must(t, mpi.SendOne(w, 7*me, (me+1)%n, 1))
		x, st, err := mpi.RecvOne[int](w, mpi.AnySource, 1)
		if must(t, err); st.Count != 1 || st.Source != (me+n-1)%n || x != 7*st.Source {
			t.Fatalf("RecvOne: %d, %+v", x, st)
		}
		big := particle{ID: int32(me)}
		all, err := mpi.AllgatherOne(w, big)
		must(t, err)
		one, err := mpi.GatherOne(w, me, 1)
		must(t, err)
		if (one != nil) != (me == 1) || me == 1 && !slices.Equal(one, []int{0, 1, 2}) || len(all) != n || all[2].ID != 2 {
			t.Fatal(one, all)
		}
		must(t, mpi.Send[int64](w, nil, (me+1)%n, 2))
		_, _, err = mpi.RecvOne[int64](w, (me+n-1)%n, 2)
		wantError(t, err, mpi.ErrCount, "0 bytes, 8 expected")
		if _, st, err := mpi.RecvOne[int](w, mpi.ProcNull, 0); err != nil || st.Source != mpi.ProcNull {
			t.Fatalf("%+v, %v", st, err)
		}
		_, _, err = mpi.RecvOne[string](w, 0, 0)
		wantError(t, err, mpi.ErrType)
	})
}

func TestMessages(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			for i := range 5 {
				must(t, mpi.Send(w, block(i, 1), 1, i))
			}
			must(t, w.Barrier())
			return
		}
		next := 0
		for m, err := range mpi.Messages[int64](w, 0, mpi.AnyTag) {
			must(t, err)
			if m.Tag != next || m.Source != 0 || !slices.Equal(m.Data, block(next, 1)) {
				t.Fatalf("message %d: %+v", next, m)
			}
			if next++; next == 4 {
				break
			}
		}
		ctx, end := context.WithCancel(t.Context())
		var last error
		for m, err := range mpi.Messages[int64](w.WithContext(ctx), mpi.AnySource, mpi.AnyTag) {
			if last = err; err == nil && m.Tag == 4 {
				end()
			}
		}
		end()
		wantError(t, last, mpi.ErrCancelled)
		must(t, w.Barrier())
	})
}
