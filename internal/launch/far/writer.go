// SPDX-License-Identifier: Apache-2.0

package far

import (
	"sync"
	"time"

	"gompi/internal/launch"
)

// closeWait is how long close waits for a reader that does not read.
const closeWait = time.Second

// writer writes pieces to a descriptor on a goroutine of its own, so that a slow reader
// delays no other output.
type writer struct {
	fd     int
	failed func(err error) // called once, on that goroutine

	mu    sync.Mutex
	cond  sync.Cond // queue, bytes, ended have changed
	queue []piece
	left  int // number of pieces not written
	ended bool
}

// piece is written at once. Then written, if not nil, is called, also if the output is
// broken. of, if not nil, counts the unwritten bytes of one source.
type piece struct {
	data    []byte
	of      *int
	written func()
}

func newWriter(fd int, failed func(error)) *writer {
	w := &writer{fd: fd, failed: failed}
	w.cond.L = &w.mu
	go w.run()
	return w
}

// put queues a piece and takes ownership of data. It returns false if more than a window
// of bytes of this source waits; of counts them.
func (w *writer) put(of *int, data []byte, written func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of != nil {
		if *of += len(data); *of > window {
			return false
		}
	}
	w.queue = append(w.queue, piece{data, of, written})
	w.left++
	w.cond.Broadcast()
	return true
}

// wait returns when all pieces are written.
func (w *writer) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.left > 0 && !w.ended {
		w.cond.Wait()
	}
}

// close ends the writer when all is written, or after closeWait.
func (w *writer) close() {
	end := time.AfterFunc(closeWait, w.end)
	w.wait()
	end.Stop()
	w.end()
}

func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.cond.Broadcast()
}

func (w *writer) run() {
	broken := false
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 && !w.ended {
			w.cond.Wait()
		}
		if w.ended {
			return
		}
		batch := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, p := range batch {
			if !broken {
				if err := launch.WriteAll(w.fd, p.data); err != nil {
					broken = true
					w.failed(err)
				}
			}
			w.mu.Lock()
			w.left--
			if p.of != nil {
				*p.of -= len(p.data)
			}
			w.cond.Broadcast()
			w.mu.Unlock()
			if p.written != nil {
				p.written()
			}
		}
		w.mu.Lock()
	}
}
