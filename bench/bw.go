// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

// window is the number of messages under way at once.
const window = 64

func prepareBw(world *mpi.Comm, _ *Options, bytes int) loop {
	s := newStream(world, bytes, 0)
	if world.Rank() == 0 {
		return loop{ops: window, run: timed(func(n int) error { return s.send(n, 1) })}
	}
	return loop{ops: window, run: timed(func(n int) error { return s.recv(n, 0) })}
}

// stream is one goroutine's end of a flow of windows.
type stream struct {
	world *mpi.Comm
	buf   []byte
	ack   []byte
	reqs  []mpi.Request
	tag   int // of data; the answer has tag+1
}

func newStream(world *mpi.Comm, bytes, index int) *stream {
	return &stream{world, make([]byte, bytes), make([]byte, 4), make([]mpi.Request, window), tagData + 2*index}
}

// send sends n windows and waits for the answer to each.
func (s *stream) send(n, to int) error {
	for range n {
		for i := range s.reqs {
			s.reqs[i] = mpi.Isend(s.world, s.buf, to, s.tag)
		}
		if err := mpi.Waitall(s.reqs); err != nil {
			return err
		}
		if _, err := mpi.Recv(s.world, s.ack, to, s.tag+1); err != nil {
			return err
		}
	}
	return nil
}

// recv receives n windows; all messages of one land in the same buffer.
func (s *stream) recv(n, from int) error {
	for range n {
		for i := range s.reqs {
			s.reqs[i] = mpi.Irecv(s.world, s.buf, from, s.tag)
		}
		if err := mpi.Waitall(s.reqs); err != nil {
			return err
		}
		if err := mpi.Send(s.world, s.ack, from, s.tag+1); err != nil {
			return err
		}
	}
	return nil
}
