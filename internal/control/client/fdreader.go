// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"io"

	"gompi/internal/control/protocol"
)

// fdReader reads frames and the descriptors that come with them. One goroutine owns it.
type fdReader struct {
	conn *socket
	buf  []byte // buf[r:w] is read but not yet used
	r, w int
	oob  []byte
	// fds are the descriptors of frames that next has not returned, in order. Each frame with
	// descriptors has an element, also if its descriptors were lost.
	fds [][protocol.MostFDs]int
}

func newFDReader(conn *socket) *fdReader {
	return &fdReader{conn: conn, buf: make([]byte, 8<<10), oob: make([]byte, oobBytes())}
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
		got, oobn, flags, err := d.conn.receive(d.buf[d.w:], d.oob)
		if err == nil {
			err = d.claim(d.oob[:oobn], flags)
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

// next returns the next frame. The body is valid until the following call. The caller owns the
// descriptors, which are -1 if the frame has none or they were lost.
func (d *fdReader) next() (protocol.Frame, [protocol.MostFDs]int, error) {
	none := [protocol.MostFDs]int{-1, -1, -1}
	if d.w-d.r < protocol.FrameHead {
		if err := d.fill(protocol.FrameHead); err != nil {
			return protocol.Frame{}, none, err
		}
	}
	f, n, err := protocol.ParseHead(d.buf[d.r:])
	if err != nil {
		return protocol.Frame{}, none, err
	}
	if d.w-d.r < protocol.FrameHead+n {
		if err := d.fill(protocol.FrameHead + n); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return protocol.Frame{}, none, err
		}
	}
	f.Body = d.buf[d.r+protocol.FrameHead:][:n]
	d.r += protocol.FrameHead + n
	if f.FDs == 0 || !passes {
		return f, none, nil
	}
	if len(d.fds) == 0 {
		return protocol.Frame{}, none, fmt.Errorf("%v frame comes without its descriptors", f.Kind)
	}
	fds := d.fds[0]
	d.fds = d.fds[1:]
	if f.FDs < protocol.MostFDs && fds[protocol.FrameFDs] >= 0 {
		protocol.CloseFiles(fds[protocol.FrameFDs])
		fds[protocol.FrameFDs] = -1
	}
	return f, fds, nil
}

// close closes the descriptors that next has not returned.
func (d *fdReader) close() {
	for _, fds := range d.fds {
		protocol.CloseFiles(fds[:]...)
	}
	d.fds = nil
}
