// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestLeft: whatever is begun with who has left by a change, or was pending when it
// left, ends with ErrLeft.
func TestLeft(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		mpitest.Run(t, 3, left, over(transport)...)
	})
}

func left(t *mpitest.T, world *mpi.Comm) {
	const gone = 2
	ctx, rank := t.Context(), world.Rank()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	must(err)
	var pairs []*mpi.Comm // of each other rank with who leaves
	for r := range gone {
		g, err := world.Group().Incl([]int{r, gone})
		must(err)
		if g.Rank() == mpi.Undefined {
			pairs = append(pairs, nil)
			continue
		}
		c, err := mpi.CommFromGroup(g, "pair")
		must(err)
		must(c.Barrier())
		pairs = append(pairs, c)
	}
	must(world.Barrier())
	if rank == 0 {
		_, err := t.Shrink(gone)
		must(err)
	}

	ends := map[string]func() error{}
	request := func(r mpi.Request) func() error {
		return func() error { _, err := r.Wait(); return err }
	}
	if rank != gone {
		pair := pairs[rank]
		ends["a receive that was posted"] = request(mpi.Irecv(world, []int{0}, gone, 5))
		ends["a receive of any, posted"] = request(mpi.Irecv(pair, []int{0}, mpi.AnySource, 5))
		ends["a collective that was started"] = request(mpi.Iallreduce(pair, []int{1}, []int{0}, mpi.Sum))
		ends["an Ibarrier that was started"] = request(pair.Ibarrier())
		probed := make(chan error, 1)
		go func() {
			_, err := world.Probe(gone, 6)
			probed <- err
		}()
		ends["a probe that waits"] = func() error { return <-probed }
		started := func(p *mpi.Persistent) func() error {
			must(p.Start())
			return func() error { _, err := p.Wait(); return err }
		}
		ends["a persistent receive, started"] = started(mpi.RecvInit(world, []int{0}, gone, 7))
		ends["a partitioned receive, started"] = started(mpi.PrecvInit(world, make([]int, 2), 2, gone, 8))
	}
	inits := map[string]*mpi.Persistent{
		"Send": mpi.SendInit(world, []int{0}, gone, 9), "Ssend": mpi.SsendInit(world, []int{0}, gone, 9),
		"Recv": mpi.RecvInit(world, []int{0}, gone, 9), "barrier": world.BarrierInit(),
		"partitioned receive": mpi.PrecvInit(world, make([]int, 2), 2, gone, 10), "partitioned send": mpi.PsendInit(world, make([]int, 2), 2, gone, 11),
	}

	var c *sessions.Change
	for i := 0; c == nil; i++ {
		c, err = w.Check(i)
		must(err)
	}
	comm, err := c.Commit(ctx)
	if errors.Is(err, sessions.ErrLeaving) {
		return
	}
	must(err)
	check := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, sessions.ErrLeft) {
			t.Error(fmt.Sprintf("%s: %v", name, err))
		}
	}
	for name, end := range ends {
		check(name, end())
	}
	pair, one := pairs[rank], []int{0}
	for name, f := range map[string]func() error{
		"Send":         func() error { return mpi.Send(world, one, gone, 1) },
		"Ssend":        func() error { return mpi.Ssend(world, one, gone, 1) },
		"Rsend":        func() error { return mpi.Rsend(world, one, gone, 1) },
		"Isend":        request(mpi.Isend(world, make([]int, 1<<20), gone, 1)),
		"Recv":         func() error { _, err := mpi.Recv(world, one, gone, 1); return err },
		"Recv of any":  func() error { _, err := mpi.Recv(pair, one, mpi.AnySource, mpi.AnyTag); return err },
		"Sendrecv":     func() error { _, err := mpi.Sendrecv(world, one, gone, 1, []int{0}, gone, 1); return err },
		"Probe":        func() error { _, err := world.Probe(gone, 1); return err },
		"Probe of any": func() error { _, err := pair.Probe(mpi.AnySource, 1); return err },
		"Mprobe":       func() error { _, _, err := world.Mprobe(gone, 1); return err },
		"Barrier":      func() error { return pair.Barrier() },
		"Allreduce":    func() error { return mpi.Allreduce(pair, one, []int{0}, mpi.Sum) },
		"Ibarrier":     func() error { _, err := pair.Ibarrier().Wait(); return err },
		"Dup":          func() error { _, err := pair.Dup(); return err },
		"CommFromGroup": func() error {
			g, err := pair.Group().Incl([]int{1, 0}) // who has left would tell
			if err == nil {
				_, err = mpi.CommFromGroup(g, "late")
			}
			return err
		},
	} {
		check(name, f())
	}
	if found, _, err := world.Iprobe(gone, 1); found || err != nil { // nothing is waited for
		t.Error("Iprobe", found, err)
	}
	for name, p := range inits {
		err := p.Start()
		if err == nil {
			if name == "partitioned send" {
				err = p.PreadyRange(0, 1)
			}
			if _, werr := p.Wait(); err == nil {
				err = werr
			}
		}
		check("a persistent "+name, err)
	}
	must(comm.Barrier())
	must(w.Close())
}
