// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"encoding/binary"
	"runtime"
	"sync"

	"gompi/mpi"
	"gompi/mpitest"
)

// checkProbe: a probe tells about the message that the next receive gets, and
// takes nothing.
func checkProbe(t *mpitest.T, w *mpi.Comm) {
	const count = 40
	if w.Rank() > 0 {
		for i := range count {
			must(t, mpi.Send(w, numbered(i, mixed[i%len(mixed)]), 0, i%4))
		}
		return
	}
	buf := make([]byte, 70000)
	next := make([]int, w.Size())
	for i := range count * (w.Size() - 1) {
		var st mpi.Status
		var err error
		if i%2 == 0 {
			st, err = w.Probe(mpi.AnySource, mpi.AnyTag)
			must(t, err)
		} else {
			for found := false; !found; runtime.Gosched() {
				found, st, err = w.Iprobe(mpi.AnySource, mpi.AnyTag)
				must(t, err)
			}
		}
		again, err := w.Probe(st.Source, st.Tag)
		must(t, err)
		if again != st {
			t.Fatalf("the second probe says %+v, the first %+v", again, st)
		}
		n := next[st.Source]
		next[st.Source]++
		if st.Count != mixed[n%len(mixed)] || st.Tag != n%4 {
			t.Fatalf("probe of message %d of rank %d: %+v", n, st.Source, st)
		}
		got, err := mpi.Recv(w, buf[:st.Count], st.Source, st.Tag)
		must(t, err)
		if got != st {
			t.Fatalf("probed %+v, received %+v", st, got)
		}
		checkNumbered(t, buf[:st.Count], n, "probed")
	}
	if found, st, err := w.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
		t.Fatalf("there is a message too many: %+v, %v", st, err)
	}
}

// checkMatchedProbes: goroutines that take messages by matched probe each get
// others, and together all.
func checkMatchedProbes(t *mpitest.T, w *mpi.Comm) {
	const goroutines, each = 4, 25
	count := goroutines * each
	if w.Rank() > 0 {
		for i := range count {
			must(t, mpi.Send(w, numbered(i, mixed[i%len(mixed)]), 0, 5))
		}
		return
	}
	var mu sync.Mutex
	seen := map[[2]int]bool{}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range each * (w.Size() - 1) {
				var m *mpi.Message
				var st mpi.Status
				var err error
				if i%3 == 0 {
					for found := false; !found && err == nil; runtime.Gosched() {
						found, m, st, err = w.Improbe(mpi.AnySource, 5)
					}
				} else {
					m, st, err = w.Mprobe(mpi.AnySource, 5)
				}
				must(t, err)
				buf := make([]byte, st.Count)
				_, err = mpi.Mrecv(m, buf)
				must(t, err)
				seq := int(binary.LittleEndian.Uint64(buf))
				checkNumbered(t, buf, seq, "matched probe")
				mu.Lock()
				double := seen[[2]int{st.Source, seq}]
				seen[[2]int{st.Source, seq}] = true
				mu.Unlock()
				if double {
					t.Fatalf("message %d of rank %d was taken twice", seq, st.Source)
				}
			}
		})
	}
	wg.Wait()
	if len(seen) != count*(w.Size()-1) {
		t.Fatalf("%d messages were taken, want %d", len(seen), count*(w.Size()-1))
	}
}
