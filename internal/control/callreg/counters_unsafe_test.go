// SPDX-License-Identifier: Apache-2.0

package callreg

import (
	"testing"
	"unsafe"
)

// What the owner counts is read elsewhere, where the layout says, and lies beside nothing
// that is written otherwise.
func TestTally(t *testing.T) {
	mem, b := open(t)
	own := b.Counters()
	*own = Counters{Sent: 1, SentBytes: 2, Received: 3, ReceivedBytes: 4, Collectives: 5}
	if got := ReadCounters(mem); got != *own {
		t.Errorf("counted %+v, read %+v", *own, got)
	}
	for i, n := range own.Numbers() {
		if at := uintptr(unsafe.Pointer(n)) - uintptr(unsafe.Pointer(&mem[0])); at != offCounters+8*uintptr(i) {
			t.Errorf("number %d lies at %d", i, at)
		}
	}
	if size := unsafe.Sizeof(*own); size > headBytes-offCounters || size != 8*uintptr(len(own.Numbers())) {
		t.Errorf("a tally has %d bytes, of which %d numbers are read", size, len(own.Numbers()))
	}
	e := sample()
	b.Leave(b.Enter(&e))
	if got := ReadCounters(mem); got != *own {
		t.Errorf("a call has changed it: %+v", got)
	}
	if _, err := Open(mem); err != nil || ReadCounters(mem) != (Counters{}) {
		t.Errorf("a new owner begins with %+v (%v)", ReadCounters(mem), err)
	}
	b.words[1].Store(version + 1)
	if *own = (Counters{Sent: 1}); ReadCounters(mem) != (Counters{}) || ReadCounters(nil) != (Counters{}) {
		t.Error("read in what is no book of this version")
	}
}
