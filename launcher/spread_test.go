// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/host/cpus"
)

// affinity is where a thread may run, nil if it has ended.
func affinity(tid int) cpus.Set {
	var set unix.CPUSet
	if unix.SchedGetaffinity(tid, &set) != nil {
		return nil
	}
	return cpus.FromMask(&set)
}

// roam is a rank that tells where it began, and ends when it and its child may
// run where gompirun may, and a thread that it has bound itself still not.
func roam() int {
	runtime.LockOSThread()
	began, all := affinity(0).String(), affinity(os.Getppid())
	elsewhere := all
	if began == fmt.Sprint(all[0]) {
		elsewhere = all[1:]
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	defer child.Process.Kill()
	bound := make(chan int)
	go func() {
		runtime.LockOSThread()
		_ = unix.SchedSetaffinity(0, elsewhere[:1].Mask())
		bound <- unix.Gettid()
		select {}
	}()
	tid := <-bound
	until := time.Now().Add(20 * time.Second)
	wide := []int{unix.Gettid()}
	if _, err := os.Stat("/proc/thread-self/children"); err == nil { // CONFIG_PROC_CHILDREN
		wide = append(wide, child.Process.Pid)
	}
	for _, pid := range wide {
		for affinity(pid).String() != all.String() {
			if time.Now().After(until) {
				fmt.Printf("began on %s, is on %s of %s\n", began, affinity(pid), all)
				return 1
			}
			runtime.Gosched()
		}
	}
	if got := affinity(tid).String(); got != elsewhere[:1].String() {
		fmt.Printf("a thread bound to %s is on %s\n", elsewhere[:1], got)
		return 1
	}
	fmt.Println("began on", began)
	return 0
}

// TestSpread: ranks that share cores begin on one each, and are let go.
func TestSpread(t *testing.T) {
	top := cpus.Read(os.DirFS("/"))
	cores := len(top.Cores)
	if cores < 2 {
		t.Skip("there is one core")
	}
	r := gompirun(t, "-np", strconv.Itoa(2*cores), "RANK", "roam")
	if r.status != 0 {
		t.Fatalf("status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	for _, core := range top.Cores {
		if n := strings.Count(r.stdout, fmt.Sprintf("began on %s\n", core)); n != 2 {
			t.Errorf("%d ranks began on %s:\n%s", n, core, r.stdout)
		}
	}
	r = gompirun(t, "--bind", "none", "-np", strconv.Itoa(cores+1), "grep", "Cpus_allowed_list", "/proc/self/status")
	if n := strings.Count(r.stdout, "\t"+top.All.String()+"\n"); n != cores+1 {
		t.Errorf("%d ranks are not bound:\n%s", n, r.stdout)
	}
}
