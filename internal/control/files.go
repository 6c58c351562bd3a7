// SPDX-License-Identifier: Apache-2.0

package control

import (
	"sync/atomic"

	"gompi/internal/rollcall"
	"gompi/internal/segment"
	"gompi/internal/wire"
)

// files are a process's segment and bell in the agent. They stay open while
// the process lives and while a frame that carries them is on its way. Common
// memory has no bell, -1.
type files struct {
	segment, bell int
	refs          atomic.Int32
}

func newFiles() (*files, error) {
	seg, bell, err := segment.CreateTaken()
	if err != nil {
		return nil, err
	}
	f := &files{segment: seg, bell: bell}
	f.refs.Store(1)
	return f, nil
}

func (f *files) retain() { f.refs.Add(1) }

// own writes into the segment whose it is.
func (f *files) own(p wire.ProcID) error { return segment.SetOwner(f.segment, p) }

// calls reads the roll call. A segment that cannot be mapped has none to show.
func (f *files) calls() []rollcall.Entry {
	mem, err := segment.Map(f.segment, segment.RollCall, segment.RollCallBytes, false)
	if err != nil {
		return nil
	}
	calls := rollcall.Read(mem)
	if err := segment.Unmap(mem); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return calls
}

// newCommon makes memory of n bytes for several processes.
func newCommon(n int64) (*files, error) {
	fd, err := segment.CreateCommon(n)
	if err != nil {
		return nil, err
	}
	f := &files{segment: fd, bell: -1}
	f.refs.Store(1)
	return f, nil
}

// release may be called on nil.
func (f *files) release() {
	if f == nil {
		return
	}
	switch n := f.refs.Add(-1); {
	case n == 0:
		closeFDs([]int{f.segment, f.bell})
	case n < 0:
		panic("gompi: BUG: segment released twice")
	}
}
