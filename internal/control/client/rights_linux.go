// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
)

// What Linux adds to a socket: descriptors that travel with frames.

// passes tells that a segment and a bell come with what promises them.
const passes = true

// oobBytes is room for descriptors. The kernel returns at most one message of
// them from one call, those of the last frame that the call reads of.
func oobBytes() int { return unix.CmsgSpace(8 * 4) }

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
		if len(fds) != control.FrameFDs || lost {
			closeFDs(fds)
			lost = true
			continue
		}
		d.fds = append(d.fds, [control.FrameFDs]int(fds))
	}
	if lost {
		d.fds = append(d.fds, [control.FrameFDs]int{-1, -1})
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
