// SPDX-License-Identifier: Apache-2.0

package agent

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
// for these. Those that begin evenly spread mostly stay so.
const (
	// letGoAfter is when they are let go: most programs have called Init by then,
	// and started their threads.
	letGoAfter = 50 * time.Millisecond
	// letGoEach is added for each process.
	letGoEach = 2 * time.Millisecond
)

// letGoLater sees to the processes of a job that were started spread.
func (a *Agent) letGoLater(cs []*child) {
	all := a.topo.All.Mask()
	time.AfterFunc(letGoAfter+time.Duration(len(cs))*letGoEach, func() {
		a.post(func() {
			for _, c := range cs {
				if !c.exited && c.cpus != nil {
					letGo(c.pid, c.cpus.Mask(), all)
				}
			}
		})
	})
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
