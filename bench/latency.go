// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

func prepareLatency(world *mpi.Comm, _ *Options, bytes int) loop {
	return pingPong(world, make([]byte, bytes), make([]byte, bytes))
}

// prepareEcho prepares a ping-pong that sends out of the buffer of the last message: it is
// in the cache of the sending processor alone.
func prepareEcho(world *mpi.Comm, _ *Options, bytes int) loop {
	buf := make([]byte, bytes)
	return pingPong(world, buf, buf)
}

// pingPong sends out and waits for the answer, n times.
func pingPong(world *mpi.Comm, out, in []byte) loop {
	peer := 1 - world.Rank()
	ping := func(n int) error {
		for range n {
			if err := mpi.Send(world, out, peer, tagData); err != nil {
				return err
			}
			if _, err := mpi.Recv(world, in, peer, tagData); err != nil {
				return err
			}
		}
		return nil
	}
	pong := func(n int) error {
		for range n {
			if _, err := mpi.Recv(world, in, peer, tagData); err != nil {
				return err
			}
			if err := mpi.Send(world, out, peer, tagData); err != nil {
				return err
			}
		}
		return nil
	}
	body := ping
	if world.Rank() == 1 {
		body = pong
	}
	return loop{ops: 2, run: timed(body)}
}
