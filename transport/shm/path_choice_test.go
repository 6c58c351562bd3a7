// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/rand/v2"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

// TestChoice: whatever the first guess, the way that takes less is taken soon, also after
// that has changed, and the other seldom.
func TestChoice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	// transfers reports how many of n went by push.
	transfers := func(x *pathChoice, n int, guess, far bool, push, both time.Duration) (pushed int) {
		for range n {
			way, timed := x.next(guess, far)
			took := both
			if way {
				took = push
				pushed++
			}
			took += time.Duration(rnd.IntN(int(took) / 20))
			if rnd.IntN(10) == 0 {
				took *= 20 // the receive was late
			}
			if timed && rnd.IntN(20) > 0 { // or it failed
				x.took(way, took)
			}
		}
		return pushed
	}
	for _, guess := range []bool{false, true} {
		var x pathChoice
		transfers(&x, 100, guess, false, 7000, 10_000)
		if n := transfers(&x, 10_000, guess, false, 7000, 10_000); n < 9700 {
			t.Errorf("guess %v: %d of 10000 by the way that takes 7 us, not 10", guess, n)
		}
		if n := transfers(&x, 10_000, guess, false, 20_000, 7000); n > 300+trialRarely {
			t.Errorf("guess %v: %d of 10000 by the way that takes 20 us by now", guess, n)
		}
		if n := transfers(&x, 100_000, guess, false, 20_000, 7000); n > 400 {
			t.Errorf("guess %v: %d of 100000 by the way that takes 20 us, not 7", guess, n)
		}
		if n := transfers(&x, 1000, guess, true, 7000, 20_000); n < 900 {
			t.Errorf("guess %v: %d of 1000 by the way that takes 7 us from a far processor", guess, n)
		}
	}
}

func TestChoiceOf(t *testing.T) {
	var list pathChoices
	for n, want := range map[int]int{1: 0, 16<<10 - 1: 0, 16 << 10: 1, 32<<10 - 1: 1, 32 << 10: 2, choiceMost - 1: len(list) - 1} {
		if x := list.of(n); x != &list[want] {
			t.Errorf("%d bytes: not choice %d", n, want)
		}
	}
}

// TestChoiceLate: where receives are late none is pushed for long.
func TestChoiceLate(t *testing.T) {
	var x pathChoice
	pushed := 0
	for range 10_000 {
		way, timed := x.next(true, false)
		if way {
			pushed++
			x.arrived(false)
		}
		if timed {
			x.took(way, 50_000)
		}
	}
	if pushed > 300 {
		t.Errorf("%d of 10000 were pushed, and none arrived", pushed)
	}
}

// TestTableGiven: a table that is given is kept to, also where the other way takes less.
func TestTableGiven(t *testing.T) {
	f := newFabric(map[string]string{"GOMPI_SHM_TABLE": "near push 0\nfar push 0\n"})
	t.Cleanup(f.close)
	tr := f.open(t, wire.ProcID{Job: 5, Serial: 1})
	t.Cleanup(func() { tr.Close() })
	if !tr.thresholdsFixed || tr.thresholds.Near.Push != 0 {
		t.Errorf("given %v, pushed up to %d bytes", tr.thresholdsFixed, tr.thresholds.Near.Push)
	}
	f = newFabric(nil)
	t.Cleanup(f.close)
	other := f.open(t, wire.ProcID{Job: 5, Serial: 1})
	t.Cleanup(func() { other.Close() })
	if other.thresholdsFixed {
		t.Error("a table is given that is not")
	}
}
