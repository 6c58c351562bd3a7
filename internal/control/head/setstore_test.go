// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"testing"

	"gompi/internal/control/protocol"
)

// A collective Get that a member never makes, which has ended, has left or has given up,
// is forgotten when all others have made it.
func TestCollectiveGetsAreSwept(t *testing.T) {
	for what, end := range map[string]func(w *world){
		"dies":   func(w *world) { w.end(w.procs[3]) },
		"leaves": func(w *world) { w.leave(w.procs[3]) },
	} {
		w := watching(t, 1, 3)
		if err := w.got(1, &protocol.SetPut{Set: 1, Put: protocol.Put{Key: "k", Val: make([]byte, 1000)}}, nil); err != nil {
			t.Fatal(err)
		}
		before := w.h.Sizes()
		for call := range maxSetCalls {
			for serial := uint32(1); serial <= 2; serial++ {
				if err := w.got(serial, &protocol.SetGet{Set: 1, Keys: []string{"k"}, Call: uint64(call + 1)}, &protocol.ValuesBody{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		end(w)
		for len(w.reports) > 0 {
			w.deliver()
		}
		for _, size := range []string{"calls in sets", "sets with calls", "bytes in store"} {
			if n := w.h.Sizes()[size]; n != before[size] {
				t.Errorf("the third %s: %s is %d, and was %d", what, size, n, before[size])
			}
		}
		if err := w.got(1, &protocol.SetGet{Set: 1, Keys: []string{"k"}, Call: maxSetCalls + 1}, &protocol.ValuesBody{}); err != nil {
			t.Errorf("the third %s: the next call: %v", what, err)
		}
	}
}

// A member that gives up a call has made it.
func TestCollectiveGetGivenUp(t *testing.T) {
	w := watching(t, 1, 2)
	for call := range uint64(3) {
		for serial := uint32(1); serial <= 2; serial++ {
			w.ask(w.procs[serial], &protocol.SetGet{Set: 1, Keys: []string{"k"}, Wait: true, Call: call + 1})
		}
	}
	if n := w.h.Sizes()["calls in sets"]; n != 3 {
		t.Fatalf("%d calls", n)
	}
	for id := range w.procs[1].asked {
		w.tell(w.procs[1], &protocol.Cancel{ID: id})
	}
	for id := range w.procs[2].asked {
		w.tell(w.procs[2], &protocol.Cancel{ID: id})
	}
	if s := w.h.Sizes(); s["calls in sets"] != 0 || s["bytes in store"] != 0 || s["waits in sets"] != 0 {
		t.Errorf("all have given up: %v", s)
	}
}

// What is kept for collective calls counts as what the store holds.
func TestCollectiveGetsAreBounded(t *testing.T) {
	w := watching(t, 1, 2)
	var keys []string
	for i := range 7 {
		keys = append(keys, fmt.Sprint(i))
		if err := w.got(1, &protocol.SetPut{Set: 1, Put: protocol.Put{Key: keys[i], Val: make([]byte, protocol.MaxValue)}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	n := 0
	for ; err == nil && n < maxSetCalls; n++ {
		err = w.got(1, &protocol.SetGet{Set: 1, Keys: keys, Call: uint64(n + 1)}, &protocol.ValuesBody{})
	}
	if held := w.h.storeBytes; !errors.Is(err, protocol.ErrRefused) || held > maxStore {
		t.Errorf("%d calls of all values, which take %d bytes: %v", n, held, err)
	}
	w.finish()
}
