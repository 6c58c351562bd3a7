// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/host/wait"
)

// WakeAll wakes the ranks that sleep over this board.
func (b *Board) WakeAll() {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range b.ranks {
		b.wakeRank(i)
	}
}

// WakeSleepers wakes whom something that this rank has told may concern. Nobody has
// a mark who is not counted.
func (b *Board) WakeSleepers() {
	if b.head.sleepers.Load() != 0 {
		b.wakeSleepers()
	}
}

// wakeSleepers wakes along the tree those beside this rank, who go on to wake
// others, and all who wait until what they have published was read; elsewhere all.
func (b *Board) wakeSleepers() {
	if b.op.family == &b.tree {
		b.wakeTree()
	} else {
		b.WakeAll()
	}
}

func (b *Board) wakeTree() {
	b.WakeNear()
	if b.op.op == collectives.OpReduce && (b.tree.last || b.rank == 0) { // those between may have gone on
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

// WakeNear wakes those that sleep and stand beside this one in the tree.
func (b *Board) WakeNear() {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range Near(b.rank, b.size) {
		b.wakeRank(i)
	}
}

func (b *Board) wakeRank(i int) {
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

// takeMark takes the mark of sleep from a rank, if it is there.
func (b *Board) takeMark(r *rankLines) bool {
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

// PrepareSleep says that this rank is about to sleep. What is published from now
// on wakes it; what was published before, it has to look for once more. It counts
// itself before it sets its mark: who takes the mark away counts it down, and
// must not hide another sleeper thereby. It reports whether somebody who has not
// seen the mark may have published what is seen only later: see wait.Publish.
func (b *Board) PrepareSleep() (late bool) {
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

// EndSleep says that this rank is awake.
func (b *Board) EndSleep() {
	if r := &b.ranks[b.rank]; r.asleep.Load() != awake {
		b.takeMark(r)
	}
}

// Sleepers is how many ranks say that they sleep.
func (b *Board) Sleepers() int { return int(b.head.sleepers.Load()) }
