// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

func TestResizePlan(t *testing.T) {
	for _, c := range []struct {
		o    ResizeOptions
		size int
		want []step
	}{
		{ResizeOptions{Start: 2, Deltas: []int{1, 3}, Rounds: 2}, 2, []step{{3, 1, false}, {to: 2}, {3, 1, true}, {to: 2}, {5, 3, false}, {to: 2}, {5, 3, true}}},
		{ResizeOptions{Start: 2, Deltas: []int{1, 3}, Rounds: 1, Remove: true}, 3, []step{{2, 1, true}, {to: 5}, {2, 3, true}}},
	} {
		if c.o.Size() != c.size || !reflect.DeepEqual(c.o.plan(), c.want) {
			t.Errorf("%+v: %d, %+v", c.o, c.o.Size(), c.o.plan())
		}
	}
	for _, o := range []ResizeOptions{{Deltas: []int{1}}, {Start: 1}, {Start: 1, Deltas: []int{0}}, {Start: 1, Deltas: []int{1}, Rounds: -1}} {
		if o.validate() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestResize changes the number of ranks, and looks at what rank 0 gets.
func TestResize(t *testing.T) {
	for _, o := range []ResizeOptions{
		{Start: 2, Deltas: []int{1, 2}, Rounds: 1, Nonblocking: true},
		{Start: 1, Deltas: []int{2}, Rounds: 1, Remove: true, Busy: true},
	} {
		var mu sync.Mutex
		var rs []report.Result
		mpitest.Run(t, o.Size(), func(t *mpitest.T, world *mpi.Comm) {
			o := o
			o.Began, o.work = time.Now(), time.Millisecond/2
			err := Resize(t.Context(), world, o, func(r report.Result) error {
				mu.Lock()
				defer mu.Unlock()
				rs = append(rs, r)
				return nil
			})
			if err != nil && !errors.Is(err, sessions.ErrLeaving) {
				t.Fatal(err)
			}
		})
		if len(rs) != len(o.Deltas) {
			t.Fatalf("%d results", len(rs))
		}
		for i, r := range rs {
			x := *r.Resize
			ok := r.Bench == "resize" && r.Ranks == o.Start && r.Transport == "inproc" && x.Delta == o.Deltas[i] &&
				0 < x.InitiationMsec && x.ReadyMsec+x.WaitMsec <= x.TotalMsec && 0 < x.AppOverheadMedianMsec && x.AppOverheadMedianMsec <= x.AppOverheadMsec &&
				x.SkewMsec <= x.AppOverheadMsec && 0 < x.CheckMaxUsec && 0 < x.FirstBarrierMsec && r.Usec > 0
			if o.Remove {
				ok = ok && x.Mode == "sub" && 0 < x.GoneMsec && x.GoneMsec <= x.TotalMsec && x.InitMaxMsec == 0
			} else {
				ok = ok && x.Mode == "add" && x.GoneMsec == 0 && 0 < x.InitMaxMsec
			}
			if !ok {
				t.Errorf("%+v: %+v", r, x)
			}
		}
	}
}
