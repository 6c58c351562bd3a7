// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setOwnSlack gives the threads of this process the slack of children. Only with
// CAP_SYS_NICE may a thread set that of others; without it all keep exact timers.
func setOwnSlack() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		fd, err := unix.Open("/proc/"+t.Name()+"/timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // the thread has ended, or this kernel has no such file
		}
		_, err = unix.Write(fd, strconv.AppendInt(nil, int64(childSlack), 10))
		unix.Close(fd)
		if err == unix.EPERM {
			return
		}
	}
}
