// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// fdReader reads frames and the descriptors that come with them. Its owner is
// one goroutine.
type fdReader struct {
	conn *net.UnixConn
	buf  []byte // buf[r:w] is read but not yet used
	r, w int
	oob  []byte
	// fds are the descriptors of frames that have not been returned, in order:
	// each frame that has some has its place here, also if they were lost.
	fds [][frameFDs]int
}

func newFDReader(conn *net.UnixConn) *fdReader {
	// The kernel returns at most one message of descriptors from one call,
	// those of the last frame that the call reads of.
	return &fdReader{conn: conn, buf: make([]byte, 8<<10), oob: make([]byte, unix.CmsgSpace(8*4))}
}

// fill reads until n bytes are in the buffer.
func (d *fdReader) fill(n int) error {
	if d.r > 0 {
		d.w = copy(d.buf, d.buf[d.r:d.w])
		d.r = 0
	}
	if n > len(d.buf) {
		grown := make([]byte, n)
		copy(grown, d.buf[:d.w])
		d.buf = grown
	}
	for d.w < n {
		got, oobn, flags, _, err := d.conn.ReadMsgUnix(d.buf[d.w:], d.oob)
		if oobn > 0 || flags&unix.MSG_CTRUNC != 0 {
			if err := d.claim(d.oob[:oobn], flags); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if got == 0 {
			if d.w > 0 {
				return io.ErrUnexpectedEOF
			}
			return io.EOF
		}
		d.w += got
	}
	return nil
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

// next returns the next frame. The body is valid until the following call;
// the caller owns the descriptors, which are -1 if the frame has none or they
// were lost.
func (d *fdReader) next() (frame, [frameFDs]int, error) {
	none := [frameFDs]int{-1, -1}
	if d.w-d.r < frameHead {
		if err := d.fill(frameHead); err != nil {
			return frame{}, none, err
		}
	}
	f, n, err := parseHead(d.buf[d.r:])
	if err != nil {
		return frame{}, none, err
	}
	if d.w-d.r < frameHead+n {
		if err := d.fill(frameHead + n); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, none, err
		}
	}
	f.body = d.buf[d.r+frameHead:][:n]
	d.r += frameHead + n
	if f.fds == 0 {
		return f, none, nil
	}
	if len(d.fds) == 0 {
		return frame{}, none, fmt.Errorf("frame of kind %d comes without its descriptors", f.kind)
	}
	pair := d.fds[0]
	d.fds = d.fds[1:]
	return f, pair, nil
}

// close closes the descriptors that nobody has claimed.
func (d *fdReader) close() {
	for _, pair := range d.fds {
		closeFDs(pair[:])
	}
	d.fds = nil
}
