// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"gompi/internal/base/fault"
	"gompi/transport"
)

// checked is a transport that finds in its second check that a peer is broken.
type checked struct {
	transport.Transport
	checks int
}

func (c *checked) Check() {
	if c.checks++; c.checks == 2 {
		c.Cut(0, transport.ErrProtocol)
	}
}

// TestCheckEndsWaits: what a check of a transport finds ends waits, also of a
// process that sleeps, and checks end with the engine.
func TestCheckEndsWaits(t *testing.T) {
	var c *checked
	ns, _ := testJobOf(t, 2, nil, func(i int, cfg *Config) {
		if i == 0 {
			c = &checked{Transport: cfg.Transports[0]}
			cfg.Transports[0] = c
		}
	})
	if f := ns[1].send(0, 0, make([]byte, 8)); f != nil {
		t.Fatal(f)
	}
	if _, f := ns[0].recv(1, 0, make([]byte, 8)); f != nil {
		t.Fatal(f)
	}
	ended := make(chan *fault.Fault)
	go func() {
		_, f := ns[0].recv(1, 1, make([]byte, 8))
		ended <- f
	}()
	ns[0].asleep(t)
	ns[0].checkLinks()
	select {
	case f := <-ended:
		t.Fatalf("the wait ends without reason: %v", f)
	default:
	}
	ns[0].checkLinks()
	if f := <-ended; f == nil {
		t.Error("the wait for a broken peer ends well")
	}
}
