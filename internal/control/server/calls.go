// SPDX-License-Identifier: Apache-2.0

package server

import "sync"

// callQueue runs functions one after the other on a goroutine of its own, so that a caller of add
// need not know which locks they take.
type callQueue struct {
	mu      sync.Mutex
	cond    sync.Cond
	list    []func()
	stopped bool
	wg      sync.WaitGroup
}

func (q *callQueue) start() {
	q.cond.L = &q.mu
	q.wg.Go(q.run)
}

func (q *callQueue) add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, f)
	q.cond.Signal()
}

// stop returns when everything added so far has run.
func (q *callQueue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.cond.Signal()
	q.mu.Unlock()
	q.wg.Wait()
}

func (q *callQueue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.list) == 0 && !q.stopped {
			q.cond.Wait()
		}
		if len(q.list) == 0 {
			return
		}
		batch := q.list
		q.list = nil
		q.mu.Unlock()
		for _, f := range batch {
			f()
		}
		q.mu.Lock()
	}
}
