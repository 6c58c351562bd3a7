// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
)

// What Linux adds to a socket: descriptors that travel with frames, and who is
// at the other end.

// errManyRights: too many descriptors of this user are on their way.
const errManyRights = unix.ETOOMANYREFS

// close ends the files; those that there are not are -1.
func (f *Files) close() {
	for _, fd := range [...]int{f.segment, f.bell} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// writeWith writes data, or a part, with the descriptors of files, if not nil.
func writeWith(conn *net.UnixConn, data []byte, files *Files) (int, error) {
	var oob []byte
	if files != nil {
		second := files.bell
		if second < 0 {
			second = files.segment
		}
		fds := [...]int{files.segment, second, -1}
		n := 2
		if files.arena != nil {
			fds[2], n = files.arena.segment, 3
		}
		oob = unix.UnixRights(fds[:n]...)
	}
	n, _, err := conn.WriteMsgUnix(data, oob, nil)
	return n, err
}

// credentials returns who made the connection, as the kernel knows it.
func credentials(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var credErr error
	err = raw.Control(func(fd uintptr) { uid, pid, credErr = protocol.PeerOf(int(fd)) })
	return uid, pid, errors.Join(err, credErr)
}
