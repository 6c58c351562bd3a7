// SPDX-License-Identifier: Apache-2.0

// Package parallel runs one short piece of work on several threads: a parallel for loop.
// Workers.Each uses the caller and helper goroutines. The helpers may run on processors
// that no process of the job needs at that time.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers describes the threads of a parallel loop. The zero value is the caller alone.
type Workers struct {
	// Threads is the number of threads, the caller included. Below 2 the caller works
	// alone.
	Threads int
	// Migrate lets helpers leave the processors of this process if these are too few.
	// They then use other processors that the launcher, the parent process, may run on.
	// Threads of the program never migrate.
	Migrate bool
}

// Each calls do for 0 to n-1, each number on the next free thread, and returns when all
// calls have returned. After an error no further call starts. Each returns the error of
// the lowest number that has failed.
func (c Workers) Each(n int, do func(i int) error) error {
	threads := min(c.Threads, n)
	if threads < 2 {
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
	var out otherCPUs
	if c.Migrate {
		out = findOtherCPUs()
	}
	var helpers sync.WaitGroup
	for i := 1; i < threads; i++ {
		helpers.Go(func() {
			if c.Migrate && i >= out.room {
				// The thread ends with the goroutine unless migrate's undo unlocks it.
				runtime.LockOSThread()
				defer out.migrate()()
			}
			work()
		})
	}
	work()
	helpers.Wait()
	return failed
}
