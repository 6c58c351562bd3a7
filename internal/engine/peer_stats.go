// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/tuning"
)

// PeerStats describes for people how messages travel between this process and another one:
// the transport's name, and the transport's own text. Empty strings mean that there is no
// connection, or no text.
func (e *Engine) PeerStats(id wire.ProcID) (name, text string) {
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

// SetThresholds chooses the lengths at which messages inside this host change protocol.
func (e *Engine) SetThresholds(w tuning.Table) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.links {
		if t, ok := l.Transport.(transport.Tunable); ok {
			t.SetThresholds(w)
		}
	}
}
