// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Long reports whether the long forms of the tests are wanted
// (GOMPI_TEST=long).
func Long() bool { return os.Getenv("GOMPI_TEST") == "long" }

// Duration is how long a test with random cases goes on at least: GOMPI_TEST_TIME, as Go
// writes durations; 0: as many as it has.
func Duration() time.Duration {
	d, err := time.ParseDuration(cmp.Or(os.Getenv("GOMPI_TEST_TIME"), "0s"))
	if err != nil {
		panic(err)
	}
	return d
}

// Soon is how long a test waits for what must have happened after d on a machine that
// runs nothing else: d where the long forms are run, which measure; else ten times as
// long, which tells what never happens.
func Soon(d time.Duration) time.Duration {
	if Long() {
		return d
	}
	return 10 * d
}

// Spread collects durations. The zero value is empty; safe for all goroutines.
type Spread struct {
	mu sync.Mutex
	ds []time.Duration
}

// Add adds one duration.
func (s *Spread) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ds = append(s.ds, d)
}

// Len is how many there are.
func (s *Spread) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ds)
}

// At is the duration below which the fraction q of all lie, 0 <= q <= 1; zero
// if there are none.
func (s *Spread) At(q float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ds) == 0 {
		return 0
	}
	slices.Sort(s.ds)
	return s.ds[int(q*float64(len(s.ds)-1))]
}

// String gives number, median, 90 and 99 percent and maximum.
func (s *Spread) String() string {
	r := func(q float64) time.Duration { return s.At(q).Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d times: median %v, p90 %v, p99 %v, max %v", s.Len(), r(0.5), r(0.9), r(0.99), r(1))
}
