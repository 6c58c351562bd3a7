// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import (
	"os"
	"strconv"
	"strings"
)

// processorsIdle reports whether at most as many threads want to run on this machine as it
// has processors, not counting the caller. It returns false if that cannot be read.
func processorsIdle() bool {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return false
	}
	n, ok := running(string(load))
	return ok && n-1 <= processors(strings.TrimSpace(string(online)))
}

// running returns the number of threads that run or want to run, from the text of
// /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
func running(load string) (int, bool) {
	f := strings.Fields(load)
	if len(f) < 4 {
		return 0, false
	}
	first, _, _ := strings.Cut(f[3], "/")
	n, err := strconv.Atoi(first)
	return n, err == nil
}

// processors counts the CPUs of a list such as "0-3,8".
func processors(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || b < a {
			return 0
		}
		n += b - a + 1
	}
	return n
}
