// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/transport"
)

// lockParties are the parties of a lock, as one of them sees them, or the region's owner,
// which waits for processes that cannot reach the lock's words.
type lockParties struct {
	s       *Space
	members wire.Members
	owner   wire.ProcID
	locked  bool // the caller holds the engine's lock
}

func (l *lockParties) gone(i int) bool { return l.s.gone(l.members.At(i)) != nil }

func (l *lockParties) wake(i int, w lockWord) {
	p := l.owner
	if w&lockServed == 0 {
		p = l.members.At(i)
	}
	if l.locked {
		l.s.wakeProcess(p)
		return
	}
	l.s.e.Lock()
	l.s.wakeProcess(p)
	l.s.e.Unlock()
}

// wakeProcess wakes a process that may sleep. The caller holds the engine's lock.
func (s *Space) wakeProcess(p wire.ProcID) {
	if s.gone(p) == nil {
		s.e.WakeProcess(p)
	}
}

// lockFault returns the reason why a lock cannot be used, as a fault.
func lockFault(err error) *fault.Fault {
	class := fault.Unreachable
	if errors.Is(err, errLockBusy) {
		class = fault.InUse
	}
	return &fault.Fault{Class: class, Peer: -1, Err: err}
}

// deadHolder returns the fault for processes that wait for a party that has ended while it
// held the lock.
func (s *Space) deadHolder(i int, p wire.ProcID) *fault.Fault {
	f := &fault.Fault{Class: fault.ProcFailed, Peer: int32(i)}
	if d := s.gone(p); d != nil {
		f.Class = d.Class
		f.Err = fmt.Errorf("%w, holding the lock", d.Err)
	} else {
		f.Err = fmt.Errorf("process %v has ended, holding the lock", p)
	}
	return f
}

// The states of a locker.
const (
	unlocked int32 = iota
	locking        // a goroutine is in Lock or Unlock
	locked
)

// locker is this process's use of a target's lock.
type locker struct {
	t     *Target
	state atomic.Int32
	lockParties
	attempt
	asleep    bool
	ready     func() (bool, *fault.Fault)
	setAsleep func(asleep bool)
	holder    func(ask bool) (rank int32, inLine, known bool)

	// A lock that the owner takes for this process. The engine's lock guards these fields.
	id       uint64
	answered bool
	answer   *fault.Fault
	heard    func() (bool, *fault.Fault)
	told     func(ask bool) (rank int32, inLine, known bool)
	// held is the process that keeps this one waiting, as the owner has said last.
	held heldBy
}

// heldBy is a process that keeps a party of a lock waiting.
type heldBy struct {
	rank   int32
	inLine bool
	known  bool
}

// locker returns the target's locker.
func (t *Target) locker() *locker {
	if l := t.lock.Load(); l != nil {
		return l
	}
	l := &locker{t: t, lockParties: lockParties{s: t.s, owner: t.proc}}
	l.ready, l.setAsleep, l.holder = l.look, l.sleep, l.seeHolder
	l.heard, l.told = l.hear, l.askHolder
	if !t.lock.CompareAndSwap(nil, l) {
		return t.lock.Load()
	}
	return l
}

// Lock takes the target's lock. Others may hold it too, if none of them is exclusive. Words
// [words0, words0+n) of the control block belong to the ranks of w.Ctx; this process is
// rank me, and w.Rank is the target's. Processes get the lock in the order in which they
// ask. On a fault it is not held: ProcFailed with Peer means that this rank has ended while
// it held the lock. One goroutine at a time may call it. It sets w's functions.
func (t *Target) Lock(words0, n, me int, exclusive bool, w *engine.Await) *fault.Fault {
	l := t.locker()
	if !l.state.CompareAndSwap(unlocked, locking) {
		return lockFault(errLockBusy)
	}
	kind := lockWord(0)
	if exclusive {
		kind = lockExclusive
	}
	f := t.s.gone(t.proc)
	switch {
	case f != nil:
	case words0 < 0 || n <= 0 || uint(me) >= uint(n) || n != w.Ctx.Members.Len():
		f = lockFault(fmt.Errorf("%w: lock of party %d of %d, words from %d", transport.ErrProtocol, me, n, words0))
	case t.ctl == nil:
		f = l.ask(words0, n, me, kind, w)
	case words0 > len(t.ctl.words)-n:
		f = lockFault(fmt.Errorf("%w: %d lock words from %d of %d", transport.ErrProtocol, n, words0, len(t.ctl.words)))
	default:
		l.members = w.Ctx.Members
		l.attempt.ticket, l.words = &t.ctl.head.ticket, t.ctl.words[words0:words0+n]
		l.all, l.me = &l.lockParties, me
		f = l.enterDirect(kind, w)
	}
	if f != nil {
		l.state.Store(unlocked)
		return f
	}
	t.s.meet()
	l.state.Store(locked)
	return nil
}

// Unlock releases the lock of Lock.
func (t *Target) Unlock(words0, n, me int) *fault.Fault {
	l := t.lock.Load()
	if l == nil || !l.state.CompareAndSwap(locked, locking) {
		return lockFault(errLockBusy)
	}
	t.s.meet()
	var f *fault.Fault
	if t.ctl == nil {
		f = l.give()
	} else if err := l.leave(); err != nil {
		f = lockFault(err)
	}
	l.state.Store(unlocked)
	return f
}

// enterDirect takes the lock by its words.
func (l *locker) enterDirect(kind lockWord, w *engine.Await) *fault.Fault {
	if err := l.begin(kind); err != nil {
		return lockFault(err)
	}
	in, dead := l.enter()
	if in {
		return nil
	}
	var f *fault.Fault
	if dead >= 0 {
		f = l.s.deadHolder(dead, l.members.At(dead))
	} else {
		w.Ready, w.Needs, w.Asleep, w.Holder = l.ready, nil, l.setAsleep, l.holder
		l.locked, l.asleep = true, false
		f = l.s.e.Await(w)
		l.locked, w.Holder = false, nil
	}
	if f != nil {
		l.leave()
	}
	return f
}

// look is called in every poll while this process waits for the lock.
func (l *locker) look() (bool, *fault.Fault) {
	dead := -1
	if l.asleep {
		dead = l.reapDead()
	}
	in := false
	if dead < 0 {
		in, dead = l.enter()
	}
	if dead >= 0 {
		return true, l.s.deadHolder(dead, l.members.At(dead))
	}
	return in, nil
}

func (l *locker) sleep(asleep bool) {
	l.asleep = asleep
	l.attempt.setAsleep(asleep)
}

// seeHolder implements Await.Holder for a process that waits by the words of the lock.
func (l *locker) seeHolder(bool) (rank int32, inLine, known bool) {
	i, inLine := l.attempt.holder()
	return int32(i), inLine, true
}
