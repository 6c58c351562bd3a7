// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGenerateIsRepeatable: a seed is all that is needed to repeat a failure.
func TestGenerateIsRepeatable(t *testing.T) {
	kinds, makers, calls, forms := map[Kind]int{}, map[Maker]int{}, map[CollOp]int{}, map[Form]int{}
	for seed := range uint64(300) {
		p := Generate(seed)
		if !reflect.DeepEqual(p, Generate(seed)) {
			t.Fatalf("seed %d gives two programs", seed)
		}
		made := map[int]bool{World: true, Wild: true}
		for i := range p.Events {
			e := &p.Events[i]
			kinds[e.Kind]++
			if e.ID != FirstEvent+i || !made[e.Comm] {
				t.Fatalf("seed %d: %v", seed, e)
			}
			if (e.Comm == Wild) && e.Kind != Group {
				t.Fatalf("seed %d: only groups may use the communicator of wildcards: %v", seed, e)
			}
			if e.Kind == Message && e.From == e.To && e.Recv != Irecv {
				t.Fatalf("seed %d: a rank that waits for itself: %v", seed, e)
			}
			switch e.Kind {
			case Make:
				made[e.ID] = true
				makers[e.How]++
			case Free:
				delete(made, e.Comm)
			case Collective:
				calls[e.Coll]++
				forms[e.Form]++
			}
		}
	}
	for k := Message; k <= Withdraw; k++ {
		if kinds[k] < 100 {
			t.Errorf("%d events are of kind %v", kinds[k], k)
		}
	}
	for m := range numMakers {
		if makers[m] < 20 {
			t.Errorf("%d communicators are made by %v", makers[m], m)
		}
	}
	for o := range numColls {
		if calls[o] < 50 {
			t.Errorf("%d collectives are %v", calls[o], o)
		}
	}
	for f := Blocking; f <= Persistent; f++ {
		if forms[f] < 500 {
			t.Errorf("%d collectives are %v", forms[f], f)
		}
	}
}

// perfect is what a rank of a perfect library would report, with the messages
// of a group taken from the senders in turn.
func perfect(p *Program, rank int) []Result {
	out := Expect(p, rank)
	var slots []Result
	var queue []Result
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != Group || e.To != rank {
			continue
		}
		for k, part := range e.Parts {
			id := MessageID(e.ID, k)
			r := Result{ID: e.ID, Index: k, Source: part.From, Tag: e.Tag, Bytes: int64(part.Bytes), Message: id, Sum: Sum(Payload(p.Seed, id, part.Bytes))}
			if e.Comm != Wild {
				out = append(out, r)
				continue
			}
			slots = append(slots, Result{ID: e.ID, Index: k})
			queue = append(queue, r)
		}
	}
	for i, r := range queue {
		r.ID, r.Index = slots[i].ID, slots[i].Index
		out = append(out, r)
	}
	return out
}

func TestCheckAcceptsAndRefuses(t *testing.T) {
	refused := 0
	for seed := range uint64(Rounds(4, 12)) {
		p := Generate(seed)
		for rank := range p.Ranks {
			got := perfect(p, rank)
			if err := Check(p, rank, got); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i := range got {
				bad := append([]Result(nil), got...)
				switch i % 4 {
				case 0:
					bad[i].Sum++
				case 1:
					bad[i].Source++
				case 2:
					bad = append(bad[:i], bad[i+1:]...)
				case 3:
					bad[i].Bytes++
				}
				if Check(p, rank, bad) == nil {
					t.Fatalf("seed %d rank %d: Check accepts result %d changed: %+v", seed, rank, i, got[i])
				}
				refused++
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d changes were tried", refused)
	}
}

// TestCheckKeepsOrder: two messages of one sender in the wrong order.
func TestCheckKeepsOrder(t *testing.T) {
	p := &Program{Seed: 1, Ranks: 2, Events: []Event{{
		ID: FirstEvent, Kind: Group, Comm: Wild, To: 0, Tag: 9,
		Parts: []Part{{From: 1, Bytes: 8}, {From: 1, Bytes: 8}},
	}}}
	got := perfect(p, 0)
	if err := Check(p, 0, got); err != nil {
		t.Fatal(err)
	}
	got[0].Index, got[1].Index = got[1].Index, got[0].Index
	if Check(p, 0, got) == nil {
		t.Error("Check accepts an overtaking message")
	}
}

func TestShrink(t *testing.T) {
	p := Generate(5)
	for seed := uint64(5); len(p.Events) < 60; seed++ {
		p = Generate(seed)
	}
	a, b := p.Events[7].ID, p.Events[41].ID
	calls := 0
	q := Shrink(p, 1000, func(q *Program) bool {
		calls++
		has := func(id int) bool {
			for _, e := range q.Events {
				if e.ID == id {
					return true
				}
			}
			return false
		}
		return has(a) && has(b)
	})
	rest := slices.DeleteFunc(slices.Clone(q.Events), func(e Event) bool { return e.Kind == Make })
	if len(rest) > 4 {
		t.Errorf("%d events are left after %d calls:\n%v", len(q.Events), calls, q)
	}
	for _, e := range q.Events {
		if e.Comm != World && e.Comm != Wild && !strings.Contains(q.String(), "make") {
			t.Errorf("event without its communicator:\n%v", q)
		}
	}
}

func TestPayload(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 1000} {
		b := Payload(3, 77, n)
		if len(b) != n || !reflect.DeepEqual(b, Payload(3, 77, n)) {
			t.Errorf("%d bytes are %d, or not repeatable", n, len(b))
		}
		if n > 8 && Sum(b) == Sum(Payload(3, 78, n)) || n > 0 && Sum(b) == Sum(b[:n-1]) {
			t.Errorf("%d bytes: equal sums of different payloads", n)
		}
	}
}

func TestTry(t *testing.T) {
	cleaned := false
	failed, log := Try(t, func(tb testing.TB) {
		tb.Cleanup(func() { cleaned = true })
		tb.Fatalf("no %d", 5)
	})
	if !failed || log != "no 5\n" || !cleaned {
		t.Errorf("failed %v, log %q, cleaned %v", failed, log, cleaned)
	}
	if failed, log = Try(t, func(tb testing.TB) { panic("oh") }); !failed || !strings.Contains(log, "oh") {
		t.Errorf("a panic: failed %v, log %q", failed, log)
	}
	if failed, _ = Try(t, func(tb testing.TB) { tb.Log("fine") }); failed {
		t.Error("a good function failed")
	}
}

func TestNothingFindsGoroutines(t *testing.T) {
	before := Take()
	stop := make(chan struct{})
	go func() { <-stop }()
	runtime.Gosched()
	if more := Take().more(before, 1<<20); !strings.Contains(more, "goroutines") {
		t.Errorf("found %q", more)
	}
	close(stop)
	Nothing(t, before, 1<<20)
}

func TestSpread(t *testing.T) {
	var s Spread
	if s.At(0.5) != 0 {
		t.Error("an empty spread has a median")
	}
	for i := range 101 {
		s.Add(time.Duration(100-i) * time.Millisecond)
	}
	if s.At(0.5) != 50*time.Millisecond || s.At(1) != 100*time.Millisecond || s.At(0) != 0 {
		t.Error(s.String())
	}
}
