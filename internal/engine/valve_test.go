// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"

	"gompi/transport"
)

// valve is a transport that holds a transfer: after a number of received messages it
// passes no events until it is opened. Without it the service goroutine takes a transfer
// to its end whenever the test is slow. It has no optional capabilities.
type valve struct {
	transport.Transport
	wake func()
	left atomic.Int64 // messages that pass; below 0: all
}

// throughValve makes c's first transport a valve that passes n messages.
func throughValve(c *Config, n int64) *valve {
	v := &valve{Transport: c.Transports[0], wake: c.Sleeper.Wake}
	v.left.Store(n)
	c.Transports = []transport.Transport{v}
	return v
}

// Poll implements transport.Transport: one event at a time while messages are counted.
func (v *valve) Poll(ev []transport.Event) int {
	switch left := v.left.Load(); {
	case left < 0:
		return v.Transport.Poll(ev)
	case left == 0 || len(ev) == 0:
		return 0
	}
	n := v.Transport.Poll(ev[:1])
	if n == 1 && ev[0].Kind == transport.EvRecv {
		v.left.Add(-1)
	}
	return n
}

// open lets everything pass from now on.
func (v *valve) open() {
	v.left.Store(-1)
	v.wake()
}
