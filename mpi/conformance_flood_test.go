// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

const (
	floodTag = 1
	talkTag  = 2
	// floodBudget is the memory for messages beyond what a peer starts with,
	// which is 1 MiB of payload and 65,536 envelopes.
	floodBudget = 8 << 20
	// floodCredit is what the documented credit lets a sender leave with its
	// receiver, envelopes at 240 bytes, and as much for what keeps them (size
	// classes, tables that double).
	floodCredit = 2 * (1<<20 + floodBudget + 65536*240)
	floodBytes  = 1024
	// mpiCredit is how much of a flood may have left.
	mpiCredit = 1<<20 + floodBudget/2
)

// flood: rank 1 sends count messages to rank 0, which receives none before it
// has talked with rank 2 for some rounds, and until the flood has come to a
// stop: nothing but credit's worth of memory is used, and the talk is not held
// up. Then everything arrives in order. sent is common to the ranks.
func flood(t *mpitest.T, w *mpi.Comm, count, rounds int, sent *atomic.Int64) {
	const last = -1
	b := make([]byte, floodBytes)
	word := make([]int64, 1)
	switch w.Rank() {
	case 1:
		for i := range count {
			b[0], b[floodBytes-1] = byte(i), byte(i>>8)
			must(t, mpi.Send(w, b, 0, floodTag))
			sent.Add(1)
		}
	case 2:
		var times testlab.Spread
		seen := int64(-1)
		for i := 1; word[0] != -last; i++ {
			word[0] = int64(i)
			if i%rounds == 0 {
				if n := sent.Load(); n == seen {
					word[0] = last
				} else {
					seen = n
				}
			}
			asked, began := word[0], time.Now()
			_, err := mpi.SendrecvReplace(w, word, 0, talkTag, 0, talkTag)
			must(t, err)
			times.Add(time.Since(began))
			if word[0] != -asked {
				t.Fatalf("answer %d to %d", word[0], asked)
			}
		}
		if seen*floodBytes > mpiCredit {
			t.Errorf("%d messages have left before one was received, their credit is %d bytes", seen, mpiCredit)
		}
		t.Logf("beside a flood that stopped after %d messages: %v", seen, &times)
	case 0:
		before, most := heap(), uint64(0)
		for i := 1; word[0] != -last; i++ {
			_, err := mpi.Recv(w, word, 2, talkTag)
			must(t, err)
			if i%rounds == 0 {
				most = max(most, heap())
			}
			word[0] = -word[0]
			must(t, mpi.Send(w, word, 2, talkTag))
		}
		if most > before+floodCredit {
			t.Fatalf("a flood takes %d KiB of memory, want %d at most", (most-before)>>10, floodCredit>>10)
		}
		for i := range count {
			_, err := mpi.Recv(w, b, 1, floodTag)
			must(t, err)
			if b[0] != byte(i) || b[floodBytes-1] != byte(i>>8) {
				t.Fatalf("message %d is another: %d, %d", i, b[0], b[floodBytes-1])
			}
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestConformanceFlood: so many messages that keeping them would be seen.
func TestConformanceFlood(t *testing.T) {
	count, limit := 100_000, time.Minute
	if underRace {
		count = 10_000
	}
	if testlab.Long() {
		count, limit = 10_000_000, 20*time.Minute
	}
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			var sent atomic.Int64
			mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) { flood(t, w, count, 500, &sent) },
				mpitest.Transport(tr), mpitest.Within(limit), floodSetting)
		})
	}
}

var floodSetting = mpitest.Setting("GOMPI_BUDGET", fmt.Sprint(floodBudget))

// TestConformanceUnreceived: small messages go before anybody receives them,
// however many: programs of other MPIs count on it.
func TestConformanceUnreceived(t *testing.T) {
	counts, limit := map[int]int{8: 20_000, 4000: 300}, mpitest.Deadline
	if testlab.Long() {
		counts, limit = map[int]int{8: 1_000_000, 4000: 50_000}, 20*time.Minute
	}
	const last = 1 << 20
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				for _, size := range []int{8, 4000} {
					count := counts[size]
					b := make([]byte, size)
					if w.Rank() == 0 {
						for i := range count {
							b[0], b[7] = byte(i), byte(i>>8)
							must(t, mpi.Send(w, b, 1, size+i%1000))
						}
						must(t, mpi.Send(w, b, 1, last))
						continue
					}
					_, err := mpi.Recv(w, b, 0, last)
					must(t, err)
					for i := range count {
						_, err := mpi.Recv(w, b, 0, size+i%1000)
						must(t, err)
						if b[0] != byte(i) || b[7] != byte(i>>8) {
							t.Fatalf("message %d of %d bytes is another: %d, %d", i, size, b[0], b[7])
						}
					}
				}
			}, mpitest.Transport(tr), mpitest.Within(limit))
		})
	}
}

// TestConformanceFloodLarge: large messages stay with their sender, who waits;
// many sends that are not waited for do too.
func TestConformanceFloodLarge(t *testing.T) {
	const size, open = 4 << 20, 64
	count, limit := 100, time.Minute
	if testlab.Long() {
		count, limit = 20_000_000_000/size, 20*time.Minute
	}
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
				b := make([]byte, size)
				word := make([]int64, 1)
				switch w.Rank() {
				case 1:
					var reqs []mpi.Request
					for i := range count {
						if len(reqs) == open {
							_, err := reqs[0].Wait()
							must(t, err)
							reqs = reqs[1:]
						}
						reqs = append(reqs, mpi.Isend(w, b, 0, i%1000))
					}
					must(t, mpi.Waitall(reqs))
				case 2:
					for range 200 {
						_, err := mpi.SendrecvReplace(w, word, 0, talkTag, 0, talkTag)
						must(t, err)
					}
				case 0:
					// Tag talkTag of rank 1 is not meant: the source tells.
					before := heap()
					for i := range 200 {
						_, err := mpi.Recv(w, word, 2, talkTag)
						must(t, err)
						if i == 150 {
							if most := heap(); most > before+floodCredit {
								t.Fatalf("large messages take %d KiB before they are received", (most-before)>>10)
							}
						}
						must(t, mpi.Send(w, word, 2, talkTag))
					}
					for i := range count {
						st, err := mpi.Recv(w, b, 1, i%1000)
						must(t, err)
						if st.Count != size {
							t.Fatal(fmt.Sprint("message ", i, ": ", st))
						}
					}
				}
			}, mpitest.Transport(tr), mpitest.Within(limit))
		})
	}
}
