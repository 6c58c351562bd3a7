// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dirty

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// isPrivate reports whether addresses [start, end) are all memory of this process alone:
// mapped privately, of no file.
func isPrivate(start, end uintptr) (bool, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return false, err
	}
	defer f.Close()
	return covers(f, start, end)
}

// covers is isPrivate by the lines of a file of maps, which are in order.
func covers(maps io.Reader, start, end uintptr) (bool, error) {
	at := start
	lines := bufio.NewScanner(maps)
	for at < end && lines.Scan() {
		fields := strings.Fields(lines.Text()) // from-to, permissions, offset, device, inode, name
		if len(fields) < 5 || len(fields[1]) < 4 {
			return false, fmt.Errorf("a line of maps: %q", lines.Text())
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, err := strconv.ParseUint(low, 16, 64)
		if err != nil {
			return false, err
		}
		to, err := strconv.ParseUint(high, 16, 64)
		switch {
		case err != nil:
			return false, err
		case uintptr(to) <= at:
			continue
		case uintptr(from) > at || fields[1][3] != 'p' || fields[4] != "0":
			return false, nil
		}
		at = uintptr(to)
	}
	return at >= end, lines.Err()
}
