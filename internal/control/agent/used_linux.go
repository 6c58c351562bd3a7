// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
)

// usedBy asks the kernel what a process has used; nothing of one that has ended. Its
// clock counts nanoseconds, where /proc/PID/stat has hundredths of a second.
func usedBy(pid int) (u protocol.Used) {
	var now, cpu unix.Timespec
	const ofProcess = 2 // CPUCLOCK_SCHED, of all its threads: clock_getcpuclockid(3)
	if unix.ClockGettime(int32(^pid<<3|ofProcess), &cpu) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return protocol.Used{}
	}
	u.At, u.CPU = time.Duration(now.Nano()), time.Duration(cpu.Nano())
	// Pages: all, those in memory, ...
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		if f := bytes.Fields(text); len(f) > 1 {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			u.Memory = n * int64(os.Getpagesize())
		}
	}
	return u
}
