// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// feeder forwards standard input to the processes that get it, as fast as the slowest of
// them reads.
type feeder struct {
	src     io.Reader
	all     []*os.File // write ends of pipes
	targets []*os.File // those that still have a reader; owned by run

	started bool
	stopped atomic.Bool
	left    []byte        // bytes that were read but not written when it was stopped
	over    chan struct{} // closed when run ends
}

func newFeeder(src io.Reader) *feeder { return &feeder{src: src, over: make(chan struct{})} }

// start begins to forward. All targets must have been added.
func (f *feeder) start() {
	f.started = true
	go f.run()
}

// stop ends run, and returns the bytes that run has read but not written.
func (f *feeder) stop(src input) (left []byte) {
	if !f.started {
		for _, t := range f.all {
			t.Close()
		}
		return nil
	}
	f.stopped.Store(true)
	for _, t := range f.all {
		_ = t.SetWriteDeadline(time.Unix(1, 0)) // fails if it is closed
	}
	src.Interrupt()
	<-f.over
	return f.left
}

// pipe adds a target and returns the read end for the process. It must be called before
// start.
func (f *feeder) pipe() (readEnd int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, os.NewSyscallError("pipe", err)
	}
	// Only a non-blocking descriptor uses the netpoller, in which Close interrupts a
	// Write.
	unix.SetNonblock(p[1], true)
	t := os.NewFile(uintptr(p[1]), "stdin of a rank")
	f.all, f.targets = append(f.all, t), append(f.targets, t)
	return p[0], nil
}

// run forwards until the input ends or no target reads any more.
func (f *feeder) run() {
	defer close(f.over)
	defer func() {
		for _, t := range f.targets {
			t.Close()
		}
	}()
	buf := make([]byte, chunkBytes)
	for len(f.targets) > 0 {
		n, err := f.src.Read(buf)
		if f.stopped.Load() {
			f.left = buf[:n]
			return
		}
		alive := f.targets[:0]
		for _, t := range f.targets {
			if k, werr := t.Write(buf[:n]); werr != nil {
				if f.stopped.Load() {
					f.left = buf[k:n]
					return
				}
				t.Close()
				continue
			}
			alive = append(alive, t)
		}
		f.targets = alive
		if err != nil {
			return
		}
	}
}

// isTerminal reports whether f is a terminal. Other standard input may be given to a rank
// as it is.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
