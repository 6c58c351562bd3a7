// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/host/dirty"
	"gompi/transport"
)

// live is the path to a live region (PublishLive) in this address space, of this process or
// of another engine. Its owner writes while others read, so the kernel copies, as between
// processes. The layer above detects torn reads and repeats them. Only the owner writes.
type live struct{ served }

func (live) framed() bool { return false }

// readLive makes a target of memory that is mapped here read it through the kernel.
func (t *Target) readLive() {
	t.isLive, t.live, t.mem, t.path = true, t.mem, nil, live{served{t}}
}

func (t live) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
	if from.Type.Contiguous() && !dst.Strided() {
		return t.copyFault(dirty.Copy(dst.Slice(), t.Target.live[from.Off:][:n]))
	}
	l := t.s.runLists.Get().(*runList)
	defer t.s.runLists.Put(l)
	for off := int64(0); off < n; {
		b, runs := l.cut(dst, from, off, n)
		if err := t.runs(runs); err != nil {
			return t.copyFault(err)
		}
		if dst.Strided() {
			dst.Unpack(off, b)
		}
		off += int64(len(b))
	}
	return nil
}

func (t live) runs(runs []transport.Run) error {
	for _, r := range runs {
		if err := dirty.Copy(r.Mem, t.Target.live[r.Off:][:len(r.Mem)]); err != nil {
			return err
		}
	}
	return nil
}

// copyLive serves a part of a live region. PublishLive has checked that the region can be
// copied so. Memory that is gone faults, as in any other region.
func copyLive(dst, src []byte) {
	if dirty.Copy(dst, src) != nil {
		copy(dst, src)
	}
}

// Stored reports whether other processes may store to some of mem: it lies in a region that
// is not read-only.
func (s *Space) Stored(mem []byte) bool {
	s.e.Lock()
	defer s.e.Unlock()
	for _, r := range s.regions {
		if r != nil && !r.live && overlap(r.mem, mem) {
			return true
		}
	}
	return false
}
