// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"sync"

	"gompi/mpi"
)

// requests are under way, each for a number of bytes.
type requests struct {
	list  []mpi.Request
	bytes []int64
}

func (r *requests) add(q mpi.Request, bytes int64) {
	r.list, r.bytes = append(r.list, q), append(r.bytes, bytes)
}

// wait waits for all requests, as mpi.Waitall does, and reports what each has moved.
func (rc *reconfiguration) wait(r requests) error {
	var err error
	for len(r.list) > 0 {
		n, bytes := 0, int64(0)
		for n < len(r.list) && bytes < stepBytes {
			bytes += r.bytes[n]
			n++
		}
		if failed := mpi.Waitall(r.list[:n]); err == nil {
			err = failed
		}
		rc.report(int(bytes))
		r.list, r.bytes = r.list[n:], r.bytes[n:]
	}
	return err
}

// polled are the requests of strategy NB: Checkpoint tests them while the sources compute.
type polled struct {
	mu   sync.Mutex // held by the goroutine that completes them
	reqs []mpi.Request
	over chan struct{} // closed when they are complete
	err  error         // valid once over is closed
}

// poll completes the requests if all are complete. It waits for nobody.
func (p *polled) poll() {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if p.reqs == nil {
		return
	}
	if done, err := mpi.Testall(p.reqs); done {
		p.finish(err)
	}
}

// finish notes the result of the requests; mu is held.
func (p *polled) finish(err error) {
	p.reqs, p.err = nil, err
	close(p.over)
}

// wait waits for the requests without a way out.
func (p *polled) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reqs != nil {
		p.finish(mpi.Waitall(p.reqs))
	}
}

// giveUp ends the requests on all ranks.
func (p *polled) giveUp(merged *mpi.Comm) {
	merged.Revoke()
	p.wait()
}

// awaitPolled waits until Checkpoint has found the requests complete. If a Checkpoint itself
// waits for the change, it waits for the requests instead.
func (m *Module) awaitPolled(ctx context.Context, p *polled, merged *mpi.Comm) error {
	if len(p.reqs) == 0 {
		return nil
	}
	m.polled.Store(p)
	defer m.polled.Store(nil)
	select {
	case <-p.over:
	case <-m.checkpointWaits:
		p.wait()
	case <-ctx.Done():
		p.giveUp(merged)
	}
	return p.err
}
