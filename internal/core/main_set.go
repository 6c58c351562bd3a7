// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Changed notes the last change that holds for this process.
func (p *Process) Changed(op uint32) { p.changed.Store(op) }

// Heard returns when the head has heard of the last change of this process: members
// know that it holds a moment before.
func (p *Process) Heard(ctx context.Context) {
	if op := p.changed.Load(); op != 0 {
		var b protocol.OpBody
		// An operation that is over may be forgotten.
		_ = p.Control.Ask(ctx, &protocol.Await{Op: op, Until: change.Committed}, &b)
	}
}

// Main looks up gompi://main, which the caller releases.
func (p *Process) Main(ctx context.Context) (wire.Set, error) {
	p.Heard(ctx)
	return p.Control.Lookup(protocol.MainURI)
}
