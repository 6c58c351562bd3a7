// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
	"gompi/internal/control"
	"gompi/internal/onehost"
	"gompi/internal/wire"
)

// reportPatience is how long processes may take to describe themselves.
const reportPatience = 2 * time.Second

// killPatience is how long the head waits for processes that got SIGKILL:
// one in an uninterruptible system call may never end.
const killPatience = 10 * time.Second

// head runs a job: it knows the processes by name, says what their ends mean, and
// when the job ends. What is done to them an agent does. Its fields belong to the goroutine of run, except that
// post may be called from anywhere.
type head struct {
	o      *options // only read
	job    wire.JobID
	ft     bool // a death does not end the job
	procs  *table
	server headPlane
	agent  host

	status    int  // exit status so far
	failed    bool // status is decided
	ending    bool
	hurried   bool // SIGKILL was sent
	drained   bool // nothing more will be started, and the output may end
	out       bool // all of it is out
	interrupt int  // INT and TERM so far
	impatient bool // one of them was the last: what is not out yet is dropped
	left      bool // some process left in order
	grace     <-chan time.Time
	giveUp    <-chan time.Time

	mu    sync.Mutex
	queue []func()
	ready chan struct{}
	ended chan struct{} // closed when what is posted is not run any more
}

// headPlane is the part of the control plane that the head has.
type headPlane interface {
	AddJob(argv [][]string) ([]onehost.StartProc, wire.Set, error)
	State(p wire.ProcID) control.ProcState
	Stacks(ctx context.Context) []control.StackReport
	Ending(why string)
	Close() error
}

// post has fn run by the head, unless that has ended. It never blocks.
func (h *head) post(fn func()) {
	h.mu.Lock()
	h.queue = append(h.queue, fn)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// take returns what was posted.
func (h *head) take() []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queue
	h.queue = nil
	return q
}

// say prints one line of gompirun's own.
func (h *head) say(format string, a ...any) { h.print(line(format, a...)) }

// print writes to standard error, after what processes that have ended wrote.
func (h *head) print(text string) { h.agent.print(text) }

func line(format string, a ...any) string {
	return "gompirun: " + strings.TrimRight(fmt.Sprintf(format, a...), "\n") + "\n"
}

// say is for those who have no head.
func say(format string, a ...any) {
	writeAll(2, []byte(line(format, a...)))
}

// newHead makes everything that needs no process yet.
func newHead(o *options) (*head, error) {
	h := &head{o: o, ft: o.ft, procs: newTable(), ready: make(chan struct{}, 1), ended: make(chan struct{})}
	usable := cgroup.UsableCPUs()
	procs := maxProcs(o, usable)
	var id [8]byte
	var secret [32]byte
	if err := random(id[:], secret[:]); err != nil {
		return nil, err
	}
	h.job = wire.JobID(binary.NativeEndian.Uint64(id[:]) | 1)
	a, err := newAgent(o, h.job, procs, h.hear, h.post)
	if err != nil {
		return nil, err
	}
	server, err := onehost.NewServer(onehost.Config{
		Job: h.job, Secret: secret,
		Settings: o.settings, FaultTolerant: o.ft, KillGrace: o.killGrace,
		UsableCPUs: usable, MaxProcs: procs,
		Start:     h.spawn,
		Aborted:   func(by wire.ProcID, code int, msg string) { h.post(func() { h.aborted(by, code, msg) }) },
		Joined:    func(p wire.ProcID) { h.post(func() { h.joined(h.procs.byID[p]) }) },
		Finalized: func(p wire.ProcID) { h.post(func() { h.finalized(h.procs.byID[p]) }) },
		Reap:      func(p wire.ProcID) { h.post(func() { a.reap(a.byID[p]) }) },
		Lost:      func(p wire.ProcID) { h.post(func() { a.lost(a.byID[p]) }) },
		Dropped:   func(p wire.ProcID, why string) { h.post(func() { a.dropped(a.byID[p], why) }) },
	})
	if err != nil {
		return nil, err
	}
	h.server, h.agent, a.plane = server, a, server
	return h, nil
}

// maxProcs is the GOMAXPROCS of a process: a second P, so that somebody
// answers while one computes. Whoever sets it himself keeps it.
func maxProcs(o *options, usable int) func(int) int {
	user := os.Getenv("GOMAXPROCS") != ""
	for _, a := range o.apps {
		for _, x := range a.env {
			user = user || strings.HasPrefix(x, "GOMAXPROCS=")
		}
	}
	return func(localProcs int) int {
		if user {
			return 0
		}
		return max(2, usable/max(1, localProcs))
	}
}

// random fills the buffers with secrets.
func random(bufs ...[]byte) error {
	for _, b := range bufs {
		for len(b) > 0 {
			n, err := unix.Getrandom(b, 0)
			if err != nil && err != unix.EINTR {
				return fmt.Errorf("getrandom: %w", err)
			}
			b = b[max(n, 0):]
		}
	}
	return nil
}

// run is the whole life of the job; it returns gompirun's exit status.
func (h *head) run() int {
	defer h.close()
	signals, stop := catch()
	defer stop()
	var timeout <-chan time.Time
	if h.o.timeout > 0 {
		timeout = time.After(h.o.timeout)
	}
	if err := h.launch(); err != nil {
		h.cannotStart(err)
	}
	for !h.over() {
		select {
		case <-h.ready:
			for _, fn := range h.take() {
				fn()
			}
		case s := <-signals:
			h.signal(s)
		case <-timeout:
			h.timedOut()
		case <-h.grace:
			h.kill()
		case <-h.giveUp:
			for _, p := range h.procs.list {
				if p.pid != 0 && !p.exited {
					say("%s (pid %d) does not end after SIGKILL; giving up", p.name(), p.pid)
				}
			}
			return h.status
		}
	}
	if h.ft && h.left {
		return 0
	}
	return h.status
}

// over reports whether the last process has ended and its output is out. It
// sees to the latter.
func (h *head) over() bool {
	if h.procs.live > 0 {
		return false
	}
	if !h.drained {
		h.drained = true
		h.agent.drain()
	}
	return h.out || h.impatient
}

// close leaves nothing behind.
func (h *head) close() {
	close(h.ended)
	h.agent.close()
	h.server.Close()
}
