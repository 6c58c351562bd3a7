// SPDX-License-Identifier: Apache-2.0

package control

import (
	"sync/atomic"

	"gompi/internal/segment"
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
