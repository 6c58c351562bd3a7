// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// childInfo is siginfo_t as waitid fills it in (64-bit Linux).
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [100]byte
}

// Values of childInfo.code.
const (
	cldKilled = 2
	cldDumped = 3
)

// exitOf returns how a child ended, without reaping it; done is false while it runs. It
// uses unsafe because package unix does not export the union inside siginfo_t; childInfo
// has the same size.
func exitOf(pid int) (e launch.Ending, done bool, err error) {
	var info childInfo
	_ = [1]struct{}{}[unsafe.Sizeof(info)-unsafe.Sizeof(unix.Siginfo{})]
	for {
		err = unix.Waitid(unix.P_PID, pid, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return e, false, fmt.Errorf("waitid %d: %w", pid, err)
	}
	if info.pid == 0 {
		return e, false, nil
	}
	if info.code == cldKilled || info.code == cldDumped {
		return launch.Ending{Signal: unix.Signal(info.status), Core: info.code == cldDumped}, true, nil
	}
	return launch.Ending{Code: int(info.status)}, true, nil
}

// reap waits for a child that has exited or is about to, and frees its pid.
func reap(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED, nil) == unix.EINTR {
	}
}
