// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

func TestAttributes(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		var log []string
		broken := errors.New("will not go")
		counted := mpi.NewKeyval(
			func(_ *mpi.Comm, v int) (int, bool, error) { return v + 1, v < 12, nil },
			func(c *mpi.Comm, v int) error { log = append(log, fmt.Sprintf("%s %d", c.Name(), v)); return nil })
		named := mpi.NewKeyval(mpi.CopyAttr[string], nil)
		private := mpi.NewKeyval[[]byte](nil, nil)
		stubborn := mpi.NewKeyval(
			func(_ *mpi.Comm, v bool) (bool, bool, error) { return v, true, broken },
			func(*mpi.Comm, bool) error { return broken })

		c, err := w.Dup()
		must(t, err)
		c.SetName("c")
		if _, ok := mpi.GetAttr(c, counted); ok {
			t.Error("a value that nobody set")
		}
		must(t, mpi.SetAttr(c, counted, 10))
		must(t, mpi.SetAttr(c, named, "x"))
		must(t, mpi.SetAttr(c, private, []byte("y")))
		must(t, mpi.SetAttr(c, counted, 11))
		var ds []*mpi.Comm
		for want := 12; want < 15; want++ {
			d, err := c.Dup()
			must(t, err)
			d.SetName(fmt.Sprint("d", want))
			ds = append(ds, d)
			c = d
			v, ok := mpi.GetAttr(d, counted)
			if ok != (want == 12) || ok && v != want {
				t.Errorf("dup %d has %d, %t", want, v, ok)
			}
			if s, ok := mpi.GetAttr(d, named); s != "x" || !ok {
				t.Errorf("dup %d has %q, %t", want, s, ok)
			}
			if _, ok := mpi.GetAttr(d, private); ok {
				t.Error("an attribute without copy callback is copied")
			}
		}
		must(t, mpi.DeleteAttr(ds[2], named))
		if _, ok := mpi.GetAttr(ds[2], named); ok {
			t.Error("a deleted value")
		}
		must(t, mpi.DeleteAttr(ds[2], named))
		must(t, ds[0].Free())
		if want := []string{"c 10", "d12 12"}; !slices.Equal(log, want) {
			t.Errorf("deleted were %v, want %v", log, want)
		}

		must(t, mpi.SetAttr(ds[1], stubborn, true))
		err = mpi.DeleteAttr(ds[1], stubborn)
		wantError(t, err, mpi.ErrArg, "will not go")
		if !errors.Is(err, broken) {
			t.Errorf("%v does not wrap the callback's error", err)
		}
		wantError(t, mpi.SetAttr(ds[1], stubborn, false), mpi.ErrArg)
		if v, _ := mpi.GetAttr(ds[1], stubborn); !v {
			t.Error("the value was replaced although its deletion failed")
		}
		_, err = ds[1].Dup()
		wantError(t, err, mpi.ErrArg, "copy callback")
		_, r := ds[1].Idup()
		_, err = r.Wait()
		wantError(t, err, mpi.ErrArg, "copy callback")
		checkComm(t, ds[1], procs(w))
		wantError(t, ds[1].Free(), mpi.ErrArg)
		wantError(t, ds[1].Barrier(), mpi.ErrComm)

		wantError(t, mpi.SetAttr(ds[2], mpi.Keyval[int]{}, 1), mpi.ErrKeyval)
		if _, ok := mpi.GetAttr(ds[2], mpi.Keyval[int]{}); ok {
			t.Error("a value under the zero key")
		}
		must(t, w.Barrier())
	})
}

// A nil of an interface type is a value like any other.
func TestNilAttribute(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		deleted := 0
		k := mpi.NewKeyval(mpi.CopyAttr[error], func(_ *mpi.Comm, v error) error {
			deleted++
			return v
		})
		must(t, mpi.SetAttr(w, k, nil))
		d, err := w.Dup()
		must(t, err)
		for _, c := range []*mpi.Comm{w, d} {
			if v, ok := mpi.GetAttr(c, k); v != nil || !ok {
				t.Errorf("%s has %v, %t", c.Name(), v, ok)
			}
			must(t, mpi.DeleteAttr(c, k))
		}
		if deleted != 2 {
			t.Errorf("%d of 2 values deleted", deleted)
		}
	})
}

// Copies for a communicator that is not made after all are deleted.
func TestCopiesGivenBack(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Dup()
		must(t, err)
		var log []string
		counted := func(name string) mpi.Keyval[string] {
			return mpi.NewKeyval(
				func(_ *mpi.Comm, v string) (string, bool, error) {
					log = append(log, "copy "+name)
					return v, true, nil
				},
				func(_ *mpi.Comm, v string) error { log = append(log, "delete "+name); return nil })
		}
		must(t, mpi.SetAttr(c, counted("a"), ""))
		must(t, mpi.SetAttr(c, counted("b"), ""))
		broken := mpi.NewKeyval(func(_ *mpi.Comm, v int) (int, bool, error) { return 0, false, errors.New("no copy") }, nil)
		must(t, mpi.SetAttr(c, broken, 0))
		want := []string{"copy a", "copy b", "delete b", "delete a"}
		check := func(err error, class mpi.Class) {
			t.Helper()
			wantError(t, err, class)
			if !slices.Equal(log, want) {
				t.Errorf("%v; callbacks: %v, want %v", err, log, want)
			}
			log = nil
		}
		_, err = c.Dup()
		check(err, mpi.ErrArg)
		_, r := c.Idup()
		_, err = r.Wait()
		check(err, mpi.ErrArg)
		must(t, mpi.DeleteAttr(c, broken))
		must(t, w.Barrier())
		c.Revoke()
		_, err = c.Dup()
		check(err, mpi.ErrRevoked)
		_, r = c.Idup()
		_, err = r.Wait()
		check(err, mpi.ErrRevoked)
	})
}

// A value is deleted once, also if its callback frees the communicator.
func TestFreeInDelete(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Dup()
		must(t, err)
		var deleted []int
		for i := range 3 {
			must(t, mpi.SetAttr(c, mpi.NewKeyval(nil, func(c *mpi.Comm, v int) error {
				deleted = append(deleted, v)
				wantError(t, c.Free(), mpi.ErrComm, "it was freed")
				return nil
			}), i))
		}
		must(t, c.Free())
		if want := []int{2, 1, 0}; !slices.Equal(deleted, want) {
			t.Errorf("deleted were %v, want %v", deleted, want)
		}
	})
}

// The attributes of SELF are deleted first of all in Finalize, the last one
// set before the others.
func TestAttributesOfSelf(t *testing.T) {
	j := testjob.New(t)
	p, err := j.Boot(j.Add(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for i := range 3 {
		k := mpi.NewKeyval(nil, func(c *mpi.Comm, v int) error {
			order = append(order, v)
			return c.Barrier() // the library still works
		})
		if err := mpi.SetAttr(p.Self(), k, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Leave(p); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("deleted in the order %v, want %v", order, want)
	}
}

func TestInfo(t *testing.T) {
	var none *mpi.Info
	if none.Len() != 0 || none.Get("x") != "" || none.Dup().Len() != 0 || none.Delete("x") {
		t.Error("a nil Info is not empty")
	}
	i := mpi.NewInfo("b", "1", "a", "2")
	i.Set("c", "")
	i.Set("b", "3")
	d := i.Dup()
	if !i.Delete("a") || i.Delete("a") {
		t.Error("Delete")
	}
	var got []string
	for k, v := range d.All() {
		got = append(got, k+"="+v)
	}
	if want := []string{"b=3", "a=2", "c="}; !slices.Equal(got, want) || i.Len() != 2 {
		t.Errorf("copy is %v, want %v; %d keys left", got, want, i.Len())
	}
	if _, ok := i.Lookup("c"); !ok {
		t.Error("an empty value is a value")
	}
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.DupWithInfo(i)
		must(t, err)
		c.Info().Set("b", "changed")
		if c.Info().Get("b") != "3" || w.Info().Len() != 0 {
			t.Error("hints are not a copy")
		}
		e, err := c.Dup()
		must(t, err)
		if e.Info().Len() != 0 {
			t.Error("Dup copies hints")
		}
		c.SetInfo(nil)
		if c.Info().Len() != 0 {
			t.Error("hints are still there")
		}
	})
}

func TestErrorHandler(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		var seen []error
		c, err := w.Dup()
		must(t, err)
		c.SetErrorHandler(func(c *mpi.Comm, err error) {
			seen = append(seen, err)
			must(t, c.Barrier()) // it may call the library
		})
		last := func(err error, class mpi.Class) {
			t.Helper()
			wantError(t, err, class)
			if len(seen) != 1 || seen[0] != err {
				t.Fatalf("the handler saw %v, the caller %v", seen, err)
			}
			seen = nil
		}
		last(mpi.Send(c, []int{1}, 7, 0), mpi.ErrRank)
		_, err = mpi.Irecv(c, []int{1}, 0, -9).Wait()
		last(err, mpi.ErrTag)
		in := make([]int64, 1)
		r := mpi.Irecv(c, in, 1-c.Rank(), 1)
		must(t, mpi.Send(c, make([]int64, 2), 1-c.Rank(), 1))
		_, err = r.Wait()
		last(err, mpi.ErrTruncate)
		_, err = c.Split(-4, 0)
		last(err, mpi.ErrArg)
		own := errors.New("mine")
		c.CallErrorHandler(own)
		if len(seen) != 1 || seen[0] != own {
			t.Fatalf("the handler saw %v", seen)
		}
		seen = nil
		d, err := c.Split(0, 0)
		must(t, err)
		last(mpi.Send(d, []int{1}, 7, 0), mpi.ErrRank)
		d.SetErrorHandler(nil)
		wantError(t, mpi.Send(d, []int{1}, 7, 0), mpi.ErrRank)
		if len(seen) != 0 || d.ErrorHandler() != nil || c.ErrorHandler() == nil {
			t.Fatalf("the handler saw %v", seen)
		}
	})
	// An error under the checks is shown when they hold no lock.
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 1)
		r := mpi.Irecv(w, buf, 0, 0)
		calls := 0
		w.SetErrorHandler(func(c *mpi.Comm, err error) {
			calls++
			must(t, mpi.Send(c, []int64{1}, 0, 0))
		})
		_, err := mpi.Recv(w, buf, 0, 0)
		wantError(t, err, mpi.ErrInUse)
		_, err = r.Wait()
		must(t, err)
		if calls != 1 {
			t.Errorf("the handler was called %d times", calls)
		}
	}, checking)
}

// An error handler may use what the failed call used.
func TestErrorHandlerCallsBack(t *testing.T) {
	for _, opts := range [][]mpitest.Option{nil, {checking}} {
		mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
			var call func()
			calls := 0
			w.SetErrorHandler(func(*mpi.Comm, error) {
				if calls++; calls == 1 { // not for errors of its own
					call()
				}
			})
			fails := func(op string, class mpi.Class, f func() error, handler func()) {
				t.Helper()
				calls, call = 0, handler
				wantError(t, f(), class, op)
				if calls == 0 {
					t.Errorf("%s: the handler was not called", op)
				}
			}
			must(t, w.SendBuffer().Attach(100))
			send := mpi.BsendInit(w, make([]byte, 1000), 0, 0)
			space := func() {
				must(t, w.SendBuffer().Flush())
				_, err := w.SendBuffer().Detach()
				must(t, err)
				must(t, w.SendBuffer().Attach(200))
			}
			fails("Bsend", mpi.ErrBuffer, func() error { return mpi.Bsend(w, make([]byte, 1000), 0, 0) }, space)
			fails("BsendInit", mpi.ErrBuffer, send.Start, func() { space(); send.Active() })

			recv := mpi.RecvInit(w, make([]byte, 1), 0, 1)
			must(t, recv.Start())
			fails("Start", mpi.ErrRequest, recv.Start, func() { must(t, recv.Cancel()) })
			_, err := recv.Wait()
			must(t, err)
			again := func() { recv.Start(); recv.Active(); recv.Free() }
			fails("Cancel", mpi.ErrRequest, recv.Cancel, again)
			fails("Free", mpi.ErrRequest, recv.Free, again)
			fails("Wait", mpi.ErrRequest, func() error { _, err := recv.Wait(); return err }, again)
			fails("Pready", mpi.ErrRequest, func() error { return recv.Pready(0) }, again)
		}, opts...)
	}
}

// ErrorsAreFatal ends the job: the caller does not return, and the calls of
// others fail.
func TestErrorsAreFatal(t *testing.T) {
	j := testjob.New(t)
	var ps []*mpi.Process
	for _, sp := range j.Add(2) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	done := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { done <- returned }()
		w := ps[0].World()
		w.SetErrorHandler(mpi.ErrorsAreFatal)
		mpi.Send(w, []int{1}, 5, 0)
		returned = true
	}()
	if <-done {
		t.Error("a fatal error returned")
	}
	if err := ps[1].World().Barrier(); err == nil {
		t.Error("the other rank goes on")
	}
	<-ps[1].Context().Done()
	if why := context.Cause(ps[1].Context()); !strings.Contains(fmt.Sprint(why), "rank 5 of 2") {
		t.Errorf("the job ended because of %v", why)
	}
}

// A datatype carries values under keys, as do its other names; the type that it
// was made from does not.
func TestAttributesOfDatatypes(t *testing.T) {
	k, other := mpi.NewKeyval[string](nil, nil), mpi.NewKeyval[int](nil, nil)
	plain := mpi.TypeOf[float64]()
	dt := mpi.TypeWithAttr(mpi.TypeWithAttr(plain, k, "m"), other, 7)
	if v, ok := mpi.TypeAttr(dt.WithName("length"), k); !ok || v != "m" {
		t.Error(v, ok)
	}
	if v, ok := mpi.TypeAttr(mpi.TypeWithAttr(dt, k, "km"), k); !ok || v != "km" {
		t.Error(v, ok)
	}
	if v, ok := mpi.TypeAttr(dt, other); !ok || v != 7 || dt.Name() != "float64" || dt.Size() != 8 || dt.Err() != nil {
		t.Error(v, ok, dt.Name(), dt.Err())
	}
	if v, ok := mpi.TypeAttr(plain, k); ok {
		t.Error("the type without attributes has", v)
	}
	wantError(t, mpi.TypeWithAttr(plain, mpi.Keyval[int]{}, 1).Err(), mpi.ErrType, "NewKeyval")
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		x, sum := []float64{1}, make([]float64, 1)
		must(t, w.Bufs().Allreduce(mpi.BufAs(dt, x, 1), mpi.BufAs(dt, sum, 1), mpi.Sum))
		if sum[0] != 2 {
			t.Error(sum)
		}
	})
}
