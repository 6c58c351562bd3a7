// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/tuning"
)

// Told is how messages have gone between this process and another one, for people: by which
// transport, and what that tells; "": there were none, or it tells nothing.
func Told(e *Engine, id wire.ProcID) (name, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[id]
	if p == nil || !p.ready() {
		return "", ""
	}
	if t, ok := p.link.Transport.(transport.Describer); ok {
		text = t.Describe(p.slot)
	}
	return p.link.caps.Name, text
}

// SetWays chooses which way messages go inside this host.
func SetWays(e *Engine, w tuning.Table) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.links {
		if t, ok := l.Transport.(transport.Tunable); ok {
			t.SetThresholds(w)
		}
	}
}
