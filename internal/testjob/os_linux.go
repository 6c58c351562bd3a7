// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/transport"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// openOS opens a transport between processes.
func openOS(name string, env transport.Env) (t transport.Transport, addrs []string, err error) {
	switch name {
	case "shm":
		t, err = shm.Open(env)
	case "tcp":
		var tt *tcp.Transport
		if tt, err = tcp.Open(env, tcp.Options{}); err == nil {
			t, addrs = tt, tt.Addrs()
		}
	default:
		err = fmt.Errorf("testjob: no transport %q", name)
	}
	return t, addrs, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
