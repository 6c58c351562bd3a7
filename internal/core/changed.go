// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/wire"
)

// Changed notes the last change that holds for this process.
func (p *Process) Changed(op uint32) { p.changed.Store(op) }

// Main looks up gompi://main, which the caller releases. Members know that a change
// holds a moment before the head does: it is asked when it has heard of the last one
// of this process.
func (p *Process) Main(ctx context.Context) (wire.Set, error) {
	if op := p.changed.Load(); op != 0 {
		var b control.OpBody
		// An operation that is over may be forgotten.
		_ = p.Control.Ask(ctx, &control.Await{Op: op, Until: change.Committed}, &b)
	}
	return p.Control.Lookup("gompi://main")
}
