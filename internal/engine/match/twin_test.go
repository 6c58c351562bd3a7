// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gompi/internal/base/wire"
)

// twins runs the table and its slow twin side by side and compares every
// answer. Records are named by numbers; every record is used again after it
// left the table, as the engine does.
type twins struct {
	fast     table
	slow     slow
	receives []*receive
	messages []*message
	freeR    []int
	freeM    []int
}

func (w *twins) receive() (int, *receive) {
	if n := len(w.freeR); n > 0 {
		id := w.freeR[n-1]
		w.freeR = w.freeR[:n-1]
		return id, w.receives[id]
	}
	id := len(w.receives)
	w.receives = append(w.receives, &receive{Val: &id})
	return id, w.receives[id]
}

func (w *twins) message() (int, *message) {
	if n := len(w.freeM); n > 0 {
		id := w.freeM[n-1]
		w.freeM = w.freeM[:n-1]
		return id, w.messages[id]
	}
	id := len(w.messages)
	w.messages = append(w.messages, &message{Val: &id})
	return id, w.messages[id]
}

func messageID(a *message) int {
	if a == nil {
		return none
	}
	return *a.Val
}

func differ(what string, k slowKey, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s %+v: got %v, want %v", what, k, got, want)
}

func (w *twins) post(k slowKey) error {
	id, p := w.receive()
	p.Key = k.key()
	got := messageID(w.fast.Post(p))
	if got == none {
		if !p.Queued() {
			return fmt.Errorf("post %+v: receive does not wait", k)
		}
	} else {
		w.freeR, w.freeM = append(w.freeR, id), append(w.freeM, got)
	}
	return differ("post", k, got, w.slow.post(id, k))
}

func (w *twins) arrive(k slowKey) error {
	id, a := w.message()
	got := none
	if p := w.fast.Arrive(k.key()); p != nil {
		got = *p.Val
		w.freeR, w.freeM = append(w.freeR, got), append(w.freeM, id)
	} else {
		a.Key = k.key()
		w.fast.Keep(a)
	}
	return differ("arrive", k, got, w.slow.arrive(id, k))
}

// probe looks, and takes what it found if take is set.
func (w *twins) probe(k slowKey, take bool) error {
	a := w.fast.Peek(k.key())
	want := w.slow.peek(k)
	if a != nil && take {
		w.fast.Take(a)
		w.slow.take(want)
		w.freeM = append(w.freeM, *a.Val)
	}
	return differ("probe", k, messageID(a), want)
}

// takeNth removes the waiting message at position n, as a cancelled send does.
func (w *twins) takeNth(n int) error {
	if len(w.slow.arrived) == 0 {
		return nil
	}
	e := w.slow.arrived[n%len(w.slow.arrived)]
	w.slow.take(e.id)
	w.fast.Take(w.messages[e.id])
	w.freeM = append(w.freeM, e.id)
	return nil
}

func (w *twins) withdraw(n int) error {
	if len(w.receives) == 0 {
		return nil
	}
	id := n % len(w.receives)
	got := w.fast.Withdraw(w.receives[id])
	if got {
		w.freeR = append(w.freeR, id)
	}
	return differ("withdraw", slowKey{}, got, w.slow.withdraw(id))
}

func (w *twins) drop(c wire.ContextID) error {
	var got []int
	for _, a := range w.fast.DropContext(c.Creator, c.Serial) {
		got = append(got, *a.Val)
	}
	w.freeM = append(w.freeM, got...)
	return differ("drop", slowKey{context: c}, got, w.slow.drop(c))
}

// check compares all that waits, and the table's own books.
func (w *twins) check() error {
	var rs, ms []int
	for p := range w.fast.EachPosted {
		rs = append(rs, *p.Val)
	}
	for a := range w.fast.EachArrived {
		ms = append(ms, *a.Val)
	}
	if !slices.Equal(rs, ids(w.slow.posted)) {
		return fmt.Errorf("posted: got %v, want %v", rs, ids(w.slow.posted))
	}
	if !slices.Equal(ms, ids(w.slow.arrived)) {
		return fmt.Errorf("arrived: got %v, want %v", ms, ids(w.slow.arrived))
	}
	if w.fast.PostedLen() != len(rs) || w.fast.ArrivedLen() != len(ms) {
		return fmt.Errorf("lengths %d, %d; want %d, %d", w.fast.PostedLen(), w.fast.ArrivedLen(), len(rs), len(ms))
	}
	return w.books()
}

// books checks the indexes: each ring stands in its bucket, and the counts are
// those of the lists.
func (w *twins) books() error {
	n, err := checkIndex(&w.fast.posted)
	if lone := w.fast.lone; lone != nil {
		if n != 0 || !lone.lone || lone.link.queued() {
			return fmt.Errorf("a lone receive beside %d in the index", n)
		}
		n++
	}
	if err != nil || n != len(w.slow.posted) {
		return fmt.Errorf("posted index: %d links, want %d: %w", n, len(w.slow.posted), err)
	}
	if w.fast.unexpected == 0 && w.fast.indexed != [classes]bool{} {
		return fmt.Errorf("indexes %v are kept for no message", w.fast.indexed)
	}
	for c := range w.fast.arrived {
		want := 0
		if class(c) == exact || w.fast.indexed[c] {
			want = len(w.slow.arrived)
		}
		if n, err := checkIndex(&w.fast.arrived[c]); err != nil || n != want {
			return fmt.Errorf("arrived index %d: %d links, want %d: %w", c, n, want, err)
		}
	}
	return nil
}

func checkIndex[O any](x *index[O]) (links int, err error) {
	keys := 0
	for _, first := range x.buckets {
		for ; first != nil; first = first.chain {
			keys++
			for l := first; ; l = l.next {
				links++
				if l.key != first.key || l.next.prev != l || l.oldest != (l == first) {
					return links, fmt.Errorf("broken ring of %v", first.key)
				}
				if l.next == first {
					break
				}
			}
			if *x.slot(first.key) != first {
				return links, fmt.Errorf("%v stands in the wrong bucket", first.key)
			}
		}
	}
	if keys != x.keys || keys > len(x.buckets) {
		return links, fmt.Errorf("%d keys, counted as %d, %d buckets", keys, x.keys, len(x.buckets))
	}
	return links, nil
}

// A step is three bytes: operation, context and plane, source and tag. Few
// values make many meetings; two operations widen them so that tables grow.
func (w *twins) step(op, a, b byte) error {
	k := slowKey{
		context: wire.ContextID{Creator: wire.ProcID{Job: 77, Serial: uint32(a & 1)}, Serial: uint32(a >> 1 & 1)},
		plane:   wire.TrafficClass(a >> 2 & 1),
		source:  int32(b & 3),
		tag:     int32(b >> 2 & 3),
	}
	wild := k
	if b&0x10 != 0 {
		wild.source = Any
	}
	if b&0x20 != 0 {
		wild.tag = Any
	}
	switch op % 10 {
	case 0, 1, 2:
		return w.post(wild)
	case 3, 4, 5:
		return w.arrive(k)
	case 6:
		return w.probe(wild, a&0x80 != 0)
	case 7:
		return w.withdraw(int(a)<<8 | int(b))
	case 8:
		if b&0xc0 == 0 {
			return w.drop(k.context)
		}
		return w.takeNth(int(a)<<8 | int(b))
	default:
		for i := range int(b) / 4 {
			k.tag = int32(i)
			k.source = int32(a)
			var err error
			if op&0x40 != 0 {
				err = w.arrive(k)
			} else {
				err = w.post(k)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// runScript runs a step for each three bytes.
func runScript(script []byte) error {
	var w twins
	for i := 0; i+3 <= len(script); i += 3 {
		if err := w.step(script[i], script[i+1], script[i+2]); err != nil {
			return fmt.Errorf("step %d: %w", i/3, err)
		}
	}
	return w.check()
}

func TestTwinRandom(t *testing.T) {
	n := uint64(400)
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 3*(1+rng.IntN(200)))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		if err := runScript(script); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzTwin(f *testing.F) {
	f.Add([]byte{0, 0, 0x30, 3, 0, 1, 3, 0, 5, 6, 0, 0x11, 8, 0, 0})
	f.Add([]byte{73, 1, 200, 0, 1, 0x30, 7, 0, 1, 9, 2, 200, 3, 2, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := runScript(script[:min(len(script), 600)]); err != nil {
			t.Fatal(err)
		}
	})
}
