// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"math/rand/v2"

	"gompi/mpi"
	"gompi/mpitest"
)

// A placement places n float64s in memory.
type placement struct {
	name   string
	dt     mpi.Datatype
	origin int
	count  int // elements of dt
	memory int // float64s
	places []int
}

// placementOf makes the k-th placement of n float64s, a multiple of 4.
func placementOf(t *mpitest.T, k, n int) placement {
	f := mpi.TypeOf[float64]()
	l := placement{count: 1, places: make([]int, n)}
	var err error
	each := func(place func(i int) int) {
		for i := range l.places {
			l.places[i] = place(i)
		}
	}
	switch k {
	case 0:
		l.name, l.dt, l.count, l.memory = "contiguous", f, n, n
		each(func(i int) int { return i })
	case 1:
		l.name, l.memory = "column", 3*n
		l.dt, err = mpi.TypeVector(n, 1, 3, f)
		each(func(i int) int { return 3 * i })
	case 2:
		l.name, l.count, l.memory = "gaps", n, 2*n
		l.dt, err = mpi.TypeResized(f, 0, 16)
		each(func(i int) int { return 2 * i })
	case 3:
		l.name, l.origin, l.memory = "downwards", 2*n, 2*n+1
		l.dt, err = mpi.TypeVector(n, 1, -2, f)
		each(func(i int) int { return 2*n - 2*i })
	case 4:
		l.name, l.memory = "plane", (n/4+2)*6
		l.dt, err = mpi.TypeSubarray([]int{n/4 + 2, 6}, []int{n / 4, 4}, []int{1, 1}, mpi.OrderC, f)
		each(func(i int) int { return (i/4+1)*6 + i%4 + 1 })
	case 5:
		l.name = "shuffled blocks"
		rnd := rand.New(rand.NewPCG(uint64(n), 3))
		var lengths, displs []int
		for left := n; left > 0; left -= lengths[len(lengths)-1] {
			lengths = append(lengths, min(left, 1+rnd.IntN(1+n/8)))
		}
		displs = make([]int, len(lengths))
		for _, b := range rnd.Perm(len(lengths)) {
			displs[b] = l.memory
			l.memory += lengths[b] + rnd.IntN(3)
		}
		i := 0
		for b, d := range displs {
			for e := range lengths[b] {
				l.places[i] = d + e
				i++
			}
		}
		l.dt, err = mpi.TypeIndexed(lengths, displs, f)
	}
	must(t, err)
	return l
}

const placements = 6

// buf is memory of a placement that holds values from first on, or nothing.
func (l *placement) buf(t *mpitest.T, first int) ([]float64, mpi.Buf) {
	m := make([]float64, l.memory)
	for i := range m {
		m[i] = -1
	}
	if first >= 0 {
		for i, p := range l.places {
			m[p] = float64(first + i)
		}
	}
	b := mpi.BufAt(l.dt, m, l.origin, l.count)
	must(t, b.Err())
	return m, b
}

// holds checks that the first n places have values from first on, and that no
// other memory has changed.
func (l *placement) holds(t *mpitest.T, m []float64, first, n int) {
	t.Helper()
	want := make([]float64, l.memory)
	for i := range want {
		want[i] = -1
	}
	for i, p := range l.places[:n] {
		want[p] = float64(first + i)
	}
	for i := range want {
		if m[i] != want[i] {
			t.Fatalf("%s of %d: memory %d holds %v, want %v", l.name, len(l.places), i, m[i], want[i])
		}
	}
}

// exchanges are the ways in which two ranks send a Buf to each other and
// receive another one.
var exchanges = []func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error){
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		r := w.Bufs().Irecv(recv, peer, 1)
		if err := w.Bufs().Send(send, peer, 1); err != nil {
			return mpi.Status{}, err
		}
		return r.Wait()
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return received(w.Bufs().Isend(send, peer, 1), func() (mpi.Status, error) { return w.Bufs().Recv(recv, peer, 1) })
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		r := w.Bufs().Irecv(recv, peer, 1)
		if err := w.Bufs().Ssend(send, peer, 1); err != nil {
			return mpi.Status{}, err
		}
		return r.Wait()
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return received(w.Bufs().Issend(send, peer, 1), func() (mpi.Status, error) {
			m, _, err := w.Mprobe(peer, 1)
			if err != nil {
				return mpi.Status{}, err
			}
			return m.MrecvBuf(recv)
		})
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return received(w.Bufs().Ibsend(send, peer, 1), func() (mpi.Status, error) {
			m, _, err := w.Mprobe(peer, 1)
			if err != nil {
				return mpi.Status{}, err
			}
			return m.ImrecvBuf(recv).Wait()
		})
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		first, second := w.Bufs().Irecv(recv, peer, 1), w.Bufs().Irecv(mpi.Buf{}, peer, 1)
		if err := w.Barrier(); err != nil {
			return mpi.Status{}, err
		}
		err := errors.Join(w.Bufs().Rsend(send, peer, 1), waited(w.Bufs().Irsend(mpi.Buf{}, peer, 1)))
		_, empty := second.Wait()
		st, err2 := first.Wait()
		return st, errors.Join(err, empty, err2)
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return w.Bufs().Sendrecv(send, peer, 1, recv, peer, 1)
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return persistently(w.Bufs().RecvInit(recv, peer, 1), w.Bufs().SendInit(send, peer, 1))
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return persistently(w.Bufs().RecvInit(recv, peer, 1), w.Bufs().SsendInit(send, peer, 1))
	},
	func(w *mpi.Comm, send, recv mpi.Buf, peer int) (mpi.Status, error) {
		return persistently(w.Bufs().RecvInit(recv, peer, 1), w.Bufs().BsendInit(send, peer, 1))
	},
}

func waited(r mpi.Request) error {
	_, err := r.Wait()
	return err
}

// received receives, and waits for a send.
func received(send mpi.Request, receive func() (mpi.Status, error)) (mpi.Status, error) {
	st, err := receive()
	if err == nil {
		_, err = send.Wait()
	}
	return st, err
}

// persistently starts and ends a receive and a send.
func persistently(in, out *mpi.Persistent) (st mpi.Status, err error) {
	if err = mpi.Startall([]*mpi.Persistent{in, out}); err == nil {
		st, err = in.Wait()
	}
	if err == nil {
		_, err = out.Wait()
	}
	return st, errors.Join(err, in.Free(), out.Free())
}

// checkDatatypes: a message is the same whatever the placements of its sender
// and its receiver, and by whichever call it travels.
func checkDatatypes(t *mpitest.T, w *mpi.Comm) {
	me, peer := w.Rank(), 1-w.Rank()
	rnd := rand.New(rand.NewPCG(7, 8)) // the same on both ranks
	must(t, w.SendBuffer().Attach(mpi.BufferAutomatic))
	for _, n := range []int{4, 64, 1000, 8000, 40000} {
		for k, exchange := range exchanges {
			mine, other := (k+n)%placements, rnd.IntN(placements)
			if me == 1 {
				mine, other = other, mine
			}
			l := placementOf(t, mine, n)
			out, send := l.buf(t, n*me)
			in, recv := l.buf(t, -1)
			st, err := exchange(w, send, recv, peer)
			must(t, err)
			if st.Bytes != int64(8*n) || l.dt.Count(st) != l.count || l.dt.Elements(st) != n {
				t.Fatalf("%s: status %+v, %d elements, %d basic ones", l.name, st, l.dt.Count(st), l.dt.Elements(st))
			}
			l.holds(t, in, n*peer, n)
			l.holds(t, out, n*me, n)
			_, err = w.Bufs().SendrecvReplace(send, peer, 1, peer, 1)
			must(t, err)
			l.holds(t, out, n*peer, n)
			must(t, w.Bufs().Bcast(send, 0))
			l.holds(t, out, n, n) // rank 0 has what rank 1 had
		}
		checkTruncatedPlacement(t, w, n)
	}
	_, err := w.SendBuffer().Detach()
	must(t, err)
	// The zero Buf is an empty message.
	st, err := w.Bufs().Sendrecv(mpi.Buf{}, peer, 3, mpi.Buf{}, peer, 3)
	must(t, err)
	if st.Bytes != 0 {
		t.Fatalf("%d bytes in an empty message", st.Bytes)
	}
}

// checkTruncatedPlacement: too long a message fills the places there are, and
// touches nothing else.
func checkTruncatedPlacement(t *mpitest.T, w *mpi.Comm, n int) {
	for k := range placements {
		long, short := placementOf(t, (k+1)%placements, n+4), placementOf(t, k, n)
		if w.Rank() == 0 {
			_, b := long.buf(t, 5)
			must(t, w.Bufs().Send(b, 1, 2))
			continue
		}
		m, b := short.buf(t, -1)
		_, err := w.Bufs().Recv(b, 0, 2)
		wantError(t, err, mpi.ErrTruncate)
		short.holds(t, m, 5, n)
	}
}
