// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Envs makes the Env of each process of a fabric. Embedded in a Fabric it
// gives the method Wakes. The zero value is ready; safe from any goroutine.
type Envs struct {
	// Settings are the settings of every Env. They must not change after the
	// first Env.
	Settings map[string]string

	mu    sync.Mutex
	wakes map[wire.ProcID]chan struct{}
}

// Env returns an Env for proc whose Wake rings the channel Wakes(proc). The
// job secret is the same for all; Segment and Bell are -1.
func (e *Envs) Env(proc wire.ProcID) transport.Env {
	bell := e.bell(proc)
	env := transport.Env{
		Self:    proc,
		Segment: -1,
		Bell:    -1,
		Setting: func(name string) string { return e.Settings[name] },
		Wake: func() {
			select {
			case bell <- struct{}{}:
			default: // a wake-up is pending already
			}
		},
	}
	for i := range env.Secret {
		env.Secret[i] = byte(i) ^ 0x5a
	}
	return env
}

// Wakes returns the channel that the Wake of proc's Env rings.
func (e *Envs) Wakes(proc wire.ProcID) <-chan struct{} { return e.bell(proc) }

func (e *Envs) bell(proc wire.ProcID) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wakes == nil {
		e.wakes = make(map[wire.ProcID]chan struct{})
	}
	b, ok := e.wakes[proc]
	if !ok {
		b = make(chan struct{}, 1)
		e.wakes[proc] = b
	}
	return b
}
