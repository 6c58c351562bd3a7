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

// Ranks that share cores start bound to one core each, in turn, and are released soon. If
// processes spin and yield, no processor is ever idle, and the kernel takes 0.2 s and more
// to see that five of eight run on one of two cores; all others wait for these. Ranks that
// begin evenly spread mostly stay so. A Go program that has one processor also starts with
// fewer threads, which saves a sixth of its start time.
const (
	// releaseDelay is when they are released: most programs have called Init by then, and
	// have started their threads.
	releaseDelay = 50 * time.Millisecond
	// releasePerProc is added for each process.
	releasePerProc = 2 * time.Millisecond
	// minRunTime is how long a program may need to get to its first statement.
	minRunTime = 10 * time.Millisecond
)

// releaseAfter releases processes after d, and those that have not run by then later: on
// busy processors d may pass before a process has run at all. It handles one process at a
// time, with other work between, as each release walks over threads.
func (sp *Spawner) releaseAfter(d time.Duration, cs []*child) {
	var late []*child
	var next func(i int)
	next = func(i int) {
		for ; i < len(cs); i++ {
			switch c := cs[i]; {
			case c.exited || c.cpus == nil || !c.spread:
			case !sp.control.Joined(c.Proc) && !hasRun(c.pid):
				late = append(late, c)
			default:
				sp.move(c, nil)
				sp.post(func() { next(i + 1) })
				return
			}
		}
		if len(late) > 0 {
			sp.releaseAfter(releaseDelay, late)
		}
	}
	time.AfterFunc(d, func() { sp.post(func() { next(0) }) })
}

// hasRun reports whether a process that has not joined has run for minRunTime, or waits
// for something other than a processor and its own pages.
func hasRun(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, _ := os.ReadDir(dir)
	var ran time.Duration
	busy := false
	for _, t := range tasks {
		// The first field is the time on a processor in nanoseconds.
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
	return !busy || ran >= minRunTime
}

// release moves all threads of a process and of its descendants to the CPUs of to, except
// threads that were bound again: those do not run on from.
func release(pid int, from, to *unix.CPUSet) {
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
					release(child, from, to)
				}
			}
		}
	}
}
