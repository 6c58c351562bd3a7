// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/host/wait"
)

// WakeAll wakes all ranks that sleep in this area.
func (b *Area) WakeAll() {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range b.ranks {
		b.wakeRank(i)
	}
}

// WakeSleepers wakes the ranks that may wait for what this rank has published. A rank with
// a mark of sleep is counted, so the count says whether there is any.
func (b *Area) WakeSleepers() {
	if b.head.sleepers.Load() != 0 {
		b.wakeSleepers()
	}
}

// wakeSleepers wakes this rank's neighbours in the tree, which wake others in turn, and all
// ranks that wait until their data were read. Without a tree it wakes all.
func (b *Area) wakeSleepers() {
	if b.op.protocol == &b.tree {
		b.wakeTree()
	} else {
		b.WakeAll()
	}
}

func (b *Area) wakeTree() {
	b.WakeNear()
	if b.op.op == collectives.OpReduce && (b.tree.last || b.rank == 0) { // the ranks between may have gone on
		b.wakeRank(b.tree.root)
	}
	if b.head.stuck.Load() > 0 {
		for i := range b.ranks {
			r := &b.ranks[i]
			if r.asleep.Load() == stuckAsleep {
				b.wakeRank(i)
			}
		}
	}
}

// WakeNear wakes this rank's neighbours in the tree, if they sleep.
func (b *Area) WakeNear() {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range Near(b.rank, b.size) {
		b.wakeRank(i)
	}
}

func (b *Area) wakeRank(i int) {
	if r := &b.ranks[i]; i != b.rank && r.asleep.Load() != awake && b.takeMark(r) {
		b.waker.Wake(i)
	}
}

// The states of rankLines.asleep.
const (
	awake       = iota
	plainAsleep // until something is published
	stuckAsleep // also until what it has published was read
)

// takeMark clears a rank's mark of sleep, if it is set.
func (b *Area) takeMark(r *rankLines) bool {
	was := r.asleep.Swap(awake)
	if was == awake {
		return false
	}
	b.head.sleepers.Add(-1)
	if was == stuckAsleep {
		b.head.stuck.Add(-1)
	}
	return true
}

// PrepareSleep announces that this rank is about to sleep. Whatever is published from now
// on wakes it; it must look once more for what was published before. It counts itself
// before it sets its mark: the rank that clears the mark counts it down, and that must not
// hide another sleeper. late says that a rank that has not seen the mark may have published
// something that becomes visible later: see wait.Publish.
func (b *Area) PrepareSleep() (late bool) {
	r := &b.ranks[b.rank]
	how := uint32(plainAsleep)
	b.op.sleepy = true
	if b.op.offers && !b.op.offered {
		how = stuckAsleep
	}
	if r.asleep.Load() == how {
		return false
	}
	b.takeMark(r)
	if how == stuckAsleep {
		b.head.stuck.Add(1)
	}
	b.head.sleepers.Add(1)
	r.asleep.Store(how)
	return wait.DelayedStores
}

// EndSleep announces that this rank is awake.
func (b *Area) EndSleep() {
	if r := &b.ranks[b.rank]; r.asleep.Load() != awake {
		b.takeMark(r)
	}
}

// Sleepers returns how many ranks say that they sleep.
func (b *Area) Sleepers() int { return int(b.head.sleepers.Load()) }
