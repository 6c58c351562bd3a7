// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func ExampleProcess_GrequestStart() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		lines := 0
		r := world.Process().GrequestStart(mpi.Grequest{Query: func(st *mpi.Status) error {
			st.Count = lines
			return nil
		}})
		go func() { // what the library knows nothing of
			lines = 3
			_ = r.GrequestComplete()
		}()
		st, err := r.Wait()
		fmt.Println(st.Count)
		return err
	})
	// Output: 3
}

// outside is an operation of the test's own, and what was called of it.
type outside struct {
	mu  sync.Mutex
	log []string
	req mpi.Request
}

func (x *outside) said() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.log)
}

func (x *outside) say(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log = append(x.log, what)
}

// begin starts it: fails is what Query and Free say, with a tag that tells it from others.
func (x *outside) begin(p *mpi.Process, tag int, query, free error) mpi.Request {
	x.req = p.GrequestStart(mpi.Grequest{
		Query: func(st *mpi.Status) error {
			x.say("query")
			st.Tag, st.Source = tag, 0
			st.Cancelled = slices.Contains(x.said(), "cancel false")
			return query
		},
		Free: func() error { x.say("free"); return free },
		Cancel: func(complete bool) error {
			x.say(fmt.Sprint("cancel ", complete))
			if complete {
				return nil
			}
			return x.req.GrequestComplete()
		},
	})
	return x.req
}

func (x *outside) want(t *mpitest.T, what ...string) {
	t.Helper()
	if got := x.said(); !slices.Equal(got, what) {
		t.Fatalf("called were %q, want %q", got, what)
	}
}

// A generalized request is completed by whoever does its operation, and its callbacks are
// called by each call as the standard has it.
func TestGrequest(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		p := w.Process()
		var x outside
		r := x.begin(p, 7, nil, nil)
		if done, _, err := r.Test(); done || err != nil {
			t.Fatal("complete before it is", err)
		}
		go func() { must(t, r.GrequestComplete()) }()
		st, err := r.Wait()
		must(t, err)
		if st.Tag != 7 || st.Cancelled {
			t.Errorf("status %+v", st)
		}
		x.want(t, "query", "free")
		_, err = r.Wait()
		wantError(t, err, mpi.ErrRequest)
		wantError(t, r.GrequestComplete(), mpi.ErrRequest)

		x = outside{}
		r = x.begin(p, 8, nil, nil)
		must(t, r.GrequestComplete())
		wantError(t, r.GrequestComplete(), mpi.ErrRequest, "already")
		for range 2 {
			if done, st, err := r.GetStatus(); !done || err != nil || st.Tag != 8 {
				t.Fatal(done, st, err)
			}
		}
		must(t, r.Cancel())
		if done, st, err := r.Test(); !done || err != nil || st.Cancelled {
			t.Fatal(done, st, err)
		}
		x.want(t, "query", "query", "cancel true", "query", "free")

		x = outside{}
		r = x.begin(p, 9, nil, nil)
		must(t, r.Cancel()) // completes it
		if st, err := r.Wait(); err != nil || !st.Cancelled {
			t.Fatal(st, err)
		}
		x.want(t, "cancel false", "query", "free")

		bad, worse := errors.New("bad"), errors.New("worse")
		for _, c := range []struct{ query, free, want error }{{bad, worse, bad}, {nil, worse, worse}} {
			x = outside{}
			r = x.begin(p, 0, c.query, c.free)
			must(t, r.GrequestComplete())
			if _, err := r.Wait(); err != c.want {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			x.want(t, "query", "free")
		}

		// Freed before and after it is complete.
		x = outside{}
		r = x.begin(p, 0, nil, worse)
		must(t, r.Free())
		x.want(t)
		if err := r.GrequestComplete(); err != worse {
			t.Fatal(err)
		}
		x.want(t, "free")
		x = outside{}
		r = x.begin(p, 0, nil, worse)
		must(t, r.GrequestComplete())
		if err := r.Free(); err != worse {
			t.Fatal(err)
		}
		x.want(t, "free")

		other := mpi.Irecv(w, make([]int, 1), mpi.ProcNull, 0)
		wantError(t, other.GrequestComplete(), mpi.ErrRequest)
		_, err = other.Wait()
		must(t, err)
		wantError(t, mpi.Request{}.GrequestComplete(), mpi.ErrRequest)
		bare := p.GrequestStart(mpi.Grequest{})
		wantError(t, bare.Cancel(), mpi.ErrRequest, "cannot be cancelled")
		must(t, bare.GrequestComplete())
		if st, err := bare.Wait(); err != nil || st.Source != mpi.AnySource {
			t.Fatal(st, err)
		}
	})
}

// They are waited for and tested among messages, with each call for several requests.
func TestGrequestAmongOthers(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		p, other := w.Process(), 1-w.Rank()
		const n = 3
		for way, complete := range []func([]mpi.Request) int{
			func(rs []mpi.Request) int { must(t, mpi.Waitall(rs)); return 2 * n },
			func(rs []mpi.Request) int {
				ended := make([]mpi.Completion, len(rs))
				must(t, mpi.WaitallStatuses(rs, ended))
				for i, e := range ended[n:] {
					if e.Status.Tag != 100+i {
						t.Errorf("%+v", e)
					}
				}
				return len(ended)
			},
			func(rs []mpi.Request) int {
				for {
					if done, err := mpi.Testall(rs); done || err != nil {
						must(t, err)
						return 2 * n
					}
				}
			},
			func(rs []mpi.Request) (k int) {
				for {
					i, st, err := mpi.Waitany(rs)
					must(t, err)
					if i == mpi.Undefined {
						return k
					}
					if k++; i >= n && st.Tag != 100+i-n {
						t.Errorf("request %d: %+v", i, st)
					}
				}
			},
			func(rs []mpi.Request) (k int) {
				for k < 2*n {
					k += len(mpi.Waitsome(rs))
				}
				return k
			},
			func(rs []mpi.Request) (k int) {
				for k < 2*n {
					k += len(mpi.Testsome(rs))
				}
				return k
			},
			func(rs []mpi.Request) (k int) {
				for c := range mpi.Completed(rs) {
					must(t, c.Err)
					k++
				}
				return k
			},
		} {
			var all [n]outside
			in := make([]int, n)
			reqs := make([]mpi.Request, 2*n)
			for i := range n {
				reqs[i] = mpi.Irecv(w, in[i:i+1], other, i)
				reqs[n+i] = all[i].begin(p, 100+i, nil, nil)
			}
			sent := make(chan error, 1)
			gs := slices.Clone(reqs[n:])
			go func() {
				var err error
				for i := range n {
					err = errors.Join(err, gs[n-1-i].GrequestComplete(), mpi.Send(w, []int{i}, other, i))
				}
				sent <- err
			}()
			if k := complete(reqs); k != 2*n || !slices.Equal(in, []int{0, 1, 2}) {
				t.Fatalf("way %d: %d complete, received %v", way, k, in)
			}
			must(t, <-sent)
			for i := range n {
				all[i].want(t, "query", "free")
			}
		}
	})
}

// Who waits for one is told when the process ends.
func TestGrequestOfAKilled(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			_, err := mpi.Recv(w, make([]int, 1), 1, 0)
			wantError(t, err, mpi.ErrProcFailed)
			return
		}
		r := w.Process().GrequestStart(mpi.Grequest{})
		go t.Kill(-1)
		_, err := r.Wait()
		wantError(t, err, mpi.ErrFinalized)
	})
}

// staged is an operation of a kind of the test's own, of so many stages.
type staged struct {
	p      *mpi.Process
	stages []mpi.Request
	began  int
}

var stagedKind = &mpi.RequestKind{
	Name: "Staged",
	Start: func(ops []*mpi.Persistent) ([]mpi.Request, error) {
		rs := make([]mpi.Request, len(ops))
		for i, op := range ops {
			x := op.State().(*staged)
			if x.began = len(ops); len(x.stages) == 0 {
				return nil, errors.New("it has no stages")
			}
			rs[i], x.stages = x.stages[0], x.stages[1:]
		}
		return rs, nil
	},
	Next: func(op *mpi.Persistent) (r mpi.Request) {
		if x := op.State().(*staged); len(x.stages) > 0 {
			r, x.stages = x.stages[0], x.stages[1:]
		}
		return r
	},
	Free: func(ops []*mpi.Persistent) error {
		for _, op := range ops {
			op.State().(*staged).began = -len(ops)
		}
		return nil
	},
}

// Persistent operations of a kind of the program's own have stages, one after the other,
// and are completed and freed as others are, and among them.
func TestRequestKind(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		p := w.Process()
		begin := func() mpi.Request { return p.GrequestStart(mpi.Grequest{}) }
		end := func(r mpi.Request) mpi.Request { must(t, r.GrequestComplete()); return r }
		one, two := &staged{p: p, stages: []mpi.Request{end(begin()), end(begin())}}, &staged{p: p, stages: []mpi.Request{end(begin())}}
		ops := []*mpi.Persistent{p.NewPersistent(stagedKind, one, mpi.Request{}), p.NewPersistent(stagedKind, two, mpi.Request{})}
		if ops[0].Kind() != stagedKind || ops[0].Active() || mpi.RecvInit(w, []int{0}, 0, 0).Kind() != nil {
			t.Fatal("the kinds are wrong")
		}
		if _, err := ops[0].Wait(); err != nil { // inactive
			t.Fatal(err)
		}
		must(t, mpi.Startall(append(slices.Clone(ops), mpi.RecvInit(w, []int{0}, mpi.ProcNull, 0))))
		if one.began != 2 || two.began != 2 {
			t.Fatalf("started with %d and %d", one.began, two.began)
		}
		wantError(t, ops[1].Start(), mpi.ErrRequest, "active already")
		must(t, mpi.Waitall(ops))
		if !ops[0].Active() || ops[1].Active() {
			t.Fatal("the first has another stage, the second has none")
		}
		if i, _, err := mpi.Waitany(ops); i != 0 || err != nil || ops[0].Active() {
			t.Fatalf("operation %d, %v", i, err)
		}
		if err := ops[1].Start(); err == nil || err.Error() != "it has no stages" {
			t.Fatal(err)
		}
		wantError(t, mpi.Startall([]*mpi.Persistent{ops[0], ops[0]}), mpi.ErrRequest, "given twice")

		// Active from the start, and completed through its request.
		one.stages = []mpi.Request{begin()}
		last := one.stages[0]
		op := p.NewPersistent(stagedKind, one, begin())
		must(t, op.Request().GrequestComplete())
		for range 2 {
			if done, _, err := op.GetStatus(); !done || err != nil {
				t.Fatal(done, err)
			}
		}
		_, err := op.Request().Wait()
		must(t, err)
		if done, _, err := op.Test(); done || err != nil || !op.Active() {
			t.Fatal("the second stage is complete", err)
		}
		wantError(t, op.Cancel(), mpi.ErrRequest, "cannot be cancelled")
		must(t, mpi.FreeAll(append(ops, op)))
		if one.began != -3 {
			t.Fatalf("freed with %d", one.began)
		}
		wantError(t, end(last).GrequestComplete(), mpi.ErrRequest)
		wantError(t, op.Free(), mpi.ErrRequest, "freed")
		_, err = op.Wait()
		wantError(t, err, mpi.ErrRequest, "freed")
	})
}
