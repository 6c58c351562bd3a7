// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"io"
	"net"
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
		got, err := d.receive(d.buf[d.w:])
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
	if f.fds == 0 || !passes {
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
