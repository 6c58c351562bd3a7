// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
)

func TestSizes(t *testing.T) {
	if Bytes != segment.CallRegistryBytes {
		t.Errorf("a book has %d bytes, the segment gives %d", Bytes, segment.CallRegistryBytes)
	}
	if wCaller != wOp+MaxOp/8 || wHoldJob != wCaller+MaxCaller/8 || wUnused > slotWords {
		t.Error("texts do not fit their words")
	}
}

func open(t testing.TB) ([]byte, *Registry) {
	t.Helper()
	mem := make([]byte, Bytes)
	b, err := Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	return mem, b
}

func sample() Entry {
	return Entry{
		Op:       "Recv",
		Comm:     wire.ContextID{Creator: wire.ProcID{Job: math.MaxUint64, Serial: 7}, Serial: math.MaxUint32},
		CommSize: 1 << 20, Rank: 12, Peer: AnyPeer, Tag: -3, Bytes: 5 << 30,
		Since: time.Unix(1700000000, 123456789), Caller: "main.go:12 main.main",
	}
}

func TestRoundTrip(t *testing.T) {
	mem, b := open(t)
	if got := Read(mem); got != nil {
		t.Errorf("an empty book has %v", got)
	}
	e := sample()
	withPeer := e
	withPeer.Peer, withPeer.PeerProc = math.MaxInt32, wire.ProcID{Job: 1, Serial: math.MaxUint32}
	long := e
	long.Op, long.Caller = strings.Repeat("o", MaxOp+1), "x"+strings.Repeat("y", MaxCaller)
	wantLong := long
	wantLong.Op, wantLong.Caller = long.Op[:MaxOp], long.Caller[1:]
	odd := Entry{Op: "a\x1b[2Jb\x00", Peer: -70, Rank: -5, CommSize: -1, Bytes: -2, Since: e.Since}
	wantOdd := Entry{Op: "a?[2Jb?", Peer: NoPeer, Since: e.Since}
	for _, c := range []struct{ in, want Entry }{{e, e}, {withPeer, withPeer}, {long, wantLong}, {odd, wantOdd}} {
		slot := b.Enter(&c.in)
		if got := Read(mem); len(got) != 1 || got[0] != c.want {
			t.Errorf("wrote %+v\nread %+v\nwant %+v", c.in, got, c.want)
		}
		b.Leave(slot)
		if got := Read(mem); len(got) != 0 {
			t.Errorf("after Leave there is %v", got)
		}
	}
}

func TestFullBook(t *testing.T) {
	mem, b := open(t)
	e := sample()
	seen := map[int]bool{}
	for range Slots {
		seen[b.Enter(&e)] = true
	}
	if len(seen) != Slots || seen[-1] {
		t.Fatalf("%d different slots; want %d", len(seen), Slots)
	}
	if got := b.Enter(&e); got != -1 {
		t.Errorf("slot %d of a full book", got)
	}
	b.Leave(-1)
	if got := len(Read(mem)); got != Slots {
		t.Errorf("%d entries; want %d", got, Slots)
	}
	b.Leave(5)
	if got := b.Enter(&e); got != 5 {
		t.Errorf("slot %d; want the free one, 5", got)
	}
}

func TestLeaveTwicePanics(t *testing.T) {
	_, b := open(t)
	e := sample()
	s := b.Enter(&e)
	b.Leave(s)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	b.Leave(s)
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(make([]byte, Bytes-1)); err == nil {
		t.Error("too short memory accepted")
	}
	if _, err := Open(make([]byte, Bytes+1)[1:]); err == nil {
		t.Error("memory off the words accepted")
	}
	if Read(nil) != nil || Read(make([]byte, Bytes)) != nil {
		t.Error("entries in no book")
	}
}

// Entries are whole although slots change under the reader's hands.
func TestConcurrent(t *testing.T) {
	mem, b := open(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := g + 4*(i%1000)
				e := Entry{Op: fmt.Sprint("op", n), Rank: n, CommSize: n, Tag: n, Bytes: int64(n), Peer: n, Caller: fmt.Sprint("caller", n),
					PeerProc: wire.ProcID{Job: wire.JobID(n), Serial: uint32(n)}, Since: time.Unix(0, int64(n))}
				slot := b.Enter(&e)
				runtime.Gosched() // let the reader see some
				b.Leave(slot)
			}
		})
	}
	read := 0
	for end := time.Now().Add(10 * time.Second); read < 20000 && time.Now().Before(end); runtime.Gosched() {
		for _, e := range Read(mem) {
			read++
			n := e.Rank
			if e.Op != fmt.Sprint("op", n) || e.Caller != fmt.Sprint("caller", n) || e.CommSize != n || e.Tag != n ||
				e.Bytes != int64(n) || e.Peer != n || e.PeerProc.Serial != uint32(n) || e.Since.UnixNano() != int64(n) {
				t.Fatalf("torn entry %+v", e)
			}
		}
	}
	close(stop)
	wg.Wait()
	if read < 100 {
		t.Errorf("only %d entries read", read)
	}
	if got := Read(mem); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// A slot whose owner died while writing it is skipped.
func TestDiedWriting(t *testing.T) {
	mem, b := open(t)
	e := sample()
	first, second := b.Enter(&e), b.Enter(&e)
	b.slot(first)[wSeq].Add(1)
	if got := Read(mem); len(got) != 1 {
		t.Errorf("%d entries; want only that in slot %d", len(got), second)
	}
}

func FuzzRead(f *testing.F) {
	mem, b := open(f)
	e := sample()
	b.Enter(&e)
	e.Peer, e.PeerProc = 3, wire.ProcID{Job: 9, Serial: 4}
	b.Enter(&e)
	f.Add(mem)
	f.Add(make([]byte, Bytes))
	f.Fuzz(func(t *testing.T, data []byte) {
		img := make([]byte, Bytes)
		copy(img, mem[:headBytes])
		copy(img[min(len(data), headBytes):], data)
		list := Read(img)
		for _, e := range list {
			if len(e.Op) > MaxOp || len(e.Caller) > MaxCaller || e.Peer < NoPeer || e.Rank < 0 || e.CommSize < 0 || e.Bytes < 0 {
				t.Errorf("bad entry %+v", e)
			}
		}
		procs := []ProcEntries{{Proc: wire.ProcID{Job: 9, Serial: 4}, Size: 2, Entries: list}, {Proc: wire.ProcID{Job: 9, Serial: 5}, Rank: 1, Size: 2, Entries: list}}
		if s := Report(procs); !strings.HasSuffix(s, "\n") {
			t.Errorf("report %q", s)
		}
	})
}

// Random words too: the fuzzer seldom finds valid slots.
func TestRandomWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		mem, b := open(t)
		for i := headBytes / 8; i < len(b.words); i++ {
			b.words[i].Store(r.Uint64())
		}
		for s := range Slots {
			w := b.slot(s)
			w[wSeq].Store(r.Uint64N(2))
			w[wState].Store(w[wState].Load()&^0xffffffff | r.Uint64N(2))
			w[wSeq].Store(2 * r.Uint64N(2))
		}
		list := Read(mem)
		if len(list) == 0 {
			t.Fatal("nothing read")
		}
		Report([]ProcEntries{{Entries: list}, {Rank: 1, Entries: list}})
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	_, book := open(b)
	e := sample()
	b.ReportAllocs()
	for b.Loop() {
		book.Leave(book.Enter(&e))
	}
}
