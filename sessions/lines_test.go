// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestLines: members see how far those on their host are, by the ranks of the set that
// they watch, also of the next one.
func TestLines(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
			ctx, comm, i := t.Context(), world, 0
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			look := func(bytes int64) {
				t.Helper()
				if err := comm.Barrier(); err != nil {
					t.Fatal(err)
				}
				seen, self := 0, false
				for rank, l := range w.Lines {
					if l.Iteration != i || l.Bytes != bytes*int64(rank) || l.Time < 0 {
						t.Errorf("rank %d of %d: %+v, want iteration %d", rank, comm.Size(), l, i)
					}
					seen++
					self = self || rank == comm.Rank()
				}
				if want := comm.Size(); !self || transport != onHosts && seen != want || transport == onHosts && (seen > 2 || seen == 0) {
					t.Errorf("%d lines, of this rank %v", seen, self)
				}
				if err := comm.Barrier(); err != nil {
					t.Fatal(err)
				}
			}
			check := func() *sessions.Change {
				t.Helper()
				c, err := w.Check(i)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			check()
			w.AddBytes(5 * comm.Rank())
			look(5)
			if i++; world.Rank() == 0 {
				if _, err := t.Shrink(0); err != nil {
					t.Fatal(err)
				}
			}
			for ; ; i++ {
				c := check()
				if c == nil {
					continue
				}
				if comm, err = c.Commit(ctx); errors.Is(err, sessions.ErrLeaving) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				break
			}
			i++
			check()
			look(0)
			began := time.Now()
			for i++; time.Since(began) < 30*time.Millisecond; i++ {
				check()
			}
			for rank, l := range w.Lines {
				if rank == comm.Rank() && l.Time == 0 {
					t.Errorf("%+v after %d iterations", l, i)
				}
			}
			if err := comm.Barrier(); err != nil { // times are what they are from here on
				t.Fatal(err)
			}
			var f sessions.COLFit
			longest := 0.0
			for _, l := range w.Lines {
				longest = max(longest, l.Time.Seconds())
			}
			f.Add(1, 2*longest)
			w.AddTime(&f)
			m, err := f.Model()
			if got, ok := m.Seconds(comm.Size()); err != nil || !ok || math.Abs(got-longest) > 1e-9*longest {
				t.Errorf("a fit of %v s by 1, %v by %d: %+v, %v", 2*longest, longest, comm.Size(), m, err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			for range w.Lines {
				t.Error("a line of a watch that was closed")
			}
		}, over(transport)...)
	})
}
