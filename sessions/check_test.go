// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

func watcher(tb testing.TB) *sessions.Watcher {
	j := testjob.New(tb)
	p, err := j.Boot(j.Add(1)[0])
	if err != nil {
		tb.Fatal(err)
	}
	w, err := sessions.Watch(p.Context(), "mpi://WORLD", sessions.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
		if err := j.Leave(p); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// A Check while nothing happens allocates nothing.
func TestCheckAllocates(t *testing.T) {
	w := watcher(t)
	i := 0
	n := testing.AllocsPerRun(10_000, func() {
		if c, err := w.Check(i); c != nil || err != nil {
			t.Fatal(c, err)
		}
		i++
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	w.AddBytes(7)
	lines := 0
	n = testing.AllocsPerRun(1000, func() {
		for rank, l := range w.Lines {
			if rank != 0 || l.Iteration != i-1 || l.Bytes != 7 {
				t.Fatalf("rank %d: %+v", rank, l)
			}
			lines++
		}
	})
	if n != 0 || lines != 1001 {
		t.Errorf("%v allocations of %d lines", n, lines)
	}
	n = testing.AllocsPerRun(1000, func() {
		if c, err := w.Query(t.Context(), "mpi://WORLD", "mpi://WORLD"); c != nil || err != nil {
			t.Fatal(c, err)
		}
	})
	if n > 2 { // no context, nor message
		t.Errorf("%v allocations of a Query", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	w := watcher(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if c, err := w.Check(i); c != nil || err != nil {
			b.Fatal(c, err)
		}
		i++
	}
}

func BenchmarkQuery(b *testing.B) {
	w := watcher(b)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := w.Query(b.Context(), "mpi://WORLD", "mpi://WORLD"); c != nil || err != nil {
			b.Fatal(c, err)
		}
	}
}

// What cannot be is an error of its class.
func TestWatchRefuses(t *testing.T) {
	nothingLeft(t)
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		wrong := func(err error, class mpi.Class) {
			t.Helper()
			var e *mpi.Error
			if !errors.As(err, &e) || !errors.Is(err, class) {
				t.Errorf("%v, want %v", err, class)
			}
		}
		_, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Step: -1})
		wrong(err, mpi.ErrArg)
		_, err = sessions.Watch(ctx, "app://none", sessions.Options{})
		wrong(err, sessions.ErrSet)
		w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Step: 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = sessions.Watch(ctx, "mpi://WORLD", sessions.Options{Step: 2})
		wrong(err, mpi.ErrArg)
		_, err = w.Check(-3)
		wrong(err, mpi.ErrArg)
		if _, err := w.Check(8); err != nil {
			t.Error(err)
		}
		_, err = w.Check(6)
		wrong(err, mpi.ErrArg)
		if c, err := w.Check(8); c != nil || err != nil {
			t.Error(c, err)
		}
		wrong(w.Release(nil), mpi.ErrArg)
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_, err = w.Check(10)
		wrong(err, sessions.ErrSession)
		wrong(w.Close(), sessions.ErrSession)
		if c, err := sessions.Joined(ctx); c != nil || err != nil {
			t.Errorf("a first process has joined by %+v, %v", c, err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		for _, r := range []sessions.Request{
			{}, {Kind: sessions.Grow}, {Kind: sessions.Grow, In: []string{"gompi://main"}},
			{Kind: sessions.Shrink, In: []string{"mpi://WORLD"}, Sub: 1},
			{Kind: sessions.Shrink, In: []string{"mpi://WORLD"}, Ranks: []int{2}},
			{Kind: sessions.Shrink, In: []string{"app://none"}, Sub: 1},
		} {
			var refused *sessions.RefusedError
			if _, err := sessions.Submit(ctx, r); !errors.As(err, &refused) && !errors.Is(err, mpi.ErrRank) && !errors.Is(err, sessions.ErrSet) {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}
