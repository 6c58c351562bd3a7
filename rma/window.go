// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"context"
	"sync"
	"sync/atomic"

	"gompi/internal/engine"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

// Window is memory of each rank of a communicator that the other ranks access
// without its help. A Window is a small handle; copies made by WithContext are
// the same window. Safe for all goroutines, between which it is one rank: an
// epoch that one of them opens is that of all. MPI 4.1 section 12.2.
type Window struct {
	core *core
	user context.Context // nil: calls do not give up
}

// Flavor is how a window was made. MPI 4.1 section 12.2.6.
type Flavor uint8

// The flavors.
const (
	FlavorCreate Flavor = iota + 1
	FlavorAllocate
	FlavorShared
	FlavorDynamic
)

var flavorText = [...]string{
	FlavorCreate: "Create", FlavorAllocate: "Allocate", FlavorShared: "AllocateShared", FlavorDynamic: "CreateDynamic",
}

// String is the name of the call that makes such windows.
func (f Flavor) String() string {
	if int(f) < len(flavorText) && flavorText[f] != "" {
		return flavorText[f]
	}
	return "no flavor"
}

// core is what all handles of a window share. Immutable after its creation but
// for what guards itself.
type core struct {
	// admitted are the epochs that admit accesses to all ranks.
	admitted atomic.Uint64
	// fence is written where a processor must not read ahead of what it wrote.
	fence atomic.Uint32
	// targets are the other ranks' memory, each nil until it is needed.
	targets []atomic.Pointer[target]
	few     [4]atomic.Pointer[target] // targets, if they are so few

	window Window    // the first handle
	comm   *mpi.Comm // of the window alone: its context, name, handler, attributes
	engine *engine.Engine
	ctx    *engine.Context
	space  *remote.Space
	region *remote.Region
	flavor Flavor
	unit   int64
	rank   int
	size   int
	words  words

	table *table // what all ranks said of their memory, until freed

	queried atomic.Bool // SharedQuery was called: others' memory is used without calls
	ending  atomic.Bool // Free is called; set under reachMu
	freed   atomic.Bool
	epochs  epochs
	handler atomic.Pointer[ErrorHandler]

	reachMu sync.Mutex
	distant []*target // those reached that are not mapped, guarded by reachMu

	directory *directory // of a dynamic window, else nil
	shared    *shared    // of a window of AllocateShared, else nil

	spareMu sync.Mutex
	scalars *scalar // not in use, guarded by spareMu
}

// Rank is the caller's rank in the window's group. Local.
func (w *Window) Rank() int { return w.core.rank }

// Size is the number of ranks. Local.
func (w *Window) Size() int { return w.core.size }

// Group is the group of the communicator that the window was made with. Local.
// MPI 4.1 section 12.2.6.
func (w *Window) Group() mpi.Group { return w.core.comm.Group() }

// Flavor is how the window was made. Local. MPI 4.1 section 12.2.6.
func (w *Window) Flavor() Flavor { return w.core.flavor }

// Bytes is the size of a rank's memory, 0 in a dynamic window, for a rank that
// does not exist, and after Free. Local. MPI 4.1 section 12.2.6.
func (w *Window) Bytes(rank int) int64 {
	if rank < 0 || rank >= w.core.size || w.core.freed.Load() {
		return 0
	}
	_, bytes, _ := w.core.table.told(rank)
	return bytes
}

// DispUnit is the size of the elements in which offsets of a rank's memory are
// counted, 1 in a dynamic window, 0 for a rank that does not exist and after
// Free. Local. MPI 4.1 section 12.2.6.
func (w *Window) DispUnit(rank int) int64 {
	if rank < 0 || rank >= w.core.size || w.core.freed.Load() {
		return 0
	}
	unit, _, _ := w.core.table.told(rank)
	return unit
}

// Name is the window's name, which errors and roll calls show. Local.
// MPI 4.1 section 7.8.
func (w *Window) Name() string { return w.core.comm.Name() }

// SetName gives the window a name in this process. Local.
// MPI 4.1 section 7.8.
func (w *Window) SetName(name string) { w.core.comm.SetName(name) }

// WithContext returns the same window for calls that give up when ctx ends; see
// "Giving up" in the package documentation. Local.
func (w *Window) WithContext(ctx context.Context) *Window {
	if ctx == nil {
		panic("gompi: WithContext(nil)")
	}
	d := &Window{core: w.core, user: ctx}
	if ctx.Done() == nil {
		d.user = nil
	}
	return d
}

// Revoke makes the window unusable on all its ranks: calls that wait for
// another rank, pending and later, fail with ErrRevoked. Any rank may call it.
func (w *Window) Revoke() { w.core.comm.Revoke() }
