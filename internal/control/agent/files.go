// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Files are a process's segment and bell in the agent. They stay open while
// the process lives and while a frame that carries them is on its way. An
// arena has no bell, -1.
type Files struct {
	segment, bell int
	refs          atomic.Int32

	// pair and arena are others, to go as one; nil: these are the files themselves.
	pair, arena *Files
}

// with is both the files and an arena's.
func (f *Files) with(arena *Files) *Files {
	f.retain()
	arena.retain()
	all := &Files{segment: f.segment, bell: f.bell, pair: f, arena: arena}
	all.refs.Store(1)
	return all
}

func newFiles() (*Files, error) {
	seg, bell, err := segment.CreateTaken()
	if err != nil {
		return nil, err
	}
	f := &Files{segment: seg, bell: bell}
	f.refs.Store(1)
	return f, nil
}

func (f *Files) retain() { f.refs.Add(1) }

// own writes into the segment, if there is one, whose it is.
func (f *Files) own(p wire.ProcID) error {
	if f.segment < 0 {
		return nil
	}
	return segment.SetOwner(f.segment, p)
}

// Release may be called on nil.
func (f *Files) Release() {
	if f == nil {
		return
	}
	switch n := f.refs.Add(-1); {
	case n == 0 && f.pair != nil:
		f.pair.Release()
		f.arena.Release()
	case n == 0:
		f.close()
	case n < 0:
		panic("gompi: BUG: segment released twice")
	}
}

// Stdin makes a descriptor, which the agent owns from now on, the standard input of a
// process that takes part in the job.
func (a *Agent) Stdin(p wire.ProcID, fd int) {
	f := &Files{segment: fd, bell: -1}
	f.refs.Store(1)
	if s := a.proc(p); s != nil && s.welcomed {
		a.sendFiles(s, f, protocol.ShortFrame(0, protocol.FrameFDs, &protocol.Event{Kind: protocol.EvStdin}))
	}
	f.Release()
}
