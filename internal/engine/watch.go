// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/engine/progress"
)

// watch is a hook that ends with the process: quit does that, and takes it off the
// list.
type watch interface {
	progress.Hook
	quit(e *Engine, f *fault.Fault)
}

func (ps *process) addWatch(w watch)  { ps.prog.AddHook(w) }
func (ps *process) dropWatch(w watch) { ps.prog.DropHook(w) }
