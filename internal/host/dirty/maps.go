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

// isPrivate reports whether all addresses [start, end) are memory of this process alone:
// private mappings without a file.
func isPrivate(start, end uintptr) (bool, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return false, err
	}
	defer f.Close()
	return covers(f, start, end)
}

// covers is isPrivate for the text of a maps file, whose lines are in ascending order.
func covers(maps io.Reader, start, end uintptr) (bool, error) {
	at := start
	lines := bufio.NewScanner(maps)
	for at < end && lines.Scan() {
		fields := strings.Fields(lines.Text()) // from-to, permissions, offset, device, inode, name
		if len(fields) < 5 || len(fields[1]) < 4 {
			return false, fmt.Errorf("malformed line of maps: %q", lines.Text())
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
