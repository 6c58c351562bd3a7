// SPDX-License-Identifier: Apache-2.0

// Package crew has several threads do one piece of work that is soon over: the caller, and
// helpers on processors that nobody of the job needs meanwhile.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Crew is who works together. The zero Crew is the caller alone.
type Workers struct {
	// Hands is how many threads work, the caller one of them; below 2: it alone.
	Threads int
	// Roams: helpers that find no room on the processors to which this process is bound go
	// to others on which its launcher, the parent process, may run. Threads of the program
	// stay where they are.
	Migrate bool
}

// Each calls do for 0 to n-1, by whichever hand is free, and returns when all calls are over.
// After an error no further one begins; it is that of the lowest number that has failed.
func (c Workers) Each(n int, do func(i int) error) error {
	hands := min(c.Threads, n)
	if hands < 2 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var mu sync.Mutex
	var failed error
	lowest := n
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := do(i); err != nil {
				next.Store(int64(n))
				mu.Lock()
				if i < lowest {
					lowest, failed = i, err
				}
				mu.Unlock()
				return
			}
		}
	}
	var out away
	if c.Migrate {
		out = elsewhere()
	}
	var helpers sync.WaitGroup
	for i := 1; i < hands; i++ {
		helpers.Go(func() {
			if c.Migrate && i >= out.room {
				// Its thread ends with the goroutine, if that does not unlock it.
				runtime.LockOSThread()
				defer out.move()()
			}
			work()
		})
	}
	work()
	helpers.Wait()
	return failed
}
