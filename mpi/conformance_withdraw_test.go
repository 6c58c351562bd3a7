// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// soon is a context that ends at once or within some hundred microseconds.
func soon(rnd *rand.Rand) (context.Context, context.CancelFunc) {
	if rnd.IntN(2) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		return ctx, cancel
	}
	return context.WithTimeout(context.Background(), time.Duration(rnd.IntN(300))*time.Microsecond)
}

// checkWithdrawnReceives: receives are given up at random moments; every
// message arrives once and in order, as a receive that was withdrawn leaves
// its message.
func checkWithdrawnReceives(t *mpitest.T, w *mpi.Comm) {
	const count = 120
	rnd := rand.New(rand.NewPCG(uint64(w.Rank()), 7))
	if w.Rank() == 1 {
		for i := range count {
			must(t, mpi.Send(w, numbered(i, mixed[rnd.IntN(len(mixed))]), 0, 3))
		}
		return
	}
	buf := make([]byte, 70000)
	gaveUp := 0
	for i := 0; i < count; {
		source, tag := 1, 3
		if rnd.IntN(2) == 0 {
			source, tag = mpi.AnySource, mpi.AnyTag
		}
		ctx, cancel := soon(rnd)
		var st mpi.Status
		var err error
		if c := w.WithContext(ctx); rnd.IntN(2) == 0 {
			st, err = mpi.Recv(c, buf, source, tag)
		} else {
			st, err = mpi.Irecv(c, buf, source, tag).Wait()
		}
		cancel()
		if errors.Is(err, mpi.ErrCancelled) {
			gaveUp++
			continue
		}
		must(t, err)
		checkNumbered(t, buf[:st.Count], i, "after receives were given up")
		i++
	}
	if found, st, err := w.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
		t.Fatalf("there is a message too many: %+v, %v", st, err)
	}
	t.Logf("%d receives given up for %d messages", gaveUp, count)
}

// checkWithdrawnSends: sends are given up at random moments; what was
// withdrawn never arrives, what was not arrives once and in order.
func checkWithdrawnSends(t *mpitest.T, w *mpi.Comm) {
	const count, data, list = 120, 3, 4
	rnd := rand.New(rand.NewPCG(uint64(w.Rank()), 8))
	if w.Rank() == 1 {
		var sent []int64
		for i := range count {
			b := numbered(i, mixed[rnd.IntN(len(mixed))])
			ctx, cancel := soon(rnd)
			var err error
			withdrawn := false
			switch c := w.WithContext(ctx); rnd.IntN(3) {
			case 0:
				err = mpi.Ssend(c, b, 0, data)
			case 1:
				err = mpi.Send(c, b, 0, data)
			case 2:
				r := mpi.Issend(w, b, 0, data)
				must(t, r.Cancel())
				var st mpi.Status
				st, err = r.Wait()
				withdrawn = st.Cancelled
			}
			cancel()
			switch {
			case errors.Is(err, mpi.ErrCancelled), withdrawn:
			case err != nil:
				t.Fatal(err)
			default:
				sent = append(sent, int64(i))
			}
			spoil(b)
		}
		must(t, mpi.Send(w, []byte{}, 0, data))
		must(t, mpi.Send(w, sent, 0, list))
		return
	}
	var got []int64
	buf := make([]byte, 70000)
	for {
		st, err := mpi.Recv(w, buf, 1, data)
		must(t, err)
		if st.Count == 0 {
			break
		}
		i := int(buf[0])
		checkNumbered(t, buf[:st.Count], i, "after sends were given up")
		got = append(got, int64(i))
	}
	sent, _, err := mpi.RecvNew[int64](w, 1, list)
	must(t, err)
	if !slices.Equal(sent, got) {
		t.Fatalf("sent    %v\nreceived %v", sent, got)
	}
	t.Logf("%d of %d sends were not withdrawn", len(sent), count)
}
