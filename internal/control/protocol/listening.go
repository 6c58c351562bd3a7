// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// Listening are the addresses of all of gompi's sockets that listen on this host, of
// every user and in no particular order.
func Listening() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseListening(f)
}

// ParseListening reads the kernel's table of Unix sockets: address, references,
// protocol, flags, type, state, inode, path.
func ParseListening(r io.Reader) ([]string, error) {
	const accepting = 0x10000 // flag of a socket that listens
	var list []string
	in := bufio.NewScanner(r)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 8 || !strings.HasPrefix(f[7], addressPrefix()) {
			continue
		}
		if flags, err := strconv.ParseUint(f[3], 16, 64); err == nil && flags&accepting != 0 {
			list = append(list, f[7])
		}
	}
	return list, in.Err()
}
