// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// slacken lets timers of this process be as late as those of children, of its monitor and
// of threads that are still to come. A thread may say so of others than itself with
// CAP_SYS_NICE only; without, all stay exact.
func slacken() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		fd, err := unix.Open("/proc/"+t.Name()+"/timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended, or this kernel has none
		}
		_, err = unix.Write(fd, strconv.AppendInt(nil, int64(childSlack), 10))
		unix.Close(fd)
		if err == unix.EPERM {
			return
		}
	}
}
