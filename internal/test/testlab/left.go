// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Left is what this process holds that a job must give back.
type Left struct {
	Goroutines int
	FDs        map[string]int // by what they are: "socket", "/memfd:...", ...
	Children   int
	Maps       int    // shared mappings of memfds
	HeapBytes  uint64 // live after a collection
}

// Take looks at the process now.
func Take() Left {
	// The descriptors of Go's own network poller come with the first file that
	// it watches, and stay.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	l := Left{Goroutines: runtime.NumGoroutine(), FDs: map[string]int{}}
	ents, _ := os.ReadDir("/proc/self/fd")
	for _, e := range ents {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the descriptor of the listing itself
		}
		kind, _, _ := strings.Cut(to, "[")
		l.FDs[strings.TrimSuffix(kind, ":")]++
	}
	l.Children = children("self")
	if b, err := os.ReadFile("/proc/self/maps"); err == nil {
		l.Maps = strings.Count(string(b), "/memfd:")
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	l.HeapBytes = m.HeapAlloc
	return l
}

// Files is how many descriptors there are.
func (l Left) Files() (n int) {
	for _, k := range l.FDs {
		n += k
	}
	return n
}

// StatusOf is a number that /proc says of a process: "VmRSS" in KiB, "Threads"; 0 if there is
// no such process.
func StatusOf(pid int, field string) (n int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if at, ok := strings.CutPrefix(line, field+":"); ok {
			fmt.Sscan(at, &n)
		}
	}
	return n
}

func children(pid string) int {
	n := 0
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	for _, f := range tasks {
		if b, err := os.ReadFile(f); err == nil {
			n += len(strings.Fields(string(b)))
		}
	}
	return n
}

// more says what l has beyond before, "" if nothing. slack is how many bytes
// of heap do not count.
func (l Left) more(before Left, slack uint64) string {
	var out []string
	if l.Goroutines > before.Goroutines {
		out = append(out, fmt.Sprintf("%d goroutines (before: %d)", l.Goroutines, before.Goroutines))
	}
	for _, k := range slices.Sorted(maps.Keys(l.FDs)) {
		if n := l.FDs[k]; n > before.FDs[k] {
			out = append(out, fmt.Sprintf("%d file descriptors %s (before: %d)", n, k, before.FDs[k]))
		}
	}
	if l.Children > before.Children {
		out = append(out, fmt.Sprintf("%d child processes (before: %d)", l.Children, before.Children))
	}
	if l.Maps > before.Maps {
		out = append(out, fmt.Sprintf("%d mappings of memfds (before: %d)", l.Maps, before.Maps))
	}
	if l.HeapBytes > before.HeapBytes+slack {
		out = append(out, fmt.Sprintf("%d KiB of heap (before: %d)", l.HeapBytes>>10, before.HeapBytes>>10))
	}
	return strings.Join(out, ", ")
}

// settle is how long Nothing waits for what is ending.
const settle = 10 * time.Second

// Nothing fails the test if the process holds more than before, after a while
// for goroutines and processes that are just ending. slack is how many bytes
// of heap do not count: caches that are bounded.
func Nothing(tb testing.TB, before Left, slack uint64) {
	tb.Helper()
	end := time.Now().Add(settle)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		more := Take().more(before, slack)
		if more == "" {
			return
		}
		if time.Now().After(end) {
			buf := make([]byte, 64<<10)
			tb.Errorf("left behind: %s\n%s", more, buf[:runtime.Stack(buf, true)])
			return
		}
		<-tick.C
	}
}

// Gone waits until gompirun, the parent of this process, has no processes but its guardian
// and ranks others: it keeps the pids of those that have ended until the last process that
// has known them has let go of them and their memory.
func Gone(ranks int) error {
	const guardian = 1
	end := time.Now().Add(settle)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for pid := strconv.Itoa(os.Getppid()); ; <-tick.C {
		n := children(pid) - guardian
		if n <= ranks {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("gompirun still has %d processes after %v, and %d ranks are left", n, settle, ranks)
		}
	}
}

// userHz is the unit of times in /proc/PID/stat on every Linux.
const userHz = 100

// CPU is the processor time that a process has used, its reaped children not
// counted. The resolution is 10 ms.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces; utime and stime are fields 14
	// and 15.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(f))
	}
	ticks := 0
	for _, s := range f[11:13] {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}
