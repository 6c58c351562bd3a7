// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/internal/base/settings"
	"gompi/internal/host/dirty"
	"gompi/mpi"
	"gompi/rma"
)

// snapshot is a source's part of variable data from when it was exposed to be read in the
// background until the change is over. Its memory is the program's, which writes on; watch
// knows the chunks that were written since.
type snapshot struct {
	memory  []byte
	watch   dirty.Watch
	exposed *rma.Exposed
}

func (s *snapshot) release(m *Module) {
	_ = s.exposed.Close() // once
	m.mu.Lock()
	m.endedWatches = append(m.endedWatches, s.watch)
	m.mu.Unlock()
	m.done.Go(m.disarm) // some 30 us a MiB
}

// disarm ends the watches of snapshots that were released. Until then their memory is held.
func (m *Module) disarm() {
	m.disarmMu.Lock()
	defer m.disarmMu.Unlock()
	m.mu.Lock()
	list := m.endedWatches
	m.endedWatches = nil
	m.mu.Unlock()
	for _, w := range list {
		_ = w.Disarm() // with an open tracker no error can be mended
	}
}

// takeSnapshots takes a snapshot of each variable array that can be watched. It waits until
// the program is in a Checkpoint. There no operation of the library is under way in its data;
// another process may have looked up the pages of such an operation before, to write to them
// later.
func (rc *reconfiguration) takeSnapshots() {
	rc.m.computing.Lock()
	defer rc.m.computing.Unlock()
	rc.m.disarm()
	rc.snapshots = map[*array]*snapshot{}
	for _, x := range rc.transfers {
		if !x.canPreCopy() {
			continue
		}
		s, err := rc.m.takeSnapshot(x.array)
		if err != nil {
			rc.m.printVerbose(rc.old, fmt.Sprintf("%q moves at the commit: %v", x.Name, err))
			continue
		}
		rc.snapshots[x.array] = s
	}
}

var (
	errSharedMemory = errors.New("others may store to it, and it is not marked")
	errTrackingOff  = errors.New(settings.MamTrack.Env + "=off")
)

// takeSnapshot watches and exposes the memory of an array. The program is in a Checkpoint.
func (m *Module) takeSnapshot(x *array) (s *snapshot, err error) {
	s = &snapshot{memory: x.memory()}
	switch {
	case len(s.memory) == 0:
		return nil, errors.New("this rank has none of it")
	case x.Marked:
		s.watch = m.marksOf(x, int64(len(s.memory))).Arm()
	case rma.Stored(m.process, s.memory):
		return nil, errSharedMemory
	default:
		if m.tracker == nil && m.trackErr == nil {
			m.tracker, m.trackErr = m.openTracker()
		}
		if m.trackErr != nil {
			return nil, m.trackErr
		}
		if s.watch, err = m.tracker.Arm(s.memory); err != nil {
			return nil, err
		}
	}
	if s.exposed, err = rma.ExposeLive(m.process, s.memory); err != nil {
		return nil, errors.Join(err, s.watch.Disarm())
	}
	return s, nil
}

// marksOf returns the marks of an array with a size in bytes.
func (m *Module) marksOf(x *array, bytes int64) *dirty.Marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.marks == nil || x.marks.Bytes() != bytes {
		x.marks = dirty.NewMarks(bytes)
	}
	return x.marks
}

// openTracker opens the tracker of writes that are not marked, if it may be used.
func (m *Module) openTracker() (*dirty.Tracker, error) {
	if m.process.Core().Process().Setting(settings.MamTrack.Env) == "off" {
		return nil, errTrackingOff
	}
	return dirty.Open()
}

// copySnapshot copies what this source has of an array while the program writes on. Chunks
// that are torn are in the delta.
func (rc *reconfiguration) copySnapshot(x *transfer) error {
	x.have, _ = rc.m.newMemory(rc.sourceBytes(x))
	s := rc.snapshots[x.array]
	if s == nil {
		return nil // it has none of it
	}
	return rc.limit.inPieces(x.have, 0, func(to []byte, at int64) error { return dirty.Copy(to, s.memory[at:]) })
}

// preCopyable reports whether this process can take its part in the pre-copy of an array by
// copies.
func (rc *reconfiguration) preCopyable(x *transfer) bool {
	if !x.canPreCopy() || rc.old < 0 || rc.sourceBytes(x) == 0 {
		return x.canPreCopy()
	}
	s := rc.snapshots[x.array]
	return s != nil && int64(len(s.memory)) == rc.sourceBytes(x)
}

// preCopy moves variable data before the change is delivered by a method in which sources
// take part: copies of it, as the program writes on. Arrays that some source cannot copy are
// left out by all.
func (m *exchange) preCopy() error {
	rc := m.rc
	if rc.old >= 0 {
		rc.takeSnapshots()
	}
	can := make([]int8, len(rc.transfers))
	for i, x := range rc.transfers {
		if rc.preCopyable(x) {
			can[i] = 1
		}
	}
	all := make([]int8, len(can))
	if err := mpi.Allreduce(rc.comm(), can, all, mpi.Min); err != nil {
		return err
	}
	var list []*transfer
	for i, x := range rc.transfers {
		if x.preCopied = all[i] == 1; !x.preCopied {
			continue
		}
		list = append(list, x)
		if rc.old >= 0 {
			if err := rc.copySnapshot(x); err != nil {
				return err
			}
		}
	}
	err := m.by.exchange(list)
	for _, x := range list {
		x.have, x.done, x.earlyBytes = nil, false, x.received
		rc.times.Early += x.earlyBytes
		for s := range rc.from {
			x.notePreCopied(s)
		}
	}
	return err
}
