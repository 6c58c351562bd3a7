// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// ListenAddresses returns the addresses of all agents that listen on this host, of every user and
// in no particular order.
func ListenAddresses() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseSockets(f)
}

// ParseSockets returns the addresses of agents in the kernel's table of Unix sockets, whose columns
// are address, references, protocol, flags, type, state, inode and path.
func ParseSockets(r io.Reader) ([]string, error) {
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
