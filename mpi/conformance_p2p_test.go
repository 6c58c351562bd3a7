// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"math/rand/v2"
	"slices"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// mixed gives sizes below and above every eager limit, in bytes.
var mixed = []int{8, 40, 64, 200, 1000, 5000, 17000, 40000, 70000}

// numbered is a message that can be told from all others.
func numbered(seq, n int) []byte { return testlab.Payload(0, uint64(seq), max(n, testlab.GroupHeader)) }

func checkNumbered(t *mpitest.T, b []byte, seq int, what string) {
	t.Helper()
	if !slices.Equal(b, numbered(seq, len(b))) {
		t.Fatalf("%s: %d bytes are not message %d", what, len(b), seq)
	}
}

// checkOrder: messages of one sender, communicator and tag arrive in the order
// of sending, though small ones could overtake large ones; the receiver takes
// the tags in another order.
func checkOrder(t *mpitest.T, w *mpi.Comm) {
	const tags, count = 3, 60
	d, err := w.Dup()
	must(t, err)
	comms := []*mpi.Comm{w, d}
	if w.Rank() > 0 {
		rnd := rand.New(rand.NewPCG(uint64(w.Rank()), 1))
		var reqs []mpi.Request
		for i := range count {
			for tag := range tags {
				for k, c := range comms {
					b := numbered(i*100+tag*10+k, mixed[rnd.IntN(len(mixed))])
					reqs = append(reqs, mpi.Isend(c, b, 0, tag))
				}
			}
		}
		must(t, mpi.Waitall(reqs))
		d.Free()
		return
	}
	buf := make([]byte, 70000)
	for tag := tags - 1; tag >= 0; tag-- {
		for from := w.Size() - 1; from > 0; from-- {
			for k, c := range comms {
				for i := range count {
					st, err := mpi.Recv(c, buf, from, tag)
					must(t, err)
					if st.Source != from || st.Tag != tag {
						t.Fatalf("status %+v for source %d tag %d", st, from, tag)
					}
					checkNumbered(t, buf[:st.Count], i*100+tag*10+k, "in order")
				}
			}
		}
	}
	d.Free()
}

// checkWildcardOrder: with wildcards too, messages of one sender come in its
// order; a receive for one tag from anybody leaves the others alone.
func checkWildcardOrder(t *mpitest.T, w *mpi.Comm) {
	const count = 60
	if w.Rank() > 0 {
		var reqs []mpi.Request
		for round := range 2 {
			for i := range count {
				reqs = append(reqs, mpi.Isend(w, numbered(round<<16|i, mixed[i*w.Rank()%len(mixed)]), 0, i%3))
			}
		}
		must(t, mpi.Waitall(reqs))
		return
	}
	buf := make([]byte, 70000)
	seen := make([]int, w.Size())
	var tagged [3][]int
	for tag := range tagged {
		tagged[tag] = make([]int, w.Size())
		for i := range tagged[tag] {
			tagged[tag][i] = tag
		}
	}
	// The first round by tag from anybody, the second by anybody and any tag;
	// but a wildcard tag may only be used when nothing of the first is left.
	for tag := 2; tag >= 0; tag-- {
		for range count / 3 * (w.Size() - 1) {
			st, err := mpi.Recv(w, buf, mpi.AnySource, tag)
			must(t, err)
			next := &tagged[tag][st.Source]
			checkNumbered(t, buf[:st.Count], sequence(*next, count), "from any source")
			*next += 3
		}
	}
	// What is left: each sender's messages that were not taken above, in order.
	left := make([][]int, w.Size())
	for from := 1; from < w.Size(); from++ {
		for i := range 2 * count {
			if i >= tagged[i%count%3][from] {
				left[from] = append(left[from], i)
			}
		}
	}
	for {
		from := 0
		for r := 1; r < w.Size(); r++ {
			if seen[r] < len(left[r]) {
				from = r
			}
		}
		if from == 0 {
			return
		}
		st, err := mpi.Recv(w, buf, mpi.AnySource, mpi.AnyTag)
		must(t, err)
		if seen[st.Source] >= len(left[st.Source]) {
			t.Fatalf("more messages of rank %d than it sent", st.Source)
		}
		i := left[st.Source][seen[st.Source]]
		seen[st.Source]++
		checkNumbered(t, buf[:st.Count], sequence(i, count), "any source, any tag")
		if st.Tag != i%count%3 {
			t.Fatalf("message %d of rank %d has tag %d", i, st.Source, st.Tag)
		}
	}
}

// sequence is the number of a sender's i-th message in rounds of count.
func sequence(i, count int) int { return i/count<<16 | i%count }

// checkTruncation: a message that is too long is an error here alone, and the
// next one is fine.
func checkTruncation(t *mpitest.T, w *mpi.Comm) {
	for i, n := range []int{10, 3000, 20000, 300000} {
		for _, room := range []int{0, 1, n / 2, n - 1} {
			if w.Rank() == 0 {
				must(t, mpi.Send(w, numbered(i, n), 1, 1))
				must(t, mpi.Ssend(w, numbered(i+100, n), 1, 2))
				must(t, mpi.Send(w, numbered(i+200, n), 1, 1))
				continue
			}
			whole := guarded(room)
			for k, tag := range []int{1, 2} {
				st, err := mpi.Recv(w, whole[:room], 0, tag)
				var me *mpi.Error
				if !errors.Is(err, mpi.ErrTruncate) || !errors.As(err, &me) {
					t.Fatalf("%d bytes into %d: %v", n, room, err)
				}
				if me.Got != int64(n) || me.Want != int64(room) || me.Peer != 0 || me.Tag != tag {
					t.Fatalf("%d bytes into %d: error %+v", n, room, me)
				}
				if st.Source != 0 || st.Tag != tag || st.Bytes > int64(room) {
					t.Fatalf("status %+v", st)
				}
				if want := numbered(i+k*100, n); !slices.Equal(whole[:st.Bytes], want[:st.Bytes]) {
					t.Fatalf("%d bytes into %d: wrong bytes", n, room)
				}
				if !slices.Equal(whole[room:], guarded(0)) {
					t.Fatalf("%d bytes into %d: bytes behind the buffer were written", n, room)
				}
			}
			good := make([]byte, n)
			_, err := mpi.Recv(w, good, 0, 1)
			must(t, err)
			checkNumbered(t, good, i+200, "after a truncation")
		}
	}
}

// checkModes: every way to send delivers the same.
func checkModes(t *mpitest.T, w *mpi.Comm) {
	const go_ = 99 // the receiver says that its receive is posted
	must(t, w.SendBuffer().Attach(mpi.BufferAutomatic))
	wait := func(r mpi.Request) error { _, err := r.Wait(); return err }
	persistent := func(p *mpi.Persistent) error {
		if err := p.Start(); err != nil {
			return err
		}
		if _, err := p.Wait(); err != nil {
			return err
		}
		return p.Free()
	}
	ways := []func(b []byte, to, tag int) error{
		func(b []byte, to, tag int) error { return mpi.Send(w, b, to, tag) },
		func(b []byte, to, tag int) error { return mpi.Ssend(w, b, to, tag) },
		func(b []byte, to, tag int) error { return mpi.Bsend(w, b, to, tag) },
		func(b []byte, to, tag int) error { return mpi.Rsend(w, b, to, tag) },
		func(b []byte, to, tag int) error { return wait(mpi.Isend(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return wait(mpi.Issend(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return wait(mpi.Ibsend(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return wait(mpi.Irsend(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return persistent(mpi.SendInit(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return persistent(mpi.SsendInit(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return persistent(mpi.BsendInit(w, b, to, tag)) },
		func(b []byte, to, tag int) error { return persistent(mpi.RsendInit(w, b, to, tag)) },
	}
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	for _, n := range []int{0, 1, 200, 9000, 100000} {
		for i, send := range ways {
			in, out := make([]byte, n), testlab.Payload(0, uint64(i), n)
			r := mpi.Irecv(w, in, prev, i)
			_, err := mpi.Sendrecv(w, []byte{1}, prev, go_, make([]byte, 1), next, go_)
			must(t, err)
			must(t, send(out, next, i))
			spoil(out)
			st, err := r.Wait()
			must(t, err)
			if st.Source != prev || st.Tag != i || st.Count != n || !slices.Equal(in, testlab.Payload(0, uint64(i), n)) {
				t.Fatalf("way %d with %d bytes: status %+v", i, n, st)
			}
		}
	}
}

// checkSynchronous: a synchronous send is not complete before its receive has
// started, however small the message is and however long it waits.
func checkSynchronous(t *mpitest.T, w *mpi.Comm) {
	const data, ping = 1, 2
	b := make([]byte, 1)
	for _, n := range []int{0, 8, 4000, 100000} {
		buf := make([]byte, n)
		if w.Rank() == 0 {
			r := mpi.Issend(w, buf, 1, data)
			for range 20 {
				// The answer shows that the receiver has seen what came before.
				_, err := mpi.SendrecvReplace(w, b, 1, ping, 1, ping)
				must(t, err)
				if done, _, err := r.Test(); done {
					t.Fatalf("a synchronous send of %d bytes is complete before its receive: %v", n, err)
				}
			}
			must(t, mpi.Send(w, b, 1, ping))
			_, err := r.Wait()
			must(t, err)
			continue
		}
		for range 20 {
			_, err := mpi.SendrecvReplace(w, b, 0, ping, 0, ping)
			must(t, err)
		}
		_, err := mpi.Recv(w, b, 0, ping)
		must(t, err)
		_, err = mpi.Recv(w, buf, 0, data)
		must(t, err)
	}
}

// checkRing: exchanges in a circle do not deadlock at any size.
func checkRing(t *mpitest.T, w *mpi.Comm) {
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	for round, n := range []int{0, 1, 64, 3000, 70000, 400000, 64, 70000} {
		in := make([]byte, n)
		st, err := mpi.Sendrecv(w, testlab.Payload(0, uint64(round*10+w.Rank()), n), next, round, in, prev, round)
		must(t, err)
		want := testlab.Payload(0, uint64(round*10+prev), n)
		if st.Source != prev || st.Count != n || !slices.Equal(in, want) {
			t.Fatalf("%d bytes: status %+v", n, st)
		}
		// Once around: everybody has its own again.
		own := slices.Clone(in)
		for range w.Size() {
			_, err := mpi.SendrecvReplace(w, in, next, round, prev, round)
			must(t, err)
		}
		if !slices.Equal(in, own) {
			t.Fatalf("%d bytes have not come back", n)
		}
	}
}

// checkStorm: everybody sends everything before anybody receives, and the
// receives come in the opposite order of tags.
func checkStorm(t *mpitest.T, w *mpi.Comm) {
	const count = 80
	var reqs []mpi.Request
	for i := range count {
		for to := range w.Size() {
			reqs = append(reqs, mpi.Isend(w, numbered(i, mixed[(i+to+w.Rank())%len(mixed)]), to, i))
		}
	}
	bar := w.Ibarrier()
	_, err := bar.Wait()
	must(t, err)
	buf := make([]byte, 70000)
	for i := count - 1; i >= 0; i-- {
		for range w.Size() {
			st, err := mpi.Recv(w, buf, mpi.AnySource, i)
			must(t, err)
			if want := mixed[(i+w.Rank()+st.Source)%len(mixed)]; st.Count != want {
				t.Fatalf("message %d of rank %d has %d bytes, want %d", i, st.Source, st.Count, want)
			}
			checkNumbered(t, buf[:st.Count], i, "storm")
		}
	}
	must(t, mpi.Waitall(reqs))
}
