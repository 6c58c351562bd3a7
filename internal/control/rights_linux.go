// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
)

// What Linux adds to a socket: descriptors that travel with frames, and who is
// at the other end.

// passes tells that a segment and a bell come with what promises them.
const passes = true

// errManyRights: too many descriptors of this user are on their way.
const errManyRights = unix.ETOOMANYREFS

// oobBytes is room for descriptors. The kernel returns at most one message of
// them from one call, those of the last frame that the call reads of.
func oobBytes() int { return unix.CmsgSpace(8 * 4) }

// Address is the abstract socket of a job's agent; "@" stands for the leading
// zero byte, as in package net.
func Address(job wire.JobID) string { return fmt.Sprintf("@gompi-%016x", uint64(job)) }

// receive reads what is there, and claims the descriptors that come with it.
func (d *fdReader) receive(b []byte) (int, error) {
	got, oobn, flags, _, err := d.conn.ReadMsgUnix(b, d.oob)
	if oobn > 0 || flags&unix.MSG_CTRUNC != 0 {
		if err := d.claim(d.oob[:oobn], flags); err != nil {
			return got, err
		}
	}
	return got, err
}

// claim notes received descriptors. If there are not as many as every frame
// has, because this process may open no more, the frame gets none: -1, -1. The
// kernel then says MSG_CTRUNC, and nothing else if there was no room for even
// one.
func (d *fdReader) claim(oob []byte, flags int) error {
	lost := flags&unix.MSG_CTRUNC != 0
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	for i := range msgs {
		if msgs[i].Header.Level != unix.SOL_SOCKET || msgs[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return fmt.Errorf("control message: %w", err)
		}
		if len(fds) != frameFDs || lost {
			closeFDs(fds)
			lost = true
			continue
		}
		d.fds = append(d.fds, [frameFDs]int(fds))
	}
	if lost {
		d.fds = append(d.fds, [frameFDs]int{-1, -1})
	}
	return nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// writeWith writes data, or a part, with the descriptors of files, if not nil.
func writeWith(conn *net.UnixConn, data []byte, files *files) (int, error) {
	var oob []byte
	if files != nil {
		second := files.bell
		if second < 0 {
			second = files.segment
		}
		oob = unix.UnixRights(files.segment, second)
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
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}
