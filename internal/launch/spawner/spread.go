// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Ranks that share cores begin on one each, in turn, and are let go soon. Where
// processes spin and yield, no processor is ever idle, and the kernel takes
// 0.2 s and more to see that five of eight run on one of two cores; all wait
// for these. Those that begin evenly spread mostly stay so. A Go program that has one
// processor starts with fewer threads, which is a sixth of what its start takes.
const (
	// letGoAfter is when they are let go: most programs have called Init by then,
	// and started their threads.
	letGoAfter = 50 * time.Millisecond
	// letGoEach is added for each process.
	letGoEach = 2 * time.Millisecond
	// letGoRun is what a program may need to get to its first statement.
	letGoRun = 10 * time.Millisecond
)

// letGoIn lets processes go after some time, but those that have not begun by then:
// where processors are busy, that time may pass before a process has run at all. Each is
// a walk over threads, and others have their turns between.
func (a *Agent) letGoIn(d time.Duration, cs []*child) {
	var late []*child
	var next func(i int)
	next = func(i int) {
		for ; i < len(cs); i++ {
			switch c := cs[i]; {
			case c.exited || c.cpus == nil || !c.spread:
			case !a.plane.Joined(c.Proc) && !begun(c.pid):
				late = append(late, c)
			default:
				a.move(c, nil)
				a.post(func() { next(i + 1) })
				return
			}
		}
		if len(late) > 0 {
			a.letGoIn(letGoAfter, late)
		}
	}
	time.AfterFunc(d, func() { a.post(func() { next(0) }) })
}

// begun tells of a process that does not join whether it has run for letGoRun, or waits
// for something else than a processor and its own pages.
func begun(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, _ := os.ReadDir(dir)
	var ran time.Duration
	busy := false
	for _, t := range tasks {
		// Time on a processor in nanoseconds, and other things.
		text, _ := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		ns, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			return true // the kernel does not count, or the thread has ended
		}
		ran += time.Duration(n)
		stat, _ := os.ReadFile(dir + "/" + t.Name() + "/stat")
		if at := strings.LastIndex(string(stat), ") "); at >= 0 && at+2 < len(stat) {
			busy = busy || stat[at+2] == 'R' || stat[at+2] == 'D'
		}
	}
	return !busy || ran >= letGoRun
}

// letGo lets all threads of a process and of its descendants run on the CPUs
// of to, but those that have been bound anew: they do not run on from.
func letGo(pid int, from, to *unix.CPUSet) {
	done := map[string]bool{}
	for more := true; more; { // a thread may have started another one meanwhile
		more = false
		dir := fmt.Sprintf("/proc/%d/task", pid)
		tasks, _ := os.ReadDir(dir) // none: it has ended
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[t.Name()] {
				continue
			}
			done[t.Name()], more = true, true
			var at unix.CPUSet
			if unix.SchedGetaffinity(tid, &at) == nil && at == *from {
				_ = unix.SchedSetaffinity(tid, to) // or it has ended
			}
			children, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
			for c := range strings.FieldsSeq(string(children)) {
				if child, err := strconv.Atoi(c); err == nil {
					letGo(child, from, to)
				}
			}
		}
	}
}
