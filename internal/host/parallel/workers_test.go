// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// TestEach: every number is worked at once, whoever does it.
func TestEach(t *testing.T) {
	for _, c := range []Workers{{}, {Threads: 1}, {Threads: 2}, {Threads: 5}, {Threads: 3, Migrate: true}} {
		for _, n := range []int{0, 1, 2, 3, 100} {
			calls := make([]atomic.Int32, n)
			if err := c.Each(n, func(i int) error { calls[i].Add(1); return nil }); err != nil {
				t.Fatal(err)
			}
			for i := range calls {
				if k := calls[i].Load(); k != 1 {
					t.Errorf("%+v, %d of %d: %d calls", c, i, n, k)
				}
			}
		}
	}
}

// TestEachFails: after an error nothing begins, and nothing is under way.
func TestEachFails(t *testing.T) {
	for _, c := range []Workers{{}, {Threads: 4}} {
		var calls, open atomic.Int32
		err := c.Each(1000, func(i int) error {
			open.Add(1)
			defer open.Add(-1)
			calls.Add(1)
			if i >= 3 {
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "number 3" && c.Threads < 2 {
			t.Errorf("%+v: %v", c, err)
		}
		if open.Load() != 0 || calls.Load() > 3+int32(max(1, c.Threads)) {
			t.Errorf("%+v: %d calls, %d are not over", c, calls.Load(), open.Load())
		}
	}
}

// TestEachMeets: hands work at the same time.
func TestEachMeets(t *testing.T) {
	met := make(chan struct{})
	err := Workers{Threads: 2}.Each(2, func(i int) error {
		if i == 0 {
			close(met)
		}
		<-met
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := (Workers{Threads: 2}).Each(2, func(int) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
