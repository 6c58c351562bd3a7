// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/control/collmem"
)

// A rank that sleeps is counted as long as its mark is seen: whoever takes the mark
// of one away, and counts it down, must not hide another.
func TestAreaSleepersCount(t *testing.T) {
	mem := make([]byte, collmem.Size(3)+linePair)
	mem = mem[-uintptr(address(mem))%linePair:][:collmem.Size(3)]
	var ranks [3]Area
	for i := range ranks {
		ranks[i].Open(mem, i, len(ranks), nil)
	}
	ranks[0].PrepareSleep()
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			ranks[1].PrepareSleep()
		}
	})
	b := &ranks[2]
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		for range 100 {
			if b.ranks[1].asleep.Load() == awake {
				continue
			}
			if n := b.head.sleepers.Load(); n < 2 {
				t.Errorf("two sleep, and %d are counted", n)
				end = time.Time{}
				break
			}
			b.takeMark(&b.ranks[1])
		}
	}
	over.Store(true)
	wg.Wait()
}
