// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strings"

	"gompi/internal/control/protocol"
	"gompi/transport"
)

// opener opens a transport. addrs is where peers reach it that know nothing but
// the control plane.
type opener func(env transport.Env) (t transport.Transport, addrs []string, err error)

// defaultTransports is the order of preference.
const defaultTransports = "shm,tcp"

// openTransports opens those of a place and announces this process.
func (b *Boot) openTransports(at Place) error {
	w := b.Welcome
	b.otherJobs = new(otherJobs)
	env := transport.Env{Self: w.Self, Secret: w.Secret, ForeignSecret: b.otherJobs.secret, Wake: b.Sleeper.Wake, Setting: b.Setting, Segment: w.Segment, Bell: w.Bell, Arena: w.Arena}
	if w.Arena.Total != 0 {
		defer protocol.CloseFiles(w.Arena.File)
	}
	list := at.Transports
	if list == "" {
		list = defaultTransports
	}
	var addrs []string
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		// On one host everybody is reached by shared memory: a listener that
		// nobody dials would only cost start-up time.
		if name == "tcp" && at.Transports == "" && w.Hosts <= 1 && len(b.Transports) > 0 {
			continue
		}
		t, reached, err := at.openOne(name, env, b)
		if err != nil {
			return fmt.Errorf("transport %q: %w", name, err)
		}
		b.Transports = append(b.Transports, t)
		addrs = append(addrs, reached...)
	}
	b.otherJobs.mayOpen(b, &at, env, addrs)
	// Peers wait for this before they make contact, also if there is no
	// address.
	return b.Control.Announce(addrs)
}

func (at *Place) openOne(name string, env transport.Env, b *Boot) (transport.Transport, []string, error) {
	t, addrs, err := at.opener(name)(env)
	if err == nil && at.Wrap != nil {
		t, err = at.Wrap(t, env.Self, b.Sleeper.Wake)
	}
	return t, addrs, err
}

func (at *Place) opener(name string) opener {
	if name == "inproc" && at.Hub != nil {
		return func(env transport.Env) (transport.Transport, []string, error) {
			t, err := at.Hub.Open(env)
			return t, nil, err
		}
	}
	if open, ok := openers[name]; ok {
		return open
	}
	return func(transport.Env) (transport.Transport, []string, error) {
		return nil, nil, fmt.Errorf("unknown%s", known)
	}
}
