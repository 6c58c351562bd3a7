// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// job is the job of every process of the suite.
const job wire.JobID = 0xfeedface12345678

// world is the set of processes of one test.
type world struct {
	t   *testing.T
	o   Options
	fab Fabric

	mu     sync.Mutex // guards fab.Contact, nodes and serial
	nodes  []*node
	serial uint32

	// each: every node is polled by its own goroutine (during run), not by
	// whoever waits.
	each  bool
	abort chan struct{} // closed when a goroutine of run has failed
}

func newWorld(t *testing.T, o Options, fab Fabric) *world {
	w := &world{t: t, o: o, fab: fab}
	t.Cleanup(w.closeAll)
	return w
}

// open starts count processes.
func (w *world) open(count int) []*node {
	w.t.Helper()
	first := len(w.nodes)
	for range count {
		w.mu.Lock()
		w.serial++
		proc := wire.ProcID{Job: job, Serial: w.serial}
		w.mu.Unlock()
		tr := w.fab.Open(w.t, proc)
		n := &node{
			w: w, proc: proc, tr: tr, caps: tr.Caps(), wakes: w.fab.Wakes(proc),
			ev:    make([]transport.Event, 16),
			peers: map[wire.ProcID]*peer{}, slots: map[transport.Slot]*peer{}, ops: map[transport.Token]*op{},
		}
		if tr.FD() < 0 && n.wakes == nil {
			w.t.Fatalf("%v has neither a file descriptor nor a wake channel", n)
		}
		w.mu.Lock()
		w.nodes = append(w.nodes, n)
		w.mu.Unlock()
	}
	return w.nodes[first:]
}

func (w *world) contact(of, reader wire.ProcID) wire.Contact {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fab.Contact(of, reader)
}

func (w *world) byProc(p wire.ProcID) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.proc == p {
			return n
		}
	}
	return nil
}

// must fails the test on err.
func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

// wait polls everybody until cond holds.
func (w *world) wait(what string, cond func() bool) {
	w.t.Helper()
	w.must((&node{w: w}).until(what, cond))
}

// connect returns a's peer b.
func (w *world) connect(a, b *node) *peer {
	w.t.Helper()
	p, err := a.peer(b)
	w.must(err)
	return p
}

// pair opens two processes that are connected both ways and idle.
func (w *world) pair() (a, b *node, ab, ba *peer) {
	w.t.Helper()
	ns := w.open(2)
	a, b = ns[0], ns[1]
	ab, ba = w.meet(a, b)
	return
}

// meet connects two nodes and exchanges a message each way.
func (w *world) meet(a, b *node) (ab, ba *peer) {
	w.t.Helper()
	ab, ba = w.connect(a, b), w.connect(b, a)
	a0, b0 := ab.got, ba.got
	w.must(a.send(ab, 1))
	w.must(b.send(ba, 1))
	w.wait("the first messages", func() bool { return ab.got > a0 && ba.got > b0 })
	return ab, ba
}

var (
	errAborted = errors.New("another process of the test has failed")
	// errDied is what a process in run returns to be polled no more.
	errDied = errors.New("this process has died")
)

// until waits for cond: in run by polling this node, else all nodes (and n
// does not matter).
func (n *node) until(what string, cond func() bool) error {
	start := time.Now()
	for turn := 1; !cond(); turn++ {
		k, err := n.turn()
		if err != nil {
			return err
		}
		if k == 0 {
			runtime.Gosched()
		}
		if turn%64 == 0 && time.Since(start) > n.w.o.Deadline {
			return n.w.late(what, n)
		}
	}
	return nil
}

// turn makes one turn of progress and returns the number of events.
func (n *node) turn() (int, error) {
	if !n.w.each {
		return n.w.pollAll()
	}
	select {
	case <-n.w.abort:
		return 0, errAborted
	default:
	}
	k, err := n.poll()
	if k == 0 && err == nil && n.sleepy {
		err = n.sleep()
	}
	return k, err
}

func (w *world) pollAll() (int, error) {
	total := 0
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		k, err := n.poll()
		if err != nil {
			return 0, err
		}
		total += k
	}
	return total, nil
}

// late is the error of a wait that took too long. Inside run only the waiting
// node may be looked at.
func (w *world) late(what string, self *node) error {
	var b strings.Builder
	fmt.Fprintf(&b, "after %v still waiting: %s\n", w.o.Deadline, what)
	if w.each {
		self.dump(&b)
	} else {
		for _, n := range w.nodes {
			n.dump(&b)
		}
	}
	return errors.New(b.String())
}

// run gives each node a goroutine of its own. A node whose f has returned is
// polled until all have, so that the others make progress.
func (w *world) run(nodes []*node, f func(n *node) error) {
	w.t.Helper()
	w.each, w.abort = true, make(chan struct{})
	var (
		wg   sync.WaitGroup
		once sync.Once
		left atomic.Int64
		errs = make([]error, len(nodes))
	)
	left.Store(int64(len(nodes)))
	for i, n := range nodes {
		wg.Go(func() {
			err := f(n)
			if err != nil && err != errDied {
				once.Do(func() { close(w.abort) })
			}
			// Its sleepers may need this node once more, so it stays
			// awake until the last has returned.
			n.sleepy = false
			for left.Add(-1); err == nil && left.Load() > 0; {
				var k int
				if k, err = n.turn(); k == 0 {
					runtime.Gosched()
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	w.each = false
	failed := false
	for _, err := range errs {
		if err != nil && err != errDied && !errors.Is(err, errAborted) {
			w.t.Error(err)
			failed = true
		}
	}
	if failed {
		w.t.FailNow()
	}
}

// kill ends a node without a word to its peers.
func (w *world) kill(n *node) {
	w.t.Helper()
	n.gone = true
	if k, ok := w.fab.(Killer); ok {
		k.Kill(w.t, n.proc)
		n.tr = nil
	}
}

// close ends a node in good order while the others are polled.
func (w *world) close(n *node) {
	w.t.Helper()
	n.gone = true
	done := make(chan error, 1)
	tr := n.tr
	n.tr = nil
	go func() { done <- tr.Close() }()
	var err error
	finished := false
	w.wait(fmt.Sprintf("Close of %v", n), func() bool {
		select {
		case err = <-done:
			finished = true
		default:
		}
		return finished
	})
	w.must(err)
}

// closeAll ends what is still open, all at once: an orderly end may need the
// other side.
func (w *world) closeAll() {
	var wg sync.WaitGroup
	for _, n := range w.nodes {
		if n.tr == nil {
			continue
		}
		wg.Go(func() {
			if err := n.tr.Close(); err != nil && !w.t.Failed() {
				w.t.Errorf("%v: Close: %v", n, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.o.Deadline):
		w.t.Errorf("Close of all processes takes longer than %v", w.o.Deadline)
	}
}
