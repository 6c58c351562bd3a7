// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/transport"
)

// A process that cannot reach the words of a lock asks the owner of the region, which takes
// the lock for it.

// lockAnswer is an answer of the owner.
type lockAnswer uint8

const (
	lockGranted lockAnswer = iota
	lockDead               // a party that has ended held it
	lockNone               // the region was closed
	lockRefused
	lockHeldBy // not granted yet: the process that holds it
	lockBehind // not granted yet: the process that comes first
)

// lockService has the locks that this process takes for others, and others for it. The
// engine's lock guards it.
type lockService struct {
	asked   map[uint64]*locker // of this process; they wait for an answer
	asks    uint64
	proxies map[proxyKey]*proxy
	line    []*proxy // waiting ones
	spare   []*proxy
	hook    engine.Hook // of line
	hooked  bool
	asleep  bool
}

type proxyKey struct {
	from wire.ProcID
	id   uint64
}

// proxy stands for another process that waits for a lock of this one, or holds it.
type proxy struct {
	key    proxyKey
	region *Region
	attempt
}

// ask asks the owner to take the lock.
func (l *locker) ask(words0, n, me int, kind lockWord, w *engine.Await) *fault.Fault {
	s, t := l.s, l.t
	s.e.Lock()
	s.locks.asks++
	l.id = s.locks.asks
	l.answered = false
	l.answer = nil
	l.held = heldBy{}
	l.members = w.Ctx.Members
	b := s.syncFrame[:lockFrameBytes]
	clear(b)
	le := binary.LittleEndian
	b[0], b[1] = frameLock, byte(kind)
	le.PutUint32(b[4:], t.handle)
	le.PutUint64(b[8:], t.nonce)
	le.PutUint32(b[16:], uint32(words0))
	le.PutUint32(b[20:], uint32(n))
	le.PutUint32(b[24:], uint32(me))
	le.PutUint64(b[32:], l.id)
	f := s.e.SendFrame(t.proc, b)
	if f == nil {
		if s.locks.asked == nil {
			s.locks.asked = map[uint64]*locker{}
		}
		s.locks.asked[l.id] = l
	}
	s.e.Unlock()
	if f != nil {
		return f
	}
	w.Ready, w.Needs, w.Asleep, w.Holder = l.heard, nil, nil, l.told
	f = s.e.Await(w)
	if w.Holder = nil; f == nil {
		return nil
	}
	s.e.Lock()
	defer s.e.Unlock()
	delete(s.locks.asked, l.id)
	if !l.answered || l.answer == nil {
		// The owner may have granted it meanwhile.
		s.sendUnlock(t.proc, l.id)
	}
	return f
}

// hear is called in every poll while this process waits for the owner.
func (l *locker) hear() (bool, *fault.Fault) { return l.answered, l.answer }

// askHolder implements Await.Holder for a process that waits for the owner, which knows the
// holder.
func (l *locker) askHolder(ask bool) (rank int32, inLine, known bool) {
	if ask {
		l.held.known = l.s.sendAsk(l.t.proc, l.id) != nil // if the query cannot be sent, no more will be known
	}
	return l.held.rank, l.held.inLine, l.held.known
}

// sendAsk asks the owner which process keeps this one waiting for a lock.
func (s *Space) sendAsk(to wire.ProcID, id uint64) *fault.Fault {
	b := s.syncFrame[:holderFrameBytes]
	clear(b)
	b[0] = frameHolder
	binary.LittleEndian.PutUint64(b[8:], id)
	return s.e.SendFrame(to, b)
}

// serveHolder answers which process keeps another one waiting. If that has the lock by now,
// its answer is on the way.
func (s *Space) serveHolder(from wire.ProcID, b []byte) {
	x := s.locks.proxies[proxyKey{from, binary.LittleEndian.Uint64(b[8:])}]
	if x == nil || x.word.phase() != lockWaiting {
		return
	}
	switch i, inLine := x.holder(); {
	case i < 0:
	case inLine:
		s.sendAnswer(x.key, lockBehind, i)
	default:
		s.sendAnswer(x.key, lockHeldBy, i)
	}
}

// give asks the owner to release the lock.
func (l *locker) give() *fault.Fault {
	l.s.e.Lock()
	defer l.s.e.Unlock()
	return l.s.sendUnlock(l.t.proc, l.id)
}

func (s *Space) sendUnlock(to wire.ProcID, id uint64) *fault.Fault {
	b := s.syncFrame[:unlockFrameBytes]
	clear(b)
	b[0] = frameUnlock
	binary.LittleEndian.PutUint64(b[8:], id)
	return s.e.SendFrame(to, b)
}

// serveLock takes a lock for another process.
func (s *Space) serveLock(from wire.ProcID, b []byte) error {
	le := binary.LittleEndian
	kind := lockWord(b[1])
	handle, nonce := le.Uint32(b[4:]), le.Uint64(b[8:])
	words0, n, me := int64(le.Uint32(b[16:])), int64(le.Uint32(b[20:])), int64(le.Uint32(b[24:]))
	key := proxyKey{from, le.Uint64(b[32:])}
	r := s.regionOf(handle, nonce)
	switch {
	case kind&^lockExclusive != 0 || n == 0 || me >= n || s.locks.proxies[key] != nil,
		r != nil && (words0+n > int64(len(r.ctl.words)) || n != int64(r.members.Len()) || r.members.At(int(me)) != from):
		return fmt.Errorf("%w: lock %d of kind %d, party %d of %d, words from %d", transport.ErrProtocol, key.id, kind, me, n, words0)
	case r == nil:
		s.sendAnswer(key, lockNone, 0)
		return nil
	}
	x := s.locks.newProxy()
	x.key, x.region = key, r
	x.attempt = attempt{
		ticket: &r.ctl.head.ticket, words: r.ctl.words[words0 : words0+n : words0+n], all: &r.parties, me: int(me),
	}
	if err := x.begin(kind | lockServed); err != nil {
		s.locks.spare = append(s.locks.spare, x)
		s.sendAnswer(key, lockRefused, 0)
		return nil
	}
	if s.locks.proxies == nil {
		s.locks.proxies = map[proxyKey]*proxy{}
	}
	s.locks.proxies[key] = x
	if !s.stepProxy(x) {
		s.locks.line = append(s.locks.line, x)
		s.hookLine()
	}
	return nil
}

func (k *lockService) newProxy() *proxy {
	if n := len(k.spare); n > 0 {
		x := k.spare[n-1]
		k.spare = k.spare[:n-1]
		return x
	}
	return new(proxy)
}

// stepProxy reports whether a proxy has stopped waiting.
func (s *Space) stepProxy(x *proxy) bool {
	dead := -1
	if s.locks.asleep {
		dead = x.reapDead()
	}
	in := false
	if dead < 0 {
		in, dead = x.enter()
	}
	switch {
	case in:
		s.sendAnswer(x.key, lockGranted, 0)
	case dead >= 0:
		s.sendAnswer(x.key, lockDead, dead)
		s.endProxy(x)
	}
	return in || dead >= 0
}

// endProxy takes a proxy off the queue, or releases the lock that it holds.
func (s *Space) endProxy(x *proxy) {
	delete(s.locks.proxies, x.key)
	for i, y := range s.locks.line {
		if y == x {
			last := len(s.locks.line) - 1
			copy(s.locks.line[i:], s.locks.line[i+1:])
			s.locks.line[last] = nil
			s.locks.line = s.locks.line[:last]
			break
		}
	}
	x.leave()
	s.spareProxy(x)
}

func (s *Space) spareProxy(x *proxy) {
	*x = proxy{}
	s.locks.spare = append(s.locks.spare, x)
}

// hookLine adds the hook of the queue of proxies, as long as there is one.
func (s *Space) hookLine() {
	k := &s.locks
	if k.hooked {
		return
	}
	if k.hook.Ready == nil {
		k.hook.Ready, k.hook.Asleep = s.stepLine, s.lineAsleep
	}
	k.hooked = true
	s.e.AddHook(&k.hook)
}

// stepLine steps the waiting proxies. They leave the queue when they are done.
func (s *Space) stepLine() bool {
	k := &s.locks
	for i := 0; i < len(k.line); {
		x := k.line[i]
		if !s.stepProxy(x) {
			i++
		} else if i < len(k.line) && k.line[i] == x { // it holds the lock
			copy(k.line[i:], k.line[i+1:])
			k.line[len(k.line)-1] = nil
			k.line = k.line[:len(k.line)-1]
		}
	}
	k.hooked = len(k.line) > 0
	return !k.hooked
}

func (s *Space) lineAsleep(asleep bool) {
	s.locks.asleep = asleep
	for _, x := range s.locks.line {
		x.setAsleep(asleep)
	}
}

// serveUnlock ends a lock that another process has asked for.
func (s *Space) serveUnlock(from wire.ProcID, b []byte) {
	// An unknown one was refused, or its region is gone.
	if x := s.locks.proxies[proxyKey{from, binary.LittleEndian.Uint64(b[8:])}]; x != nil {
		s.endProxy(x)
	}
}

func (s *Space) sendAnswer(to proxyKey, a lockAnswer, rank int) {
	b := s.syncFrame[:answerFrameBytes]
	clear(b)
	b[0], b[1] = frameAnswer, byte(a)
	binary.LittleEndian.PutUint32(b[4:], uint32(rank))
	binary.LittleEndian.PutUint64(b[8:], to.id)
	s.e.SendFrame(to.from, b)
}

// takeAnswer handles an answer of the owner.
func (s *Space) takeAnswer(from wire.ProcID, b []byte) error {
	id, rank := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[4:])
	l := s.locks.asked[id]
	if l == nil && id > 0 && id <= s.locks.asks {
		return nil // no goroutine waits for it any more
	}
	if l == nil || l.t.proc != from {
		return fmt.Errorf("%w: answer for lock %d", transport.ErrProtocol, id)
	}
	switch a := lockAnswer(b[1]); a {
	case lockGranted:
	case lockDead, lockHeldBy, lockBehind:
		if int64(rank) >= int64(l.members.Len()) {
			return fmt.Errorf("%w: lock held by party %d of %d", transport.ErrProtocol, rank, l.members.Len())
		}
		if a != lockDead {
			l.held = heldBy{int32(rank), a == lockBehind, true}
			return nil
		}
		l.answer = s.deadHolder(int(rank), l.members.At(int(rank)))
	case lockNone:
		l.answer = refused(fault.Closed, 0, 0, l.t.size)
	case lockRefused:
		l.answer = lockFault(errLockBusy)
	default:
		return fmt.Errorf("%w: answer %d for lock %d", transport.ErrProtocol, b[1], id)
	}
	l.answered = true
	delete(s.locks.asked, id)
	return nil
}

// downLocks ends the lock requests from and to a process that frames do not reach any more.
// If it has ended, locks that it holds stay held: waiters learn that. If it lives, it can
// neither use nor release the locks that it has by frames.
func (s *Space) downLocks(p wire.ProcID, f *fault.Fault) {
	for id, l := range s.locks.asked {
		if l.t.proc == p {
			l.answered, l.answer = true, f
			delete(s.locks.asked, id)
		}
	}
	for key, x := range s.locks.proxies {
		switch {
		case key.from != p:
		case x.word.phase() == lockHeld && f.Class != fault.Unreachable:
			delete(s.locks.proxies, key)
			s.spareProxy(x)
		default:
			s.endProxy(x)
		}
	}
}

// closeLocks refuses waiting requests for a region that is being closed.
func (s *Space) closeLocks(r *Region) {
	for _, x := range s.locks.proxies {
		if x.region == r {
			s.sendAnswer(x.key, lockNone, 0)
			s.endProxy(x)
		}
	}
}
