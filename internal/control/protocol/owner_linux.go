// SPDX-License-Identifier: Apache-2.0

package protocol

import "golang.org/x/sys/unix"

// PeerOf returns the user and the process at the other end of a Unix socket, as the kernel knows
// them: the one that has connected, or that listens.
func PeerOf(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}
