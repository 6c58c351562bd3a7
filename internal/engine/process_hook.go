// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/engine/progress"
)

// processHook is a hook that ends with the process. quit ends it and takes it off the list.
type processHook interface {
	progress.Hook
	quit(e *Engine, f *fault.Fault)
}

func (ps *process) addWatch(w processHook)  { ps.prog.AddHook(w) }
func (ps *process) dropWatch(w processHook) { ps.prog.DropHook(w) }
