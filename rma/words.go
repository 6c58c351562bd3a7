// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
	"gompi/internal/engine/match"
	"gompi/internal/engine/remote"
)

// words says what the words of a rank's control block are for. Each has one
// writer, and holds a number that only grows, but for locks.
//
//	up        by child: barriers that all below it have entered
//	down      barriers that the rank's parent knows to be over
//	post      by rank: exposures to this rank that it has begun
//	complete  by rank: accesses to this rank that it has ended
//	lock      by rank: its place in the queue for this rank's lock
type words struct {
	up, down, post, complete, lock, total int
}

// A word of up, down and complete is a count, with marks for those of the last counts that
// the writer, or a rank behind it, gave up. A rank that gives up does not wait, so it may be
// some counts ahead when the word is read:
//
//	bits 0..46   the count
//	bits 47..58  how many in a row were given up
//	bit 59       revoked: because the window was revoked
//	bit 60       final: the writer takes part in none that follows
//	bit 61       before: the count itself was not given up, those before it were
//	bit 62       bereft: because a process has failed
//	bit 63       givenUp: some were
const (
	givenUp = 1 << 63
	bereft  = 1 << 62
	before  = 1 << 61
	final   = 1 << 60
	revoked = 1 << 59

	countMask = 1<<47 - 1
	runShift  = 47
	maxRun    = 1<<12 - 1
)

// gaveUp is the word of one whose last run counts up to n were given up.
func gaveUp(n, run, flags uint64) uint64 {
	return n | min(run, maxRun)<<runShift | givenUp | flags
}

// givesUp reports whether a word says that count n was given up.
func givesUp(v, n uint64) bool {
	if v&(givenUp|final) != givenUp {
		return v&final != 0
	}
	last := v & countMask
	if v&before != 0 {
		last--
	}
	return n <= last && n+v>>runShift&maxRun > last
}

func layWords(size int) words {
	w := words{down: min(size-1, barrierDegree)}
	w.post = w.down + 1
	w.complete = w.post + size
	w.lock = w.complete + size
	w.total = w.lock + size
	return w
}

// pending is a wait for words of the caller's own block, each of a rank.
type pending struct {
	engine.Await
	region *remote.Region
	word   int // the first of n
	rank0  int // whose that is
	n      int
	value  uint64
	group  []int  // whose failure ends the wait; nil: that of any rank
	heard  uint64 // the word by which another rank has given up; 0: none has
	over   func() (bool, *fault.Fault)
	asleep func(bool)
	missed func(rank int32, failed bool) bool
}

// ready reports whether each of the words has reached the value.
func (p *pending) ready() (bool, *fault.Fault) {
	for ; p.n > 0; p.n-- {
		switch v := p.region.Word(p.word + p.n - 1); {
		case givesUp(v, p.value):
			return true, p.told(v)
		case v&countMask < p.value:
			return false, nil
		}
	}
	return true, nil
}

// told is the fault that another rank has told of.
func (p *pending) told(v uint64) *fault.Fault {
	p.heard = v
	return &fault.Fault{Class: fault.Aborted, Peer: int32(p.rank0 + p.n - 1)}
}

// learn is the fault of a wait. What another tells of a death, or of a revocation, counts when
// this process has heard of it, which may be later.
func (w *Window) learn(p *pending, f *fault.Fault) *fault.Fault {
	if f == nil {
		return nil
	}
	if p.heard&revoked != 0 {
		return w.core.engine.Await(&engine.Await{
			Op: p.Op, Ctx: w.core.ctx, Rank: f.Peer, User: w.user,
			Ready: func() (bool, *fault.Fault) { return false, nil },
		})
	}
	if p.heard&bereft != 0 {
		if death := w.core.engine.LearnFailure(w.core.ctx, p.Op, w.user); death != nil {
			return death
		}
	}
	return f
}

// misses reports whether the wait ends because a rank is gone: it has failed
// and is of the group, or its word is missing.
func (p *pending) misses(rank int32, failed bool) bool {
	if failed && (p.group == nil || slices.Contains(p.group, int(rank))) {
		return true
	}
	k := int(rank) - p.rank0
	return k >= 0 && k < p.n && p.region.Word(p.word+k)&countMask < p.value
}

// setAsleep tells the writers of the words.
func (p *pending) setAsleep(asleep bool) { p.region.Asleep(asleep) }

// wait is a wait of this window, to be given back by done.
func (w *Window) wait(op fault.Call, rank int) *pending {
	c := w.core
	p, _ := c.space.Waits.Get().(*pending)
	if p == nil {
		p = new(pending)
		p.over, p.asleep, p.missed = p.ready, p.setAsleep, p.misses
	}
	p.region = c.region
	p.Ready, p.Asleep = p.over, p.asleep // of a lock they are others
	p.Op, p.Ctx, p.Rank, p.User, p.Needs = op, c.ctx, int32(rank), w.user, nil
	return p
}

func (w *Window) done(p *pending) {
	p.User, p.Ctx, p.region, p.group, p.heard = nil, nil, nil, nil, 0
	w.core.space.Waits.Put(p)
}

// await returns when n words of the caller's own block have reached value. They
// are of the ranks from rank0 on. The failure of any rank ends it.
func (w *Window) await(op fault.Call, rank0, word, n int, value uint64) error {
	p := w.wait(op, match.Any)
	p.rank0, p.word, p.n, p.value, p.group, p.Needs = rank0, word, n, value, nil, p.missed
	f := w.learn(p, w.core.engine.Await(&p.Await))
	w.core.epochs.heard = p.heard
	w.done(p)
	return w.core.fault(op, match.Any, f)
}

// awaitRank returns when a rank's word has reached value. The failure of any
// rank of group ends it.
func (w *Window) awaitRank(op fault.Call, group []int, rank, word int, value uint64) error {
	p := w.waitRank(op, group, rank, word, value)
	f := w.learn(p, w.core.engine.Await(&p.Await))
	w.done(p)
	return w.core.fault(op, rank, f)
}

// glanceRank is awaitRank that does not wait, but to learn of a death.
func (w *Window) glanceRank(op fault.Call, group []int, rank, word int, value uint64) (over bool, err error) {
	p := w.waitRank(op, group, rank, word, value)
	over, f := w.core.engine.Glance(&p.Await)
	f = w.learn(p, f)
	w.done(p)
	return over, w.core.fault(op, rank, f)
}

func (w *Window) waitRank(op fault.Call, group []int, rank, word int, value uint64) *pending {
	p := w.wait(op, rank)
	p.rank0, p.word, p.n, p.value, p.group, p.Needs = rank, word, 1, value, group, p.missed
	return p
}

// signal sets a word of another rank's block that only the caller writes.
func (w *Window) signal(op fault.Call, rank, word int, value uint64) error {
	t, err := w.core.reach(op, rank)
	if err != nil {
		return err
	}
	return w.core.fault(op, rank, t.Signal(word, value))
}
