// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/internal/base/fault"
)

// unlike makes different calls on the ranks of a job, in the order of the
// ranks or the other way round, each when those before wait, and wants all to
// end because they do not go together.
func unlike(t *testing.T, ns []*node, reverse bool, call func(i int) *CollArgs) (faults []*fault.Fault) {
	t.Helper()
	faults = make([]*fault.Fault, len(ns))
	done := make(chan bool, len(ns))
	for k := range ns {
		i := k
		if reverse {
			i = len(ns) - 1 - k
		}
		go func() {
			faults[i] = ns[i].Collective(ns[i].ctx, call(i))
			done <- true
		}()
		if k+1 < len(ns) {
			ns[i].asleep(t)
		}
	}
	for range ns {
		soon(t, "the call", func() bool { return <-done })
	}
	told := false
	for r, f := range faults {
		if f.Code() == fault.Mismatch {
			told = told || f.Err != nil && strings.Contains(f.Err.Error(), "collective call ")
		} else if f.Code() != fault.Aborted && f.Code() != fault.OK { // who has sent all may go
			t.Errorf("rank %d: %+v", r, f)
		}
	}
	if !told {
		t.Errorf("nobody is told which call it is: %+v, %+v", faults[0], faults[1])
	}
	return faults
}

// Ranks of which one is on the area and the other waits for messages in the call
// of the same number do not wait for each other.
func TestAreaAgainstMessages(t *testing.T) {
	for _, root := range []int{0, 1} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("root %d, reverse %v", root, reverse), func(t *testing.T) {
				ns := areaJob(t, 2, nil)
				unlike(t, ns, reverse, func(i int) *CollArgs {
					if i == 0 {
						return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
					}
					const count = 100_000 // the root waits, too
					a := ns[i].call64(collectives.OpBcast, nil, make([]uint64, count), count, root)
					a.Alg = algorithm(collectives.OpBcast, "linear")
					return a
				})
				for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
					if f != nil {
						t.Errorf("rank %d, afterwards: %+v", r, f)
					}
				}
			})
		}
	}
}

// What a rank is told says what the other one does, with true numbers.
func TestAreaMismatchTells(t *testing.T) {
	const long = 400_001
	for name, c := range map[string]struct {
		call      func(n *node, i int) *CollArgs
		words     string
		got, want int64
	}{
		"operations": {func(n *node, i int) *CollArgs {
			if i == 0 {
				return n.call64(collectives.OpBarrier, nil, nil, 0, 0)
			}
			return n.call64(collectives.OpAllreduce, make([]uint64, 1), make([]uint64, 1), 1, 0)
		}, "barrier", -1, -1},
		"lengths": {func(n *node, i int) *CollArgs {
			k := long - i
			a := n.call64(collectives.OpAllreduce, make([]uint64, k), make([]uint64, k), k, 0)
			a.Alg = algorithm(collectives.OpAllreduce, "read")
			return a
		}, "collective call", 8 * long, 8 * (long - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			ns := areaJob(t, 2, nil)
			for r, f := range unlike(t, ns, false, func(i int) *CollArgs { return c.call(ns[i], i) }) {
				if f.Code() != fault.Mismatch {
					continue
				}
				got, want := c.got, c.want
				if r == 0 {
					got, want = want, got
				}
				if f.Got != got || f.Want != want || !strings.Contains(f.Err.Error(), c.words) {
					t.Errorf("rank %d: got %d, want %d: %v", r, f.Got, f.Want, f.Err)
				}
			}
		})
	}
}

// However many calls others have given up before they are made here, each is
// given up here.
func TestManyEarlyRefusals(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	const calls = maxEarly + 100
	barrier := func(n *node) *CollArgs { return n.call64(collectives.OpBarrier, nil, nil, 0, 0) }
	for range calls {
		for _, n := range ns[:2] {
			n.Refuse(n.ctx, barrier(n))
		}
	}
	soon(t, "the last rank", func() bool {
		for k := range calls {
			if f := ns[2].Collective(ns[2].ctx, barrier(ns[2])); f.Code() != fault.Aborted {
				t.Errorf("call %d: %+v", k, f)
				break
			}
		}
		return true
	})
	for r, f := range everywhere(t, ns, func(i int) *CollArgs { return barrier(ns[i]) }) {
		if f != nil {
			t.Errorf("rank %d: %+v", r, f)
		}
	}
	ns[2].mu.Lock()
	defer ns[2].mu.Unlock()
	if n := len(ns[2].ctx.faults.early); n > 0 {
		t.Errorf("%d are kept", n)
	}
}
