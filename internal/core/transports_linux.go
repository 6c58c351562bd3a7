// SPDX-License-Identifier: Apache-2.0

package core

import (
	"gompi/transport"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// openers are the transports between processes, by name.
var openers = map[string]opener{
	"shm": func(env transport.Env) (transport.Transport, []string, error) {
		t, err := shm.Open(env)
		return t, nil, err
	},
	"tcp": func(env transport.Env) (transport.Transport, []string, error) {
		t, err := tcp.Open(env, tcp.Options{})
		if err != nil {
			return nil, nil, err
		}
		return t, t.Addrs(), nil
	},
}

const known = "; there are shm and tcp"
