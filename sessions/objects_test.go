// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// The error handler of a session sees each error once, and may call the session; that
// of a group sees errors of making communicators, as the session's does, and those of
// what was made.
func TestSessionErrorHandler(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, _ *mpi.Comm) {
		var seen []error
		s, err := sessions.Open(t.Context(), sessions.WithErrorHandler(func(s *sessions.Session, err error) {
			if _, err := s.PSets(); err != nil && len(seen) < 3 {
				t.Errorf("a call of the handler: %v", err)
			}
			seen = append(seen, err)
		}))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.NumPSets(); err != nil || n < 2 || len(seen) > 0 {
			t.Fatal(n, err, seen)
		}
		_, err1 := s.Group("app://none")
		_, err2 := s.PSet(99)
		st, err := s.Store("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		err3 := st.Put("", nil)
		if len(seen) != 3 || seen[0] != err1 || seen[1] != err2 || seen[2] != err3 || !errors.Is(err1, mpi.ErrSet) {
			t.Errorf("the handler has seen %v of %v, %v and %v", seen, err1, err2, err3)
		}

		var of *mpi.Comm
		var why error
		handler := func(c *mpi.Comm, err error) { of, why = c, err }
		g, err := s.Group("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		g = g.WithErrorHandler(handler).WithInfo(mpi.NewInfo("k", "v"))
		if _, err := mpi.CommFromGroup(g, strings.Repeat("x", mpi.MaxStringTag+1)); !errors.Is(err, mpi.ErrTag) || why != err || of != s.Process().Self() || len(seen) != 4 || seen[3] != err {
			t.Errorf("%v, seen %v on %v, and %v", err, why, of, seen)
		}
		// A group made of one of the session has its handler, with none of its own, too.
		why = nil
		one, err := g.WithErrorHandler(nil).Incl([]int{1 - s.Process().World().Rank()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mpi.CommFromGroup(one, "t"); !errors.Is(err, mpi.ErrRank) || why != nil || len(seen) != 5 || seen[4] != err {
			t.Errorf("%v, seen %v and %v", err, why, seen)
		}
		if _, err := mpi.IntercommCreateFromGroups(g, one, "t"); !errors.Is(err, mpi.ErrRank) || why != err || len(seen) != 6 || seen[5] != err {
			t.Errorf("%v, seen %v and %v", err, why, seen)
		}
		c, err := mpi.CommFromGroup(g, "t")
		if err != nil {
			t.Fatal(err)
		}
		if err := mpi.Send(c, []int{1}, 5, 0); why != err || of != c || c.Info().Get("k") != "v" {
			t.Errorf("%v, seen %v; info %v", err, why, c.Info())
		}
		if err := c.Disconnect(); err != nil {
			t.Error(err)
		}
		if s.SetErrorHandler(nil); s.ErrorHandler() != nil {
			t.Error("a handler that was taken away")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); !errors.Is(err, mpi.ErrSession) || len(seen) != 6 {
			t.Errorf("closed again: %v, seen %v", err, seen)
		}
	})
}

// The buffer of a session serves what was made from it, and Close waits until it is
// empty.
func TestSessionBuffer(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		s, err := sessions.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Comm("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Dup()
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Group("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		e, err := mpi.CommFromGroup(g, "buffered")
		if err != nil {
			t.Fatal(err)
		}
		const n = 300_000
		large := make([]byte, n)
		all := []*mpi.Comm{c, d, e}
		if w.Rank() == 0 {
			if err := mpi.Bsend(d, large, 1, 0); !errors.Is(err, mpi.ErrBuffer) {
				t.Errorf("without a buffer: %v", err)
			}
			b := s.SendBuffer()
			if err := b.Attach(3 * (n + mpi.BsendOverhead)); err != nil {
				t.Fatal(err)
			}
			if err := mpi.Bsend(w, large, 1, 0); !errors.Is(err, mpi.ErrBuffer) {
				t.Errorf("on a communicator of no session: %v", err)
			}
			for _, c := range all {
				if err := mpi.Bsend(c, large, 1, 0); err != nil {
					t.Error(err)
				}
			}
			if err := mpi.Bsend(c, large, 1, 0); !errors.Is(err, mpi.ErrBuffer) {
				t.Errorf("more than there is room for: %v", err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.WithContext(gone).Flush(); !errors.Is(err, mpi.ErrCancelled) {
				t.Errorf("a flush that gives up: %v", err)
			}
			flushed := b.Iflush()
			if err := w.Barrier(); err != nil {
				t.Fatal(err)
			}
			if _, err := flushed.Wait(); err != nil {
				t.Error(err)
			}
			for _, c := range all {
				if err := mpi.Bsend(c, large, 1, 1); err != nil {
					t.Error(err)
				}
			}
		} else {
			if err := w.Barrier(); err != nil {
				t.Fatal(err)
			}
			for tag := range 2 {
				for _, c := range all {
					if _, err := mpi.Recv(c, large, 0, tag); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Groups of two sets face each other without another communicator.
func TestIntercommOfSets(t *testing.T) {
	mpitest.Run(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		s, err := sessions.Open(t.Context(), sessions.WithInfo(mpi.NewInfo("mine", "1")))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if h := s.Hints(); h.Get("mine") != "1" || h.Get("thread_level") != "MPI_THREAD_MULTIPLE" {
			t.Errorf("hints %v", h)
		}
		parts, err := s.Split("mpi://WORLD", []int{2, 3})
		if err != nil {
			t.Fatal(err)
		}
		var groups [2]mpi.Group
		for i, name := range parts {
			if groups[i], err = s.Group(name); err != nil {
				t.Fatal(err)
			}
		}
		side := 0
		if groups[0].Rank() == mpi.Undefined {
			side = 1
		}
		c, err := mpi.IntercommCreateFromGroups(groups[side], groups[1-side], "sides")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := mpi.AllreduceOne(c, w.Rank(), mpi.Sum)
		if want := []int{2 + 3 + 4, 0 + 1}[side]; err != nil || sum != want || c.RemoteSize() != 3-side {
			t.Errorf("sum %d of %d, want %d: %v", sum, c.RemoteSize(), want, err)
		}
		if err := c.Disconnect(); err != nil {
			t.Error(err)
		}
	})
}
